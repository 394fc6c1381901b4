/**
 * Tensors whose elements lie at regular distances in a larger array: views of numpy and torch. Where the strides nest, as those
 * of transposed, channels-last and sliced arrays do, the view is a region of a permuted array and the reorder kernels read it;
 * else its elements are gathered. Either way nothing is read before someone asks for bytes.
 */
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { MAX_PERMUTED_AXES, permutedLayout } from '../layout/permuted_layout.js'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { type StridedInit, StridedSource } from './strided_source.js'

/** The view as a row-major tensor. */
export function stridedTensor(init: StridedInit): StoredTensor {
  const { source, start, dtype, shape, offset, name, metadata, quantization } = init
  if (isContiguous(init)) {
    // No byte of an empty view is read, wherever it says that it starts.
    const first = shape.includes(0) ? start : start + offset * bytesOf(dtype)
    const contiguous = { source, start: first, dtype, shape, name, metadata }
    return new StoredTensor(quantization ? { ...contiguous, quantization } : contiguous)
  }
  const nested = nestedTensor(init)
  // Lazy tensors carry no quantization.
  if (nested && !quantization) return nested
  const about = { dtype, shape, name, metadata, ...(quantization && { quantization }) }
  return new StoredTensor({ ...about, source: nested?.source ?? new StridedSource(init), start: 0 })
}

function bytesOf(dtype: Dtype): number {
  return DTYPES[dtype].bits / 8
}

/** True for an empty view, and for strides of row-major order along all axes of more than one element. */
function isContiguous({ shape, strides }: StridedInit): boolean {
  if (shape.includes(0)) return true
  let expected = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (shape[axis] === 1) continue
    if (strides[axis] !== expected) return false
    expected *= shape[axis]!
  }
  return true
}

/** The view as a region of an array with permuted axes; undefined where its strides do not nest in one. */
function nestedTensor(init: StridedInit): FusedTensor | undefined {
  const { source, start, elements, dtype, shape, strides, name, metadata } = init
  if (shape.length > MAX_PERMUTED_AXES) return undefined
  const long = [...shape.keys()].filter((axis) => shape[axis]! > 1)
  const order = long.sort((one, other) => strides[other]! - strides[one]!)
  const extents = shape.map(() => 1)
  const first = shape.map(() => 0)
  const step = shape.map(() => 1)
  let left = init.offset
  for (const [at, axis] of order.entries()) {
    const isLast = at === order.length - 1
    // The innermost axis may skip elements; the others are rows of what is inside of them.
    const distance = isLast ? 1 : strides[axis]!
    if (strides[axis] === 0) return undefined
    step[axis] = isLast ? strides[axis]! : 1
    first[axis] = Math.floor(left / distance)
    left %= distance
    const end = first[axis]! + (shape[axis]! - 1) * step[axis]! + 1
    const room = at === 0 ? end : strides[order[at - 1]!]! / distance
    if (!Number.isInteger(room) || end > room) return undefined
    extents[axis] = room
  }
  if (extents.reduce((product, extent) => product * extent, 1) > elements) return undefined
  const isPermuted = order.some((axis, at) => at > 0 && axis < order[at - 1]!)
  const layout = isPermuted ? permutedLayout(order, shape.length) : 'row_major'
  const base = new StoredTensor({ source, start, dtype, shape: extents, layout, name, metadata })
  return new FusedTensor({ base, region: { start: first, step, shape }, to: { layout: 'row_major' } })
}
