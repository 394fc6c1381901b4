/** Two of the files compared, as `tilework diff` does, with a heat map of the error. */
import { useState } from 'preact/hooks'
import type { ValueDifferences } from '../../../tensor/value_differences.js'
import type { FileEntry } from '../../protocol.js'
import type { IndexedDifference } from '../../server/differences.js'
import { ask } from '../api.js'
import { Awaited, Facts, TextField } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { AxisFields, firstPlane, planeExtents } from '../tensor/axes.js'
import { HeatMap, wholeView } from '../tensor/heat_map.js'
import { countText, numberText, shapeText } from '../text.js'
import { GraphDifference, SHOWN } from './graph_difference.js'

interface Choice {
  readonly a: number
  readonly b: number
  readonly absolute: string
  readonly relative: string
}

export function DifferencePage({ files }: { files: readonly FileEntry[] }) {
  const [choice, setChoice] = useState<Choice>({ a: 0, b: 1, absolute: '0', relative: '0' })
  if (files.length < 2)
    return (
      <p>
        One file is open. To compare two, name both: <code>tilework view A B</code>
      </p>
    )
  const set = (part: Partial<Choice>): void => setChoice({ ...choice, ...part })
  return (
    <>
      <div class="fields">
        {(['a', 'b'] as const).map((side) => (
          <label key={side} class="field">
            <span>{side === 'a' ? 'Reference' : 'Compared'}</span>
            <select
              value={choice[side]}
              onChange={(event) => set({ [side]: Number(event.currentTarget.value) })}
            >
              {files.map(({ name, format }, at) => (
                <option key={at} value={at}>
                  {name} ({format})
                </option>
              ))}
            </select>
          </label>
        ))}
        <TextField
          label="Absolute tolerance"
          value={choice.absolute}
          width={8}
          onChange={(absolute) => set({ absolute })}
        />
        <TextField
          label="Relative tolerance"
          value={choice.relative}
          width={8}
          onChange={(relative) => set({ relative })}
        />
      </div>
      <Compared choice={choice} files={files} />
    </>
  )
}

function Compared({ choice, files }: { choice: Choice; files: readonly FileEntry[] }) {
  const key = JSON.stringify(choice)
  const found = useLoad(key, (signal) => ask<IndexedDifference>('diff', { ...choice }, signal))
  const [selected, setSelected] = useState<number>()
  if (found.isLoading) return <p class="quiet">Comparing…</p>
  return (
    <Awaited loaded={found}>
      {(difference) => (
        <>
          <Summary difference={difference} />
          {difference.graph !== null && difference.graph.length > 0 && (
            <GraphDifference
              a={choice.a}
              b={choice.b}
              names={[files[choice.a]!.name, files[choice.b]!.name]}
              edits={difference.graph}
            />
          )}
          {difference.changed.length > 0 && (
            <Changed difference={difference} selected={selected} onSelect={setSelected} />
          )}
          {selected !== undefined && difference.changed[selected] && (
            <ErrorMap key={`${key} ${selected}`} choice={choice} difference={difference} at={selected} />
          )}
          <Lists difference={difference} />
        </>
      )}
    </Awaited>
  )
}

function Summary({ difference }: { difference: IndexedDifference }) {
  const { isSame, same, sameBits, changed, added, removed, graph } = difference
  return (
    <section aria-label="Summary">
      <Facts
        facts={[
          ['result', isSame ? 'the same' : 'different'],
          ['same tensors', `${countText(same)}, ${countText(sameBits)} of them bit for bit`],
          ['changed', countText(changed.length)],
          ['added', countText(added.length)],
          ['removed', countText(removed.length)],
          [
            'graph',
            graph === null
              ? 'not compared: two models of one format have graphs to compare'
              : `${countText(graph.length)} edits`,
          ],
        ]}
      />
    </section>
  )
}

/** Longest list that is open from the start. */
const MOST_OPEN = 12
const TITLES = ['tensor', 'changes', 'max error', 'relative', 'SQNR dB', 'cosine', 'different', 'beyond']

