/** One layout: its facts, and two grids whose cells point at each other. */
import { useMemo, useState } from 'preact/hooks'
import type { BoundLayout, PlaneOffsets } from '../../protocol.js'
import { ask } from '../api.js'
import { Awaited, Facts } from '../parts/parts.js'
import { useLoad } from '../parts/use_load.js'
import { AxisFields, firstPlane, type PlaneChoice, planeExtents } from '../tensor/axes.js'
import { bytesText, countText, numberText } from '../text.js'
import { CellGrid, type GridCell } from './cell_grid.js'
import { type Colouring, type LayoutChoice, listText } from './choice.js'

/** Slots of the memory that are drawn at a time. */
const SHOWN_SLOTS = 1024
/** Rows and columns of the logical side. */
const SHOWN_EXTENT = 32

type Query = Readonly<Record<string, string>>

export function LayoutView({ choice, colouring }: { choice: LayoutChoice; colouring: Colouring }) {
  const { name, dtype } = choice
  const [shape, lower, upper] = [choice.shape, choice.lower, choice.upper].map(listText)
  const query: Query = { name, shape: shape!, dtype, lower: lower!, upper: upper! }
  const [start, setStart] = useState(0)
  const key = JSON.stringify(query)
  const bound = useLoad(`${key} ${start}`, (signal) =>
    ask<BoundLayout>('layout', { ...query, start, count: SHOWN_SLOTS }, signal),
  )
  return (
    <section class="layout" aria-label={`Layout ${name}`}>
      <h2>{name}</h2>
      <Awaited loaded={bound}>
        {(layout) => (
          <>
            <LayoutSummary layout={layout} />
            <Sides
              key={layout.shape.join()}
              layout={layout}
              query={query}
              colouring={colouring}
              onStart={(slot) => setStart(Math.max(0, Math.min(slot, layout.elements - 1)))}
            />
          </>
        )}
      </Awaited>
    </section>
  )
}

function LayoutSummary({ layout }: { layout: BoundLayout }) {
  const { order, kind, elements, logicalElements, byteLength, digits, onednnTag, notes, aliases } = layout
  const holes = elements - logicalElements
  return (
    <Facts
      facts={[
        ['order', order],
        ['kind', kind],
        ['slots', countText(elements)],
        ['holes', `${countText(holes)} (${numberText((100 * holes) / Math.max(1, elements))} %)`],
        ['bytes', `${countText(byteLength)} (${bytesText(byteLength)})`],
        ...(digits === undefined
          ? []
          : [['digits', digits.map(({ text, radix }) => `${text}: ${radix}`).join(' · ')] as const]),
        ...(onednnTag === undefined ? [] : [['oneDNN', onednnTag] as const]),
        ...(aliases.length === 0 ? [] : [['aliases', aliases.join(', ')] as const]),
        ...notes.map((note) => ['note', note] as const),
      ]}
    />
  )
}

interface SidesProps {
  layout: BoundLayout
  query: Query
  colouring: Colouring
  onStart: (slot: number) => void
}

function Sides({ layout, query, colouring, onStart }: SidesProps) {
  const { shape, axes } = layout
  const [plane, setPlane] = useState<PlaneChoice>(() => firstPlane(shape))
  const [slot, setSlot] = useState<number>()
  const extents = planeExtents(shape, plane)
  const part = {
    rows: [0, Math.min(SHOWN_EXTENT, extents.rows)],
    columns: [0, Math.min(SHOWN_EXTENT, extents.columns)],
  }
  const asked = { ...query, shape, ...plane, ...part }
  const offsets = useLoad(JSON.stringify(asked), (signal) => ask<PlaneOffsets>('offsets', asked, signal))
  const coordinate = slot === undefined ? undefined : coordinateOf(layout, plane, offsets.value, slot)
  return (
    <>
      <AxisFields shape={shape} plane={plane} names={axes} onChange={setPlane} />
      <p class="link" role="status" data-testid="link">
        {slot === undefined
          ? 'Point at a cell, or move to it with the arrow keys: its partner is marked on the other side.'
          : linkText(layout, coordinate, slot)}
      </p>
      <div class="sides">
        <div>
          <h3>Logical</h3>
          <Awaited loaded={offsets}>
            {(found) => (
              <LogicalGrid
                {...{ layout, plane, colouring, slot }}
                offsets={found}
                onSlot={setSlot}
                onOpen={onStart}
              />
            )}
          </Awaited>
          {(extents.rows > SHOWN_EXTENT || extents.columns > SHOWN_EXTENT) && (
            <p class="quiet">
              The first {part.rows[1]} × {part.columns[1]} of {extents.rows} × {extents.columns}.
            </p>
          )}
        </div>
        <div>
          <h3>Memory</h3>
          <MemoryGrid {...{ layout, colouring, slot }} onSlot={setSlot} />
          <MemoryPages layout={layout} onStart={onStart} />
        </div>
      </div>
    </>
  )
}

