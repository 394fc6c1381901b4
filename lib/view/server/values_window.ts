/** A small rectangle of a plane, value by value: the number, its bits, and where it is stored. */
import { BLOCK_DTYPES } from '../../dtype/block_types.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { parseLayout } from '../../layout/parse_layout.js'
import { type BlockParts, blockPartsOf } from '../../tensor/block_parts.js'
import { withoutBlocks } from '../../tensor/block_tensor.js'
import { asStored } from '../../tensor/dense.js'
import { reorder } from '../../tensor/reorder.js'
import type { BlockTensor, DenseTensor, Tensor } from '../../tensor/tensor.js'
import { MEANINGS, type PlainNumber, type WindowAnswer } from '../protocol.js'
import type { Parameters } from './parameters.js'
import { indexInTensor, isTransposed, type Plane, partOf, planeOf, rangeOf, sliceable } from './plane.js'
import { numbersOf } from './tensors.js'
import type { KnownFiles } from './viewed_files.js'

/** Values in one answer. */
const MAX_VALUES = 4096

export async function valuesWindow(files: KnownFiles, parameters: Parameters): Promise<WindowAnswer> {
  const found = files.tensorOf(parameters)
  const tensor = withoutBlocks(found.tensor)
  const plane = planeOf(tensor.shape, parameters)
  const rows = rangeOf(parameters, 'rows', plane.rows)
  const columns = rangeOf(parameters, 'columns', plane.columns)
  const count = (rows[1] - rows[0]) * (columns[1] - columns[0])
  if (count > MAX_VALUES)
    throw new TileworkError('ERR_LIMIT', `${count} values are requested; at most ${MAX_VALUES} are allowed.`)
  const window = { plane, rows, columns }
  const { bits } = DTYPES[tensor.dtype]
  if (count === 0) return { rows, columns, values: [], bits }
  if (tensor.kind === 'string') return { rows, columns, values: await stringsOf(tensor, window), bits }
  const as = parameters.oneOf('as', MEANINGS, 'codes')
  const values = await numbersIn(await numbersOf({ ...found, tensor }, as), window)
  if (tensor.kind === 'sparse') return { rows, columns, values, bits }
  if (found.tensor.kind === 'block') {
    return { rows, columns, values, bits, blocks: await blocksOf(found.tensor, window, values as number[]) }
  }
  const offsets = offsetsOf(tensor, window)
  return { rows, columns, values, codes: await codesOf(tensor, window), offsets, bits }
}

/** The parts of each value, and the blocks that hold them, each read once. */
async function blocksOf(
  tensor: BlockTensor,
  window: Window,
  values: readonly number[],
): Promise<NonNullable<WindowAnswer['blocks']>> {
  const { elements, bytes } = BLOCK_DTYPES[tensor.dtype]
  const read = new Map<number, Uint8Array>()
  const parts: BlockParts[] = []
  for (const position of positionsOf(tensor.shape, window)) {
    const block = Math.floor(position / elements)
    const content =
      read.get(block) ?? (await tensor.bytes({ start: block * bytes, end: (block + 1) * bytes }))
    read.set(block, content)
    parts.push(blockPartsOf(tensor.dtype, content, position % elements, values[parts.length]!))
  }
  return {
    codes: parts.map(({ code }) => plainValue(code)),
    scales: parts.map(({ scale }) => plainValue(scale)),
    minimums: parts.map(({ minimum }) => plainValue(minimum)),
  }
}

/** Places of the values in row-major order of the tensor. */
function positionsOf(shape: readonly number[], window: Window): number[] {
  return places(window, (row, column) =>
    indexInTensor(window.plane, row, column).reduce((at, position, axis) => at * shape[axis]! + position, 0),
  )
}

interface Window {
  readonly plane: Plane
  readonly rows: readonly [number, number]
  readonly columns: readonly [number, number]
}