function Changed(props: {
  difference: IndexedDifference
  selected: number | undefined
  onSelect: (at: number) => void
}) {
  const { difference, selected, onSelect } = props
  return (
    <section aria-label="Changed tensors">
      <h2>Changed tensors</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label="Changed tensors">
        <table class="texts">
          <thead>
            <tr>
              {TITLES.map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {difference.changed.slice(0, SHOWN).map(({ a, b, changes, values, real }, at) => (
              <tr key={a.name} aria-current={at === selected ? 'true' : undefined}>
                <th scope="row">
                  <button type="button" class="plain" onClick={() => onSelect(at)}>
                    {a.name === b.name ? a.name : `${a.name} → ${b.name}`}
                  </button>
                </th>
                <td>{changes.map((change) => changeText(change, difference.changed[at]!)).join(', ')}</td>
                {numbersOf(real ?? values).map((text, column) => (
                  <td key={TITLES[column + 2]}>{text}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function changeText(change: string, { a, b }: IndexedDifference['changed'][number]): string {
  if (change === 'dtype') return `${a.dtype} → ${b.dtype}`
  if (change === 'layout') return `${a.layout} → ${b.layout}`
  return change === 'shape' ? `${shapeText(a.shape)} → ${shapeText(b.shape)}` : change
}

function numbersOf(values: ValueDifferences | null): string[] {
  if (!values) return TITLES.slice(2).map(() => '–')
  const { maxError, maxRelativeError, sqnr, cosine, different, beyond } = values
  return [maxError, maxRelativeError, sqnr, cosine]
    .map((each) => numberText(each))
    .concat(countText(different), countText(beyond))
}

function ErrorMap({ choice, difference, at }: { choice: Choice; difference: IndexedDifference; at: number }) {
  const { a, b, values, real } = difference.changed[at]!
  const place = difference.places[at]!
  const { shape } = a
  const [plane, setPlane] = useState(() => firstPlane(shape))
  const extents = planeExtents(shape, plane)
  const [view, setView] = useState(() => wholeView(extents))
  const found = real ?? values
  const canDraw = shape.join() === b.shape.join() && a.kind !== 'string' && found !== null
  const query = {
    a: choice.a,
    aTensor: place.a,
    b: choice.b,
    bTensor: place.b,
    as: real ? 'real' : 'codes',
    ...plane,
  }
  return (
    <section aria-label="Error">
      <h2>Error of {a.name}</h2>
      {found && (
        <Facts
          facts={[
            ['worst', elementText(found.worst)],
            ['first beyond the tolerance', elementText(found.firstBeyond)],
            ['mean error', numberText(found.meanError)],
          ]}
        />
      )}
      {canDraw ? (
        <>
          <AxisFields
            shape={shape}
            plane={plane}
            onChange={(next) => {
              setPlane(next)
              setView(wholeView(planeExtents(shape, next)))
            }}
          />
          <HeatMap
            path="errors"
            pool="max"
            isSparse={false}
            {...{ query, extents, view, shape, plane }}
            onView={setView}
          />
        </>
      ) : (
        <p class="quiet">Their elements cannot be laid over each other.</p>
      )}
    </section>
  )
}

function elementText(element: ValueDifferences['worst']): string {
  if (!element) return '–'
  const text = (value: unknown): string => (typeof value === 'number' ? numberText(value) : String(value))
  return `[${element.index.join(', ')}]: ${text(element.a)} → ${text(element.b)}`
}

function Lists({ difference: { added, removed } }: { difference: IndexedDifference }) {
  const list = (title: string, items: readonly string[]) =>
    items.length === 0 ? null : (
      <section aria-label={title}>
        <h2>{title}</h2>
        <details open={items.length <= MOST_OPEN}>
          <summary>{countText(items.length)}</summary>
          <ul>
            {items.slice(0, SHOWN).map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        </details>
        {items.length > SHOWN && <p class="quiet">{countText(items.length - SHOWN)} more</p>}
      </section>
    )
  const text = ({ name, dtype, shape }: (typeof added)[number]): string =>
    `${name}: ${dtype}, ${shapeText(shape)}`
  return (
    <>
      {list('Added tensors', added.map(text))}
      {list('Removed tensors', removed.map(text))}
    </>
  )
}
