/**
 * A plane as a heat map: the server pools it to the cells of the canvas. Wheel, buttons and keys zoom down to single values, whose
 * bits and offsets the tooltip then shows.
 */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { MARK, POOLS, type Pool, type WindowAnswer } from '../../protocol.js'
import { ask, askTile, type Query, type Tile } from '../api.js'
import {
  isLight,
  markColours,
  PALETTES,
  type Palette,
  paletteBytes,
  paletteColour,
  shareOf,
  stepOf,
} from '../colours.js'
import { Choice } from '../parts/parts.js'
import { type Loaded, useLoad } from '../parts/use_load.js'
import { useWidth } from '../parts/use_width.js'
import { countText, digitsText, numberText } from '../text.js'
import { type Extents, indexText, type PlaneChoice } from './axes.js'

/** The visible rectangle of the plane. */
export interface View {
  readonly rows: readonly [start: number, end: number]
  readonly columns: readonly [start: number, end: number]
}

export function wholeView({ rows, columns }: Extents): View {
  return { rows: [0, rows], columns: [0, columns] }
}

interface Props {
  /** Where tiles come from. */
  path: string
  query: Query
  extents: Extents
  view: View
  onView: (view: View) => void
  isSparse: boolean
  shape: readonly number[]
  plane: PlaneChoice
  /** The only pool that makes sense, for errors. */
  pool?: Pool
}

/** Values each way that are read around the pointer, for its tooltip. */
const BLOCK = 32
const HEIGHT = 420

export function HeatMap(props: Props) {
  const { path, query, extents, view, onView, isSparse } = props
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [chosen, setPool] = useState<Pool>('mean')
  const [chosenPalette, setPalette] = useState<Palette>()
  const [pointed, setPointed] = useState<Cell>()
  const pool = props.pool ?? (isSparse ? 'max' : chosen)
  const height = Math.min(HEIGHT, Math.max(48, 24 * (view.rows[1] - view.rows[0])))
  const asked = {
    ...query,
    rows: view.rows,
    columns: view.columns,
    height,
    width: Math.min(width, 1024),
    pool,
  }
  const key = width === 0 ? undefined : JSON.stringify([path, asked])
  const tile = useLoad(key, async (signal) => ({ ...(await askTile(path, asked, signal)), view }))
  // Once values of both signs were seen, a part with one of them keeps its colours.
  const isSigned = useRef(false)
  const { low, high } = tile.value ?? {}
  isSigned.current ||= (low ?? 0) < 0 && (high ?? 0) > 0
  const palette = chosenPalette ?? (isSigned.current ? 'diverging' : 'viridis')
  const block = path === 'tile' && pointed && tile.value ? blockAt(pointed, tile.value, extents) : undefined
  const valuesQuery = { ...query, ...block }
  const values = useLoad(block && JSON.stringify(valuesQuery), (signal) =>
    ask<WindowAnswer>('values', valuesQuery, signal),
  )
  const show = (next: View): void => {
    setPointed(undefined)
    onView(next)
  }
  return (
    <div class="heatmap">
      <Controls extents={extents} view={view} onView={show}>
        {!isSparse && props.pool === undefined && (
          <Choice label="Cells show" value={chosen} names={POOLS} onChange={setPool} />
        )}
        <Choice label="Colours" value={palette} names={PALETTES} onChange={setPalette} />
      </Controls>
      <div ref={frame} class="canvas">
        {tile.value && (
          <Canvas
            tile={tile.value}
            {...{ palette, width, height, extents, isSparse }}
            view={tile.value.view}
            onView={show}
            onPoint={setPointed}
            label={describe(props, tile.value)}
          />
        )}
        {pointed && tile.value && (
          <Tooltip
            cell={pointed}
            tile={tile.value}
            values={values.value}
            plane={props.plane}
            isSparse={isSparse}
          />
        )}
      </div>
      <Legend tile={tile} palette={palette} isSparse={isSparse} />
    </div>
  )
}

/** The values around a cell; undefined for a cell of several. */
function blockAt(cell: Cell, { rowsPerCell, columnsPerCell, view }: Tile & { view: View }, extents: Extents) {
  if (rowsPerCell * columnsPerCell > 1) return undefined
  const around = (at: number, extent: number): Range => {
    const start = at - (at % BLOCK)
    return [start, Math.min(extent, start + BLOCK)]
  }
  return {
    rows: around(view.rows[0] + cell.row, extents.rows),
    columns: around(view.columns[0] + cell.column, extents.columns),
  }
}

