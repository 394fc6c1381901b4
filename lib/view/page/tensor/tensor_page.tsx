/** One tensor: facts, statistics, and its values as a heat map and as a table. */
import { useState } from 'preact/hooks'
import { MEANINGS, type Meaning, type TensorFacts } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Choice, Facts } from '../parts/parts.js'
import { useTensors } from '../parts/tensors.js'
import { useLoad } from '../parts/use_load.js'
import { hrefOf } from '../route.js'
import { bytesText, countText, numberText, shapeText } from '../text.js'
import { AxisFields, firstPlane, type PlaneChoice, planeExtents } from './axes.js'
import { HeatMap, wholeView } from './heat_map.js'
import { Neighbours, TensorNames } from './neighbours.js'
import { Statistics } from './statistics.js'
import { ValuesTable } from './values_table.js'

/** @param total - tensors of the file */
export function TensorPage({ file, tensor, total }: { file: number; tensor: number; total: number }) {
  const key = `${file} ${tensor}`
  const facts = useLoad(key, (signal) => ask<TensorFacts>('tensor', { file, tensor }, signal))
  const { table } = useTensors(file)
  const one = (
    <Awaited loaded={facts}>
      {(found) => (found.index === tensor ? <TensorView key={key} file={file} facts={found} /> : null)}
    </Awaited>
  )
  if (total < 2) return one
  return (
    <>
      <Neighbours file={file} tensor={tensor} table={table} total={total} />
      <div class="tensor-page">
        <TensorNames file={file} tensor={tensor} table={table} />
        <div>{one}</div>
      </div>
    </>
  )
}

function TensorView({ file, facts }: { file: number; facts: TensorFacts }) {
  const [meaning, setMeaning] = useState<Meaning>('codes')
  const { shape, hasData, kind } = facts
  const size = shape.reduce((product, extent) => product * extent, 1)
  return (
    <>
      <h2 class="name">{facts.name || '(no name)'}</h2>
      <section aria-label="Facts">
        <Facts facts={factRows(facts)} />
        <p>
          <a href={layoutHref(facts)}>Show its memory layout</a>
        </p>
        {facts.isQuantized && (
          <Choice label="Quantized values as" value={meaning} names={MEANINGS} onChange={setMeaning} />
        )}
      </section>
      {!hasData && <p class="quiet">The file names this tensor and has no data of it.</p>}
      {hasData && kind !== 'string' && size > 0 && <Statistics file={file} facts={facts} meaning={meaning} />}
      {hasData && size > 0 && <Values key={meaning} file={file} facts={facts} meaning={meaning} />}
    </>
  )
}

function factRows(facts: TensorFacts): (readonly [string, string])[] {
  const { dtype, shape, layout, byteLength, kind, entryCount, quantization, doc, metadata } = facts
  const size = shape.reduce((product, extent) => product * extent, 1)
  const rows: (readonly [string, string])[] = [
    ['dtype', dtype],
    ['shape', shapeText(shape)],
    ['elements', countText(size)],
    ['layout', layout ?? '–'],
    ['bytes', bytesText(byteLength)],
  ]
  if (kind === 'sparse') rows.push(['entries', countText(entryCount ?? 0)])
  if (quantization) {
    rows.push(['scale', listText(quantization.scale)], ['zero point', listText(quantization.zeroPoint)])
    if (quantization.axis !== undefined) rows.push(['quantized axis', String(quantization.axis)])
  }
  if (doc !== '') rows.push(['doc', doc])
  return [...rows, ...metadata]
}

function listText(numbers: number | readonly number[]): string {
  if (typeof numbers === 'number') return numberText(numbers)
  const shown = numbers.slice(0, 4).map(numberText).join(', ')
  return numbers.length > 4 ? `${shown}, … (${numbers.length})` : shown
}

function layoutHref({ shape, dtype, layout, lower, upper }: TensorFacts): string {
  const isPadded = [...lower, ...upper].some((count) => count > 0)
  const padding = isPadded ? { lower: lower.join(), upper: upper.join() } : {}
  const name = layout === null || layout === 'coo' ? 'row_major' : layout
  return hrefOf('layout', {
    name,
    shape: shape.join(),
    dtype: dtype === 'string' ? 'uint8' : dtype,
    ...padding,
  })
}

function Values({ file, facts, meaning }: { file: number; facts: TensorFacts; meaning: Meaning }) {
  const { shape, kind, index } = facts
  const [plane, setPlane] = useState(() => firstPlane(shape))
  const extents = planeExtents(shape, plane)
  const [view, setView] = useState(() => wholeView(extents))
  const choose = (next: PlaneChoice): void => {
    setPlane(next)
    const [before, after] = [extents, planeExtents(shape, next)]
    if (before.rows !== after.rows || before.columns !== after.columns) setView(wholeView(after))
  }
  const query = { file, tensor: index, as: meaning, ...plane }
  return (
    <section aria-label="Values">
      <h2>Values</h2>
      <AxisFields shape={shape} plane={plane} onChange={choose} />
      {kind !== 'string' && (
        <HeatMap
          path="tile"
          query={query}
          extents={extents}
          view={view}
          onView={setView}
          isSparse={kind === 'sparse'}
          shape={shape}
          plane={plane}
        />
      )}
      <ValuesTable query={query} extents={extents} view={view} shape={shape} plane={plane} />
    </section>
  )
}