function linkText(
  { axes, dtype, byteLength, elements }: BoundLayout,
  at: readonly number[] | undefined,
  slot: number,
): string {
  const bytes = byteLength / Math.max(1, elements)
  const place = `offset ${slot}, byte ${Math.floor(slot * bytes)} (${dtype})`
  if (!at) return `${place}: a hole, which no element uses`
  return `${at.map((index, axis) => `${axes[axis] ?? `d${axis} `}${index}`).join(' ')} is at ${place}`
}

/** From the memory where the slot is drawn, otherwise from the plane. */
function coordinateOf(
  { start, cells }: BoundLayout,
  { fixed, rowAxis, columnAxis }: PlaneChoice,
  plane: PlaneOffsets | undefined,
  slot: number,
): readonly number[] | undefined {
  const drawn = cells[slot - start]
  if (drawn !== undefined) return drawn ?? undefined
  const at = plane?.offsets.indexOf(slot) ?? -1
  if (!plane || at < 0) return undefined
  const [row, column] = [Math.floor(at / plane.columns), at % plane.columns]
  return fixed.map((index, axis) => (axis === rowAxis ? row : axis === columnAxis ? column : index))
}

interface GridProps {
  layout: BoundLayout
  colouring: Colouring
  slot: number | undefined
  onSlot: (slot: number | undefined) => void
}

/** Where the colour of an element is in the palette: its offset, or its index among the elements. */
function shareOf({ elements, shape, logicalElements }: BoundLayout, colouring: Colouring) {
  return (slot: number, coordinate: readonly number[]): number => {
    if (colouring === 'memory') return slot / Math.max(1, elements - 1)
    const index = coordinate.reduce((at, position, axis) => at * shape[axis]! + position, 0)
    return index / Math.max(1, logicalElements - 1)
  }
}

function LogicalGrid(
  props: GridProps & { plane: PlaneChoice; offsets: PlaneOffsets; onOpen: (slot: number) => void },
) {
  const { layout, plane, offsets, colouring, slot, onSlot, onOpen } = props
  const cells = useMemo(() => {
    const share = shareOf(layout, colouring)
    const { fixed, rowAxis, columnAxis } = plane
    return offsets.offsets.map((offset, at): GridCell => {
      const [row, column] = [Math.floor(at / offsets.columns), at % offsets.columns]
      const index = fixed.map((each, axis) => (axis === rowAxis ? row : axis === columnAxis ? column : each))
      return {
        slot: offset,
        text: String(offset),
        share: share(offset, index),
        block: Math.floor(offset / layout.blockLength),
      }
    })
  }, [layout, plane, offsets, colouring])
  return (
    <CellGrid
      label={`Logical elements, ${offsets.rows} rows of ${offsets.columns}, with their offsets`}
      cells={cells}
      columns={Math.max(1, offsets.columns)}
      slot={slot}
      onSlot={onSlot}
      onOpen={(chosen) => onOpen(Math.floor(chosen / SHOWN_SLOTS) * SHOWN_SLOTS)}
    />
  )
}

function MemoryGrid({ layout, colouring, slot, onSlot }: GridProps) {
  const { cells: coordinates, start, rowLength, blockLength } = layout
  const cells = useMemo(() => {
    const share = shareOf(layout, colouring)
    return coordinates.map((coordinate, at): GridCell => {
      const block = Math.floor((start + at) / blockLength)
      if (coordinate === null) return { slot: start + at, text: '', share: undefined, block }
      return { slot: start + at, text: coordinate.join(','), share: share(start + at, coordinate), block }
    })
  }, [layout, colouring])
  return (
    <CellGrid
      label={`Memory, ${cells.length} slots in rows of ${rowLength}, with the index of each element`}
      cells={cells}
      columns={rowLength}
      slot={slot}
      onSlot={onSlot}
    />
  )
}

function MemoryPages({ layout, onStart }: { layout: BoundLayout; onStart: (slot: number) => void }) {
  const { start, cells, elements } = layout
  if (cells.length === elements) return null
  return (
    <p class="buttons">
      <button type="button" disabled={start === 0} onClick={() => onStart(start - SHOWN_SLOTS)}>
        Earlier
      </button>
      <button
        type="button"
        disabled={start + cells.length >= elements}
        onClick={() => onStart(start + SHOWN_SLOTS)}
      >
        Later
      </button>
      <span class="quiet">
        slots {countText(start)} to {countText(start + cells.length - 1)} of {countText(elements)}
      </span>
    </p>
  )
}