function describe(
  { isSparse }: Props,
  { cellRows, cellColumns, low, high, view }: Tile & { view: View },
): string {
  const what = isSparse ? 'Spy plot' : 'Heat map'
  const place = `rows ${view.rows[0]} to ${view.rows[1] - 1}, columns ${view.columns[0]} to ${view.columns[1] - 1}`
  const range = low === null ? 'no finite value' : `from ${numberText(low)} to ${numberText(high)}`
  return `${what} of ${place} in ${cellRows} × ${cellColumns} cells, ${range}. Arrow keys move, plus and minus zoom, 0 shows all.`
}

function Controls(props: {
  extents: Extents
  view: View
  onView: (view: View) => void
  children: preact.ComponentChildren
}) {
  const { extents, view, onView } = props
  return (
    <div class="fields">
      <span class="buttons">
        <button type="button" onClick={() => onView(zoomed(view, extents, 0.5))}>
          Zoom in
        </button>
        <button type="button" onClick={() => onView(zoomed(view, extents, 2))}>
          Zoom out
        </button>
        <button type="button" onClick={() => onView(wholeView(extents))}>
          Whole
        </button>
      </span>
      {props.children}
    </div>
  )
}

type Range = readonly [start: number, end: number]

/** @param share - where in the range the zoom has its centre, 0 to 1 */
function zoomRange([start, end]: Range, extent: number, factor: number, share: number): Range {
  const length = Math.max(1, Math.min(extent, Math.round((end - start) * factor)))
  const centre = start + share * (end - start)
  return movedRange([0, length], extent, Math.round(centre - share * length))
}

function movedRange([start, end]: Range, extent: number, by: number): Range {
  const length = end - start
  const at = Math.max(0, Math.min(extent - length, start + by))
  return [at, at + length]
}

function zoomed({ rows, columns }: View, extents: Extents, factor: number, at = { x: 0.5, y: 0.5 }): View {
  return {
    rows: zoomRange(rows, extents.rows, factor, at.y),
    columns: zoomRange(columns, extents.columns, factor, at.x),
  }
}

/** @param x - share of the visible columns to move by; y of the rows */
function moved({ rows, columns }: View, extents: Extents, x: number, y: number): View {
  const by = ([start, end]: Range, share: number): number =>
    Math.sign(share) * Math.ceil(Math.abs(share) * (end - start))
  return {
    rows: movedRange(rows, extents.rows, by(rows, y)),
    columns: movedRange(columns, extents.columns, by(columns, x)),
  }
}

/** A cell of the tile, and where the pointer is. */
interface Cell {
  readonly row: number
  readonly column: number
  readonly x: number
  readonly y: number
}

interface CanvasProps {
  tile: Tile
  palette: Palette
  width: number
  height: number
  extents: Extents
  view: View
  isSparse: boolean
  label: string
  onView: (view: View) => void
  onPoint: (cell: Cell | undefined) => void
}

function Canvas(props: CanvasProps) {
  const { tile, palette, width, height, extents, view, onView, onPoint } = props
  const canvas = useRef<HTMLCanvasElement>(null)
  const dragged = useRef<{ x: number; y: number; view: View }>(undefined)
  useLayoutEffect(() => draw(canvas.current!, tile, palette, props.isSparse), [tile, palette, width, height])
  const shareOf = (event: PointerEvent | WheelEvent): { x: number; y: number } => ({
    x: Math.min(0.9999, Math.max(0, event.offsetX / width)),
    y: Math.min(0.9999, Math.max(0, event.offsetY / height)),
  })
  useEffect(() => {
    // A wheel listener of Preact would be passive, and the page would scroll.
    const turn = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas.current) return
      event.preventDefault()
      onView(zoomed(view, extents, event.deltaY > 0 ? 1.5 : 1 / 1.5, shareOf(event)))
    }
    canvas.current!.addEventListener('wheel', turn, { passive: false })
    return () => canvas.current?.removeEventListener('wheel', turn)
  })
  const point = (event: PointerEvent): void => {
    const at = shareOf(event)
    const start = dragged.current
    if (start) {
      const by = (range: Range, share: number): number => Math.round(share * (range[1] - range[0]))
      const { rows, columns } = start.view
      onView({
        rows: movedRange(rows, extents.rows, by(rows, start.y - at.y)),
        columns: movedRange(columns, extents.columns, by(columns, start.x - at.x)),
      })
      return
    }
    onPoint({
      row: Math.floor(at.y * tile.cellRows),
      column: Math.floor(at.x * tile.cellColumns),
      x: event.offsetX,
      y: event.offsetY,
    })
  }
  const press = (event: KeyboardEvent): void => {
    const next = keyedView(event.key, view, extents)
    if (!next) return
    event.preventDefault()
    onView(next)
  }
  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={props.label}
      tabIndex={0}
      style={{ width: `${width}px`, height: `${height}px` }}
      width={width * devicePixelRatio}
      height={height * devicePixelRatio}
      onPointerMove={point}
      onPointerLeave={() => onPoint(undefined)}
      onPointerDown={(event) => {
        dragged.current = { ...shareOf(event), view }
        event.currentTarget.setPointerCapture(event.pointerId)
      }}
      onPointerUp={() => {
        dragged.current = undefined
      }}
      onDblClick={() => onView(zoomed(view, extents, 0.5))}
      onKeyDown={press}
    />
  )
}

