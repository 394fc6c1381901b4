/** `--values`: the first values of a tensor along its last two axes. */
import { type AnyTensor, DTYPES, dequantize, slice } from '../../index.js'
import { printable } from '../text/printable.js'

/** Most rows and columns of a corner. */
const ROWS = 4
const COLUMNS = 6

/** A value in JSON: a string where a JSON number would not be exact. */
export type CornerValue = number | boolean | string

/** Rows of values along the last two axes, at index 0 of the others. */
export type Corner = readonly (readonly CornerValue[])[]

/** The corner of a tensor; null for one without values that can be listed. */
export async function cornerOf(tensor: AnyTensor): Promise<Corner | null> {
  if (!tensor.hasData) return null
  if (tensor.kind === 'string') return [(await tensor.strings()).slice(0, COLUMNS)]
  if (tensor.kind === 'sparse') return null
  if (tensor.kind === 'block') return cornerOf(dequantize(tensor))
  const { shape } = tensor
  const extents = shape.map((extent, axis) => Math.min(extent, limitOf(axis, shape.length)))
  if (extents.includes(0)) return []
  const columns = extents.at(-1) ?? 1
  // Elements of 2 and 6 bits cannot be sliced.
  const { bits } = DTYPES[tensor.dtype]
  const isWhole = bits === 2 || bits === 6
  const ranges = extents.map((extent) => [0, extent] as const)
  const rowCount = extents.at(-2) ?? 1
  if (isWhole) {
    const row = (at: number): CornerValue[] =>
      Array.from({ length: columns }, (_, column) =>
        // biome-ignore lint/plugin: an index has one number per axis, of which a shape has at most 255
        plain(tensor.at(...indexOf(shape.length, at, column))),
      )
    return Array.from({ length: rowCount }, (_, at) => row(at))
  }
  const values = await slice(tensor, ranges).toTypedArray()
  const perElement = values.length / (rowCount * columns)
  const cells = Array.from({ length: rowCount * columns }, (_, at) =>
    perElement === 1
      ? plain(values[at]!)
      : // A complex number is two floats.
        `${values[2 * at]}${Number(values[2 * at + 1]) < 0 ? '' : '+'}${values[2 * at + 1]}i`,
  )
  return Array.from({ length: rowCount }, (_, row) => cells.slice(row * columns, (row + 1) * columns))
}

function limitOf(axis: number, rank: number): number {
  if (axis === rank - 1) return COLUMNS
  return axis === rank - 2 ? ROWS : 1
}

function indexOf(rank: number, row: number, column: number): number[] {
  return Array.from({ length: rank }, (_, axis) => {
    if (axis === rank - 1) return column
    return axis === rank - 2 ? row : 0
  })
}

function plain(value: number | bigint | boolean): CornerValue {
  if (typeof value === 'boolean') return value
  const number = Number(value)
  return Number.isSafeInteger(number) || (typeof value === 'number' && Number.isFinite(value))
    ? number
    : String(value)
}

/** The corner as indented lines with aligned columns; `…` where the tensor continues. */
export function cornerLines(corner: Corner | null, shape: readonly number[]): string[] {
  if (corner === null) return ['   no values to show']
  if (corner.length === 0) return ['   no elements']
  const cells = corner.map((row) => row.map(valueText))
  const width = cells.flat().reduce((most, cell) => Math.max(most, cell.length), 0)
  const continues = (shape.at(-1) ?? 1) > corner[0]!.length ? '  …' : ''
  const lines = cells.map((row) => `   ${row.map((cell) => cell.padStart(width)).join('  ')}${continues}`)
  return (shape.at(-2) ?? 1) > corner.length ? [...lines, `   ${'…'.padStart(width)}`] : lines
}

/** Five significant digits: enough to distinguish two weights. */
function valueText(value: CornerValue): string {
  if (typeof value === 'string') return printable(value).slice(0, 24)
  return typeof value === 'number' && !Number.isInteger(value)
    ? String(Number(value.toPrecision(5)))
    : String(value)
}