async function stringsOf(
  tensor: Tensor & { kind: 'string' },
  { plane, ...window }: Window,
): Promise<string[]> {
  const strings = await tensor.strings()
  return positionsOf(tensor.shape, { plane, ...window }).map((position) => strings[position]!)
}

/** Maps every position of a window, in row-major order. */
function places<T>({ rows, columns }: Window, of: (row: number, column: number) => T): T[] {
  const result: T[] = []
  for (let row = rows[0]; row < rows[1]; row++)
    for (let column = columns[0]; column < columns[1]; column++) result.push(of(row, column))
  return result
}

/** Reorders a list from the order of the tensor's axes to the order of the window. */
function inWindowOrder<T>({ plane, rows, columns }: Window, list: readonly T[]): readonly T[] {
  if (!isTransposed(plane)) return list
  const [height, width] = [rows[1] - rows[0], columns[1] - columns[0]]
  return Array.from({ length: list.length }, (_, at) => list[(at % width) * height + Math.floor(at / width)]!)
}

function windowOf(tensor: DenseTensor, { plane, rows, columns }: Window): DenseTensor {
  const [row, column] = [rows, columns].map(([start, end]) => ({ start, end, step: 1 }))
  return partOf(tensor, plane, row!, column!)
}

async function numbersIn(tensor: DenseTensor, window: Window): Promise<readonly (PlainNumber | boolean)[]> {
  const array = await windowOf(await sliceable(tensor), window).toTypedArray()
  const { kind } = DTYPES[tensor.dtype]
  const values = Array.from(array as ArrayLike<number | bigint>, plainValue)
  if (kind === 'bool')
    return inWindowOrder(
      window,
      values.map((value) => value !== 0),
    )
  if (kind !== 'complex') return inWindowOrder(window, values)
  const pairs = Array.from({ length: values.length / 2 }, (_, at) => {
    const imaginary = String(values[2 * at + 1])
    return `${values[2 * at]}${imaginary.startsWith('-') ? '' : '+'}${imaginary}i`
  })
  return inWindowOrder(window, pairs)
}

function plainValue(value: number | bigint): PlainNumber {
  const number = Number(value)
  return typeof value === 'bigint' && !Number.isSafeInteger(number) ? String(value) : number
}

/** The stored bits of each value in hexadecimal. */
async function codesOf(tensor: DenseTensor, window: Window): Promise<readonly string[]> {
  const source = await sliceable(tensor)
  const bytes = await reorder(windowOf(source, window), 'row_major').bytes()
  const { bits } = DTYPES[source.dtype]
  // Two-bit elements were unpacked to sign-extended bytes.
  const mask = 2 ** DTYPES[tensor.dtype].bits - 1
  const codeAt = (at: number): string => {
    if (bits < 8) return hex((bytes[Math.floor((at * bits) / 8)]! >> ((at * bits) % 8)) & mask, 1)
    if (mask < 255) return hex(bytes[at]! & mask, 1)
    const code = bytes.slice((at * bits) / 8, ((at + 1) * bits) / 8).reverse()
    return Array.from(code, (byte) => hex(byte, 2)).join('')
  }
  const count = (window.rows[1] - window.rows[0]) * (window.columns[1] - window.columns[0])
  return inWindowOrder(
    window,
    Array.from({ length: count }, (_, at) => codeAt(at)),
  )
}

function hex(number: number, digits: number): string {
  return number.toString(16).padStart(digits, '0')
}

/** Offsets in the storage of the tensor, in elements. */
function offsetsOf(tensor: DenseTensor, window: Window): number[] {
  const { layout, lower, upper } = asStored(tensor).storage
  const { shape, dtype } = tensor
  const isPadded = [...lower, ...upper].some((count) => count > 0)
  const options = { dtype, ...(isPadded && { lower, upper }) }
  const placed = parseLayout(layout)
  if (layout === 'row_major' && !isPadded) {
    return positionsOf(shape, window)
  }
  return places(window, (row, column) =>
    placed.offsetOf(shape, indexInTensor(window.plane, row, column), options),
  )
}
