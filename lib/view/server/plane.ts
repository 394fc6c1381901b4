/**
 * A plane of a tensor: all elements along two axes, at one index of every other axis. A vector is a plane of one row, a scalar a
 * plane of one element.
 */
import { isMovable } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { tensor as createTensor } from '../../tensor/from_values.js'
import { materialize } from '../../tensor/materialize.js'
import { slice } from '../../tensor/slice.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { untilRejected } from './kept_promises.js'
import type { Parameters } from './parameters.js'

export interface Plane {
  readonly shape: readonly number[]
  /** Undefined where the tensor has no such axis. */
  readonly rowAxis: number | undefined
  readonly columnAxis: number | undefined
  /** An index per axis; ignored for the row and column axes. */
  readonly fixed: readonly number[]
  readonly rows: number
  readonly columns: number
}

/** Every `step`-th index from `start` to before `end`. */
export interface Span {
  readonly start: number
  readonly end: number
  readonly step: number
}

/** Reads `rowAxis`, `columnAxis` and `fixed`; by default the last two axes at index 0 of the others. */
export function planeOf(shape: readonly number[], parameters: Parameters): Plane {
  const rank = shape.length
  const axis = (name: string, fallback: number): number | undefined =>
    fallback < 0 ? undefined : parameters.whole(name, 0, rank - 1, fallback)
  const columnAxis = axis('columnAxis', rank - 1)
  const rowAxis = axis('rowAxis', rank - 2)
  if (rowAxis !== undefined && rowAxis === columnAxis)
    throw new TileworkError('ERR_ARGUMENT', `rowAxis and columnAxis are both ${rowAxis}; they must differ.`)
  const fixed = parameters.list(
    'fixed',
    shape.map(() => 0),
  )
  if (fixed.length !== rank)
    throw new TileworkError('ERR_ARGUMENT', `fixed has ${fixed.length} indices; the tensor has ${rank} axes.`)
  const outside = fixed.findIndex((at, each) => at >= shape[each]! && each !== rowAxis && each !== columnAxis)
  if (outside >= 0) {
    const message = `fixed[${outside}] is ${fixed[outside]}; it must be below the size ${shape[outside]} of the axis.`
    throw new TileworkError('ERR_RANGE', message)
  }
  const extent = (of: number | undefined): number => (of === undefined ? 1 : shape[of]!)
  return { shape, rowAxis, columnAxis, fixed, rows: extent(rowAxis), columns: extent(columnAxis) }
}

/** Reads a range `START,END` within `0,extent`; by default the whole. */
export function rangeOf(parameters: Parameters, name: string, extent: number): [start: number, end: number] {
  const [start = 0, end = extent] = parameters.list(name, [0, extent])
  if (start <= end && end <= extent) return [start, end]
  throw new TileworkError('ERR_RANGE', `${name} is ${start},${end}; it must lie within 0,${extent}.`)
}

/** The index in the tensor of an element of the plane. */
export function indexInTensor({ rowAxis, columnAxis, fixed }: Plane, row: number, column: number): number[] {
  return fixed.map((at, axis) => (axis === rowAxis ? row : axis === columnAxis ? column : at))
}

/** Whether the elements of a column are adjacent in row-major order. */
export function isTransposed({ rowAxis = -1, columnAxis = 0 }: Plane): boolean {
  return rowAxis > columnAxis
}

/** A lazy slice of the plane. It keeps the order of the tensor's axes: column by column where `isTransposed`. */
export function partOf(tensor: DenseTensor, plane: Plane, rows: Span, columns: Span): DenseTensor {
  const { rowAxis, columnAxis, fixed } = plane
  const ranges = fixed.map((at, axis) => {
    if (axis === rowAxis) return rows
    return axis === columnAxis ? columns : { start: at, end: at + 1 }
  })
  return slice(tensor, ranges)
}

/** Most elements of 2 or 6 bits that are unpacked. */
const MAX_UNPACKED = 2 ** 26

const unpacked = new WeakMap<DenseTensor, Promise<DenseTensor>>()

/** The tensor, or an unpacked copy for elements of 2 and 6 bits, which cannot be sliced. */
export async function sliceable(tensor: DenseTensor): Promise<DenseTensor> {
  if (isMovable(tensor.dtype)) return tensor
  if (tensor.size > MAX_UNPACKED) {
    const message = `tensor "${tensor.name}" of ${tensor.dtype} has ${tensor.size} elements; at most ${MAX_UNPACKED} can be shown.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const wide = unpacked.get(tensor) ?? untilRejected(unpack(tensor), () => void unpacked.delete(tensor))
  unpacked.set(tensor, wide)
  return wide
}

async function unpack(tensor: DenseTensor): Promise<DenseTensor> {
  const { name, shape } = tensor
  const values = await tensor.toTypedArray()
  return materialize(createTensor(values, { shape, name }))
}