function keyedView(key: string, view: View, extents: Extents): View | undefined {
  const moves: Readonly<Record<string, readonly [number, number]>> = {
    ArrowLeft: [-0.25, 0],
    ArrowRight: [0.25, 0],
    ArrowUp: [0, -0.25],
    ArrowDown: [0, 0.25],
  }
  const move = moves[key]
  // biome-ignore lint/plugin: a pair
  if (move) return moved(view, extents, ...move)
  if (key === '+' || key === '=') return zoomed(view, extents, 0.5)
  if (key === '-') return zoomed(view, extents, 2)
  return key === '0' ? wholeView(extents) : undefined
}

/** Pixels of a cell from which its value is written into it. */
const TEXT_WIDTH = 46
const TEXT_HEIGHT = 16

function draw(canvas: HTMLCanvasElement, tile: Tile, palette: Palette, isSparse: boolean): void {
  const context = canvas.getContext('2d')!
  const { width, height } = canvas
  context.imageSmoothingEnabled = false
  context.clearRect(0, 0, width, height)
  const image = new OffscreenCanvas(tile.cellColumns, tile.cellRows)
  image.getContext('2d')!.putImageData(imageOf(tile, palette, isSparse), 0, 0)
  context.drawImage(image, 0, 0, width, height)
  const cell = { width: width / tile.cellColumns, height: height / tile.cellRows }
  const scale = devicePixelRatio
  if (cell.width < TEXT_WIDTH * scale || cell.height < TEXT_HEIGHT * scale || isSparse) return
  context.font = `${11 * scale}px system-ui, sans-serif`
  context.textAlign = 'center'
  context.textBaseline = 'middle'
  for (const [at, value] of tile.values.entries()) {
    const [row, column] = [Math.floor(at / tile.cellColumns), at % tile.cellColumns]
    context.fillStyle =
      tile.marks[at]! & MARK.empty || isLight(palette, shareOf(palette, tile.low, tile.high, value))
        ? '#000'
        : '#fff'
    const text = tile.marks[at]! & MARK.empty ? markText(tile.marks[at]!) : digitsText(value, 4)
    context.fillText(text, (column + 0.5) * cell.width, (row + 0.5) * cell.height, cell.width - 4 * scale)
  }
}

function imageOf(tile: Tile, palette: Palette, isSparse: boolean): ImageData {
  const { cellRows, cellColumns, values, marks, low, high } = tile
  const image = new ImageData(cellColumns, cellRows)
  const table = paletteBytes(palette)
  for (let cell = 0; cell < values.length; cell++) {
    const step = 3 * stepOf(shareOf(palette, low, high, values[cell]!))
    const mark = marks[cell]!
    // Cells without entries stay transparent.
    if (isSparse && mark & MARK.empty) continue
    const colour =
      mark & ~MARK.empty ? markColour(palette, mark) : [table[step]!, table[step + 1]!, table[step + 2]!]
    image.data.set([...colour, 255], 4 * cell)
  }
  return image
}

function markColour(palette: Palette, mark: number): number[] {
  const { nan, infinity, negativeInfinity } = markColours(palette)
  const colour = mark & MARK.nan ? nan : mark & MARK.infinity ? infinity : negativeInfinity
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
}

