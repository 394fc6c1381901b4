/**
 * Movement of elements by operators that the engine computes for every rank and size: Reshape, and around it Transpose, Slice,
 * Gather, Concat and Split on at most four axes. Each function gives the tensor itself where nothing has to move.
 */

import {
  countOf,
  type Shape,
  type SliceRange,
  sameShape,
  withRank,
} from '../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../models/tmfile/index.js'
import { Constant } from './constant.js'
import { positions } from './engine_limits.js'
import type { GraphBuilder, Operand } from './graph_builder.js'
import { refuse } from './refusal.js'

/** Inputs of one Concat: a node counts them in 8 bits. */
const MAX_JOINED = 128

/** Axes of a Transpose in the engine. */
const MAX_TRANSPOSED_RANK = 6

/** A Reshape to a full shape. Extent 0 keeps the batch changeable where axis 0 goes through unchanged. */
export function reshape(b: GraphBuilder, tensor: TmfileTensor, shape: Shape): TmfileTensor {
  const from = tensor.shape!
  const to = shape.length === 0 ? [1] : shape
  if (countOf(from) !== countOf(to)) refuse(`[${from}] does not fit the shape [${to}]`)
  return sameShape(from, to) ? tensor : copy(b, tensor, to)
}

/** A Reshape, also to the same shape: the only way to copy a tensor. */
export function copy(b: GraphBuilder, tensor: TmfileTensor, shape: Shape = tensor.shape!): TmfileTensor {
  const keepsFirst = tensor.shape![0] === shape[0]
  const target = keepsFirst ? [0, ...shape.slice(1)] : [...shape]
  const made = b.emit('Reshape', [tensor], { re_shape: target, is_onnx: 1 }, shape)
  return withRecordOf(made, tensor)
}

/** Movement keeps element type and record of a quantized tensor. */
export function withRecordOf(made: TmfileTensor, from: TmfileTensor): TmfileTensor {
  made.dtype = from.dtype
  made.quantization = from.quantization
  return made
}

export function transpose(b: GraphBuilder, tensor: TmfileTensor, perm: Shape): TmfileTensor {
  const from = tensor.shape!
  const shape = perm.map((axis) => from[axis]!)
  if (perm.every((axis, at) => axis === at)) return tensor
  const moved = perm.filter((axis) => from[axis] !== 1)
  // Where only axes of extent 1 move, the order of the elements stays.
  if (moved.every((axis, at) => at === 0 || axis > moved[at - 1]!)) return reshape(b, tensor, shape)
  if (perm.length > MAX_TRANSPOSED_RANK) return transposeMerged(b, tensor, perm, shape)
  return withRecordOf(b.emit('Transpose', [tensor], { tr_shape: [...perm] }, shape), tensor)
}

/** Joins axes that stay neighbours, so that a higher rank fits. */
function transposeMerged(b: GraphBuilder, tensor: TmfileTensor, perm: Shape, shape: Shape): TmfileTensor {
  const from = tensor.shape!
  const groups: number[][] = []
  for (const axis of perm) {
    const last = groups.at(-1)
    if (last && last.at(-1)! + 1 === axis) last.push(axis)
    else groups.push([axis])
  }
  if (groups.length > MAX_TRANSPOSED_RANK)
    refuse(`a transpose of ${groups.length} separate axes; the engine has at most ${MAX_TRANSPOSED_RANK}`)
  const ordered = [...groups].sort((one, other) => one[0]! - other[0]!)
  const merged = ordered.map((group) => countOf(group.map((axis) => from[axis]!)))
  const order = groups.map((group) => ordered.indexOf(group))
  return reshape(b, transpose(b, reshape(b, tensor, merged), order), shape)
}

/** One axis as the third of four: [1, before, axis, after]. */
function aroundAxis(shape: Shape, axis: number): [number, number, number, number] {
  return [1, countOf(shape.slice(0, axis)), shape[axis]!, countOf(shape.slice(axis + 1))]
}

/** Elements `start, start + step, …` of one axis; the step is positive. */
export function slice(b: GraphBuilder, tensor: TmfileTensor, axis: number, range: SliceRange): TmfileTensor {
  const { start, count, step } = range
  const from = tensor.shape!
  if (count === from[axis] && start === 0 && step === 1) return tensor
  if (count === 0) refuse('the result is empty')
  if (step < 0) {
    const indices = positions(count, (at) => start + at * step)
    return gather(b, tensor, axis, indices)
  }
  const shape = from.with(axis, count)
  const end = start + (count - 1) * step + 1
  const params = { isonnx: 1, begin: start, end, step }
  if (from.length === 4) {
    const made = b.emit('Slice', [tensor], { ...params, axis }, shape, { fixesBatch: axis === 0 })
    return withRecordOf(made, tensor)
  }
  const four = aroundAxis(from, axis)
  const inner = reshape(b, tensor, four)
  const cut = withRecordOf(b.emit('Slice', [inner], { ...params, axis: 2 }, four.with(2, count)), tensor)
  return reshape(b, cut, shape)
}

/** Elements of one axis at constant positions, which are not negative. */
export function gather(
  b: GraphBuilder,
  tensor: TmfileTensor,
  axis: number,
  indices: readonly number[],
): TmfileTensor {
  const from = tensor.shape!
  const shape = from.with(axis, indices.length)
  const step = indices.length > 1 ? indices[1]! - indices[0]! : 1
  const isRegular = step > 0 && indices.every((index, at) => index === indices[0]! + at * step)
  if (isRegular) return slice(b, tensor, axis, { start: indices[0]!, count: indices.length, step })
  if (indices.length === 0) refuse('the result is empty')
  const four = aroundAxis(from, axis)
  const list = b.integers(Constant.ofNumbers('', 'int32', [indices.length], indices))
  const params = { axis: 2, indices_num: indices.length, is_onnx: 0 }
  const made = b.emit('Gather', [reshape(b, tensor, four), list], params, four.with(2, indices.length))
  return reshape(b, withRecordOf(made, tensor), shape)
}

