/**
 * A rectangle of a plane as a grid of at most 1,024 × 1,024 cells, pooled natively by minimum, maximum or mean. A request reads a
 * bounded number of elements: of a larger rectangle only evenly spaced rows and columns, and the response has their spacing.
 */
import { throwIfAborted } from '../../cancel.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { native } from '../../native/addon.js'
import { cast } from '../../tensor/cast.js'
import type { DenseTensor, SparseTensor } from '../../tensor/tensor.js'
import { MARK, MEANINGS, POOLS, type Pool, type TileFacts } from '../protocol.js'
import type { Answer } from './answer.js'
import type { Parameters } from './parameters.js'
import { isTransposed, type Plane, partOf, planeOf, rangeOf, type Span, sliceable } from './plane.js'
import { numbersOf } from './tensors.js'
import type { KnownFiles } from './viewed_files.js'

/** Most rows and columns of cells: more than most screens show. */
const MAX_CELLS = 1024
/** Most elements that one heat map reads: a quarter of a second on one core. */
const MAX_ELEMENTS = 2 ** 24
/** Elements per read: 2 MiB as float64. */
const BAND_ELEMENTS = 2 ** 18
/** Most entries of a sparse tensor that one request counts. */
const MAX_ENTRIES = 2 ** 23
/** Minimum, maximum, sum and count of a cell. */
const PER_CELL = 4

/** How an axis is divided: every `step`-th index is read, and `perCell` of these form a cell. */
interface Division {
  readonly start: number
  readonly end: number
  readonly step: number
  readonly perCell: number
  readonly cells: number
}