function markText(mark: number): string {
  return [
    mark & MARK.nan ? 'NaN' : '',
    mark & MARK.infinity ? '+∞' : '',
    mark & MARK.negativeInfinity ? '−∞' : '',
  ]
    .filter((text) => text !== '')
    .join(' ')
}

interface TooltipProps {
  cell: Cell
  tile: Tile & { view: View }
  values: WindowAnswer | undefined
  plane: PlaneChoice
  isSparse: boolean
}

function Tooltip({ cell, tile, values, plane, isSparse }: TooltipProps) {
  const { rowsPerCell, columnsPerCell, view } = tile
  const row = view.rows[0] + cell.row * rowsPerCell
  const column = view.columns[0] + cell.column * columnsPerCell
  const at = cell.row * tile.cellColumns + cell.column
  const mark = markText(tile.marks[at] ?? 0)
  const isRight = cell.column > tile.cellColumns / 2
  const pooled = isSparse
    ? `${countText(tile.values[at] || 0)} entries`
    : numberText(tile.values[at] ?? Number.NaN)
  const single = rowsPerCell === 1 && columnsPerCell === 1 ? valueAt(values, row, column) : undefined
  const to = (start: number, per: number, end: number): string | number =>
    per === 1 ? start : `${start}–${Math.min(end, start + per) - 1}`
  return (
    <div
      class={isRight ? 'tooltip before' : 'tooltip'}
      style={{ left: `${cell.x}px`, top: `${cell.y}px` }}
      data-testid="tooltip"
    >
      <b>
        {indexText(plane, to(row, rowsPerCell, view.rows[1]), to(column, columnsPerCell, view.columns[1]))}
      </b>
      <br />
      {single ? numberText(single.value) : Number.isNaN(tile.values[at]) && !isSparse ? mark : pooled}
      {!single && mark !== '' && !Number.isNaN(tile.values[at]) && `, and ${mark}`}
      {single?.code !== undefined && (
        <>
          <br />
          bits 0x{single.code}
        </>
      )}
      {single?.offset !== undefined && (
        <>
          <br />
          offset {single.offset}, byte {Math.floor((single.offset * values!.bits) / 8)}
        </>
      )}
    </div>
  )
}

function valueAt(values: WindowAnswer | undefined, row: number, column: number) {
  if (!values) return undefined
  const width = values.columns[1] - values.columns[0]
  const [down, right] = [row - values.rows[0], column - values.columns[0]]
  if (down < 0 || right < 0 || right >= width || row >= values.rows[1]) return undefined
  const at = down * width + right
  return { value: values.values[at]!, code: values.codes?.[at], offset: values.offsets?.[at] }
}

/** Steps of the gradient that a legend draws. */
const STEPS = 24

function Legend({ tile, palette, isSparse }: { tile: Loaded<Tile>; palette: Palette; isSparse: boolean }) {
  if (tile.error !== undefined)
    return (
      <p class="error" role="alert">
        {tile.error}
      </p>
    )
  const { value } = tile
  if (!value) return <p class="quiet">Reading…</p>
  const { low, high, rowsPerCell, columnsPerCell, rowStep, columnStep } = value
  const sampling = rowStep * columnStep
  const { nan, infinity, negativeInfinity } = markColours(palette)
  const colourAt = (share: number): string =>
    paletteColour(palette, shareOf(palette, low, high, (low ?? 0) + share * ((high ?? 0) - (low ?? 0))))
  return (
    <p class="legend" data-testid="legend">
      <span data-testid="low">{numberText(low)}</span>
      <span class="gradient" aria-hidden="true">
        {Array.from({ length: STEPS }, (_, step) => (
          <i key={step} style={{ background: colourAt(step / (STEPS - 1)) }} />
        ))}
      </span>
      <span data-testid="high">
        {numberText(high)}
        {isSparse && ' entries'}
      </span>
      {!isSparse &&
        Object.entries({
          NaN: nan,
          '+∞': infinity,
          '−∞': negativeInfinity,
        }).map(([name, background]) => (
          <span key={name}>
            <i class="swatch" style={{ background }} /> {name}
          </span>
        ))}
      <span class="quiet">
        {rowsPerCell * columnsPerCell > 1 && `a cell is ${rowsPerCell} × ${columnsPerCell} values`}
        {sampling > 1 && `, of which one of ${sampling} was read`}
      </span>
    </p>
  )
}