/** Joins tensors along an axis; empty ones are left out. */
export function concat(b: GraphBuilder, parts: readonly Operand[], axis: number): TmfileTensor {
  const used = parts.filter((part) => part.shape![axis] !== 0)
  if (used.length === 0) refuse('the result is empty')
  const [first] = used
  if (used.length === 1 && !(first instanceof Constant)) return first!
  if (used.length > MAX_JOINED) {
    const halves = [used.slice(0, used.length >> 1), used.slice(used.length >> 1)]
    return concat(
      b,
      halves.map((half) => concat(b, half, axis)),
      axis,
    )
  }
  const shapes = used.map(({ shape }) => shape!)
  const extent = shapes.reduce((sum, shape) => sum + shape[axis]!, 0)
  const shape = shapes[0]!.with(axis, extent)
  const record = used.find((part): part is TmfileTensor => !(part instanceof Constant))
  const keepRecord = (made: TmfileTensor): TmfileTensor =>
    record?.quantization && used.every((part) => !(part instanceof Constant) && sameRecord(part, record))
      ? withRecordOf(made, record)
      : made
  if (shape.length <= 4) return keepRecord(b.emit('Concat', used, { axis }, shape))
  const three = ({ length }: Shape, own: Shape): number[] => [
    countOf(own.slice(0, axis)),
    own[axis]!,
    countOf(own.slice(axis + 1, length)),
  ]
  const inner = used.map((part) =>
    part instanceof Constant
      ? part.reshaped(three(part.shape, part.shape))
      : reshape(b, part, three(part.shape!, part.shape!)),
  )
  return reshape(b, keepRecord(b.emit('Concat', inner, { axis: 1 }, three(shape, shape))), shape)
}

export function sameRecord(one: TmfileTensor, other: TmfileTensor): boolean {
  const [left, right] = [one.quantization, other.quantization]
  if (!left || !right) return left === right
  return (
    one.dtype === other.dtype &&
    left.scales.length === right.scales.length &&
    left.scales.every((scale, at) => scale === right.scales[at]) &&
    left.zeroPoints.every((zero, at) => zero === right.zeroPoints[at])
  )
}

/** A tensor several times along one axis, joined by doubling. */
export function repeat(b: GraphBuilder, tensor: TmfileTensor, axis: number, count: number): TmfileTensor {
  if (count === 1) return tensor
  if (count <= 8) return concat(b, Array<TmfileTensor>(count).fill(tensor), axis)
  const pieces: TmfileTensor[] = []
  let power = tensor
  for (let rest = count; rest > 0; rest >>= 1) {
    if (rest & 1) pieces.push(power)
    if (rest > 1) power = concat(b, [power, power], axis)
  }
  return concat(b, pieces, axis)
}

/** A tensor in the shape that numpy broadcasts it to. */
export function broadcastTensor(b: GraphBuilder, tensor: TmfileTensor, shape: Shape): TmfileTensor {
  let made = reshape(b, tensor, withRank(tensor.shape!, shape.length))
  // The innermost axis first: it has the fewest elements to copy.
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    if (made.shape![axis] !== shape[axis]) made = repeat(b, made, axis, shape[axis]!)
  }
  return made
}

/** An operand in a full shape: a constant has its elements repeated. */
export function broadcastOperand(b: GraphBuilder, operand: Operand, shape: Shape): Operand {
  if (!(operand instanceof Constant)) return broadcastTensor(b, operand, shape)
  return sameShape(operand.shape, shape) ? operand : operand.expanded(shape)
}

/** An operand in another shape of as many elements. */
export function reshapeOperand(b: GraphBuilder, operand: Operand, shape: Shape): Operand {
  return operand instanceof Constant ? operand.reshaped(shape) : reshape(b, operand, shape)
}

/** Applies an operator that needs a certain shape, and restores the shape behind it. */
export function within(
  b: GraphBuilder,
  tensor: TmfileTensor,
  shape: Shape,
  apply: (inner: TmfileTensor) => TmfileTensor,
): TmfileTensor {
  return reshape(b, apply(reshape(b, tensor, shape)), tensor.shape!)
}

/** Elements that are added before and after each axis. */
export interface Padding {
  readonly before: Shape
  readonly after: Shape
}

/** Constant elements around a tensor. */
export function padConstant(
  b: GraphBuilder,
  tensor: TmfileTensor,
  { before, after }: Padding,
  value: number,
): TmfileTensor {
  const from = tensor.shape!
  const shape = from.map((extent, axis) => before[axis]! + extent + after[axis]!)
  if (sameShape(from, shape)) return tensor
  const isPlane =
    from.length === 4 && [before[0], after[0], before[1], after[1]].every((count) => count === 0)
  // The kernel fills as many columns on the right as on the left.
  if (isPlane && before[3] === after[3]) {
    const params = { pad_h_0: before[2]!, pad_h_1: after[2]!, pad_w_0: before[3]!, pad_w_1: after[3]!, value }
    return b.emit('Pad', [tensor], { ...params, mode: 0 }, shape)
  }
  let made = tensor
  for (let axis = from.length - 1; axis >= 0; axis--) {
    const block = (count: number): Constant => {
      const own = made.shape!.with(axis, count)
      return Constant.filled(own, value)
    }
    if (before[axis] === 0 && after[axis] === 0) continue
    made = concat(b, [block(before[axis]!), made, block(after[axis]!)], axis)
  }
  return made
}