export async function heatMapTile(
  files: KnownFiles,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Answer> {
  const found = files.tensorOf(parameters)
  const plane = planeOf(found.tensor.shape, parameters)
  if (found.tensor.kind === 'sparse') {
    const grid = gridOf(plane, parameters, Number.POSITIVE_INFINITY)
    return tileAnswer(await countEntries(found.tensor, plane, grid, signal), grid, 'max')
  }
  const numbers = await numbersOf(found, parameters.oneOf('as', MEANINGS, 'codes'))
  const read = await numberReader(numbers, plane)
  return pooledTile(plane, read, parameters, signal)
}

/** The absolute error of one tensor against another, as a heat map of a plane of the first. */
export async function errorTile(
  files: KnownFiles,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Answer> {
  const as = parameters.oneOf('as', MEANINGS, 'codes')
  const sideOf = async (side: 'a' | 'b') => {
    const known = files.of(parameters, side)
    const tensor = known.tensor(parameters.whole(`${side}Tensor`, 0, Number.MAX_SAFE_INTEGER))
    return numbersOf({ known, tensor }, as)
  }
  const [a, b] = [await sideOf('a'), await sideOf('b')]
  if (a.shape.join() !== b.shape.join()) {
    const message = `the shapes [${a.shape.join(', ')}] and [${b.shape.join(', ')}] differ; errors have no common plane.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const plane = planeOf(a.shape, parameters)
  const [readA, readB] = [await numberReader(a, plane), await numberReader(b, plane)]
  const read: ReadNumbers = async (rows, columns) => {
    const [ofA, ofB] = await Promise.all([readA(rows, columns), readB(rows, columns)])
    // Equal infinities, and NaN in both, count as no error.
    for (const [at, value] of ofB.entries())
      ofA[at] = Object.is(ofA[at], value) ? 0 : Math.abs(value - ofA[at]!)
    return ofA
  }
  return pooledTile(plane, read, parameters, signal)
}

/** Reads a part of the plane as float64, in row-major order of the tensor's axes. */
type ReadNumbers = (rows: Span, columns: Span) => Promise<Float64Array>

async function numberReader(tensor: DenseTensor, plane: Plane): Promise<ReadNumbers> {
  const source = await sliceable(tensor)
  if (DTYPES[source.dtype].kind === 'complex') {
    return async (rows, columns) =>
      magnitudes((await partOf(source, plane, rows, columns).toTypedArray()) as Float64Array)
  }
  const wide = source.dtype === 'float64' ? source : cast(source, 'float64')
  return async (rows, columns) =>
    (await partOf(wide, plane, rows, columns).toTypedArray()) as unknown as Float64Array
}

function magnitudes(halves: Float32Array | Float64Array): Float64Array {
  return Float64Array.from({ length: halves.length / 2 }, (_, at) =>
    Math.hypot(halves[2 * at]!, halves[2 * at + 1]!),
  )
}

interface Grid {
  readonly rows: Division
  readonly columns: Division
}

function gridOf(plane: Plane, parameters: Parameters, budget = MAX_ELEMENTS): Grid {
  const rows = rangeOf(parameters, 'rows', plane.rows)
  const columns = rangeOf(parameters, 'columns', plane.columns)
  const height = parameters.whole('height', 1, MAX_CELLS, 256)
  const width = parameters.whole('width', 1, MAX_CELLS, 256)
  const [rowCount, columnCount] = [rows[1] - rows[0], columns[1] - columns[0]]
  const rowDivision = divide(rows, height, (rowCount * columnCount) / budget)
  const columnDivision = divide(columns, width, (readCount(rowDivision) * columnCount) / budget)
  return { rows: rowDivision, columns: columnDivision }
}

/** @param excess - factor by which fewer indices should be read; every cell keeps at least one */
function divide([start, end]: readonly [number, number], most: number, excess: number): Division {
  const extent = end - start
  const inCell = Math.max(1, Math.ceil(extent / most))
  const perCell = excess <= 1 ? inCell : Math.max(1, Math.floor(inCell / excess))
  const step = Math.ceil(inCell / perCell)
  return { start, end, step, perCell, cells: Math.ceil(extent / (step * perCell)) }
}

function readCount({ start, end, step }: Division): number {
  return Math.ceil((end - start) / step)
}

/** Accumulators of the cells: PER_CELL numbers and a mark each, row-major. */
interface Cells {
  readonly numbers: Float64Array
  readonly marks: Uint8Array
}

function emptyCells(count: number): Cells {
  const numbers = new Float64Array(PER_CELL * count)
  for (let at = 0; at < numbers.length; at += PER_CELL) {
    numbers[at] = Number.POSITIVE_INFINITY
    numbers[at + 1] = Number.NEGATIVE_INFINITY
  }
  return { numbers, marks: new Uint8Array(count) }
}

async function pooledTile(
  plane: Plane,
  read: ReadNumbers,
  parameters: Parameters,
  signal: AbortSignal,
): Promise<Answer> {
  const grid = gridOf(plane, parameters)
  const pool = parameters.oneOf<Pool>('pool', POOLS, 'mean')
  const turned = isTransposed(plane)
  const cells = await poolParts(
    turned ? { rows: grid.columns, columns: grid.rows } : grid,
    signal,
    (outer, inner) => (turned ? read(inner, outer) : read(outer, inner)),
  )
  return tileAnswer(turned ? transposed(cells, grid) : cells, grid, pool)
}

/** Pools bands of rows; where a row exceeds a band, the band is divided into stripes of whole cells. */
async function poolParts(
  { rows, columns }: Grid,
  signal: AbortSignal,
  read: (rows: Span, columns: Span) => Promise<Float64Array>,
): Promise<Cells> {
  const cells = emptyCells(rows.cells * columns.cells)
  const stripeCells = Math.max(1, Math.floor(BAND_ELEMENTS / columns.perCell))
  for (let firstCell = 0; firstCell < columns.cells; firstCell += stripeCells) {
    const stripe = spanOf(columns, firstCell * columns.perCell, stripeCells * columns.perCell)
    const width = Math.ceil((stripe.end - stripe.start) / stripe.step)
    const bandRows = Math.max(1, Math.floor(BAND_ELEMENTS / width))
    for (let row = 0; row < readCount(rows); row += bandRows) {
      throwIfAborted(signal)
      const numbers = await read(spanOf(rows, row, bandRows), stripe)
      // biome-ignore format: what is pooled, how it is divided, and where it is added
      native().poolCells(
        bytesOf(numbers), width, row,
        rows.perCell, columns.perCell, firstCell, columns.cells,
        bytesOf(cells.numbers), cells.marks,
      )
    }
  }
  return cells
}

/** The span of `count` read indices from number `first` on. */
function spanOf({ start, end, step }: Division, first: number, count: number): Span {
  return { start: start + first * step, end: Math.min(end, start + (first + count) * step), step }
}

function bytesOf({ buffer, byteOffset, byteLength }: Float64Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

function transposed({ numbers, marks }: Cells, { rows, columns }: Grid): Cells {
  const turned = emptyCells(marks.length)
  for (let row = 0; row < rows.cells; row++) {
    for (let column = 0; column < columns.cells; column++) {
      const from = column * rows.cells + row
      const to = row * columns.cells + column
      turned.numbers.set(numbers.subarray(PER_CELL * from, PER_CELL * (from + 1)), PER_CELL * to)
      turned.marks[to] = marks[from]!
    }
  }
  return turned
}

/** The cells of a spy plot: the number of entries, stored as the maximum of the cell. */
async function countEntries(
  tensor: SparseTensor,
  plane: Plane,
  { rows, columns }: Grid,
  signal: AbortSignal,
): Promise<Cells> {
  if (tensor.entryCount > MAX_ENTRIES) {
    const message = `tensor "${tensor.name}" has ${tensor.entryCount} entries; at most ${MAX_ENTRIES} can be drawn.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const cells = emptyCells(rows.cells * columns.cells)
  const indices = await tensor.indices()
  throwIfAborted(signal)
  const rank = tensor.shape.length
  const { fixed, rowAxis, columnAxis } = plane
  const others = [...fixed.keys()].filter((axis) => axis !== rowAxis && axis !== columnAxis)
  const at = (entry: number, axis: number | undefined): number =>
    axis === undefined ? 0 : Number(indices[entry * rank + axis])
  for (let entry = 0; entry < tensor.entryCount; entry++) {
    const [row, column] = [at(entry, rowAxis), at(entry, columnAxis)]
    if (row < rows.start || row >= rows.end || column < columns.start || column >= columns.end) continue
    if (others.some((axis) => at(entry, axis) !== fixed[axis])) continue
    const cell =
      Math.floor((row - rows.start) / rows.perCell) * columns.cells +
      Math.floor((column - columns.start) / columns.perCell)
    const count = (cells.numbers[PER_CELL * cell + 3] ?? 0) + 1
    cells.numbers.set([1, count, count, count], PER_CELL * cell)
  }
  return cells
}

function tileAnswer({ numbers, marks }: Cells, { rows, columns }: Grid, pool: Pool): Answer {
  const count = marks.length
  const body = new Uint8Array(count * 9)
  const values = new Float64Array(body.buffer, 0, count)
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (let cell = 0; cell < count; cell++) {
    const value = pooled(numbers, PER_CELL * cell, pool)
    values[cell] = value
    body[8 * count + cell] = marks[cell]! | (Number.isNaN(value) ? MARK.empty : 0)
    if (value < low) low = value
    if (value > high) high = value
  }
  const facts: TileFacts = {
    cellRows: rows.cells,
    cellColumns: columns.cells,
    rowsPerCell: rows.step * rows.perCell,
    columnsPerCell: columns.step * columns.perCell,
    rowStep: rows.step,
    columnStep: columns.step,
    low: Number.isFinite(low) ? low : null,
    high: Number.isFinite(high) ? high : null,
  }
  return { type: 'application/octet-stream', body, headers: { 'x-tile': JSON.stringify(facts) } }
}

/** NaN for a cell without finite numbers. */
function pooled(numbers: Float64Array, at: number, pool: Pool): number {
  const [min, max, sum, count] = [numbers[at]!, numbers[at + 1]!, numbers[at + 2]!, numbers[at + 3]!]
  if (count === 0) return Number.NaN
  if (pool === 'mean') return sum / count
  if (pool === 'extreme') return Math.abs(min) > Math.abs(max) ? min : max
  return pool === 'min' ? min : max
}
