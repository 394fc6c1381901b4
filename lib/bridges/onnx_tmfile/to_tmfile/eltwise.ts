/**
 * Two operands, by the broadcast rules of the engine's Eltwise kernel, which are not those of ONNX: the larger operand comes first
 * and has at least three axes; the other has one element, one per channel, one plane, or as many. Everything else gets operands
 * of full size.
 */

import { greatest } from '../../../long_lists.js'
import { countOf, type Shape, sameShape, withRank } from '../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../models/tmfile/index.js'
import { Constant } from './constant.js'
import { type GraphBuilder, isConstantOperand, type Operand } from './graph_builder.js'
import { refuse } from './refusal.js'
import { broadcastOperand, reshape, reshapeOperand } from './shaping.js'

/** Types of Eltwise. */
export const ELTWISE = { prod: 0, sum: 2, sub: 4, div: 10, pow: 16 } as const

export type EltwiseKind = keyof typeof ELTWISE

/** Types of Unary. */
export const UNARY = {
  ...{ abs: 0, neg: 1, floor: 2, ceil: 3, sqrt: 5, exp: 7, log: 8, sin: 9, cos: 10, tan: 11 },
  ...{ asin: 12, acos: 13, atan: 14 },
} as const

export function unary(b: GraphBuilder, kind: keyof typeof UNARY, tensor: TmfileTensor): TmfileTensor {
  return b.emit('Unary', [tensor], { type: UNARY[kind] }, tensor.shape!)
}

export function reciprocal(b: GraphBuilder, tensor: TmfileTensor): TmfileTensor {
  return b.emit('Reciprocal', [tensor], {}, tensor.shape!)
}

/** The shape that two operands are broadcast to. */
export function broadcastShape(shapes: readonly Shape[]): Shape {
  const rank = greatest(shapes.map(({ length }) => length))
  const aligned = shapes.map((shape) => withRank(shape, rank))
  return Array.from({ length: rank }, (_, axis) => {
    const extents = aligned.map((shape) => shape[axis]!)
    return extents.find((extent) => extent !== 1) ?? 1
  })
}

/** `one (kind) other`, broadcast. */
export function eltwise(b: GraphBuilder, kind: EltwiseKind, one: Operand, other: Operand): TmfileTensor {
  const shape = broadcastShape([one.shape!, other.shape!])
  const total = countOf(shape)
  if (total === 0) refuse('the result is empty')
  const [left, right] = [countOf(one.shape!), countOf(other.shape!)]
  if (left === total && right === total) return whole(b, kind, one, other, shape)
  if (left === total) return smallSecond(b, kind, one, other, shape)
  if (right === total) return smallFirst(b, kind, one, other, shape)
  return whole(b, kind, one, other, shape)
}

/** Four axes, of which the first is that of the shape, so that a batch may change. */
function fourAxes(shape: Shape): Shape {
  if (shape.length === 4) return shape
  if (shape.length < 4) return [...shape, 1, 1, 1, 1].slice(0, 4)
  return [shape[0]!, shape[1]!, 1, countOf(shape.slice(2))]
}

/** Both operands in full size. */
function whole(b: GraphBuilder, kind: EltwiseKind, one: Operand, other: Operand, shape: Shape): TmfileTensor {
  const isExpanded = [one, other].some((operand) => !sameShape(operand.shape!, shape))
  const four = shape.length < 3 || shape.length > 4 ? fourAxes(shape) : shape
  const operands = [one, other].map((each) => reshapeOperand(b, broadcastOperand(b, each, shape), four))
  const options = { fixesBatch: isExpanded || operands.some(isConstantOperand) }
  return reshape(b, b.emit('Eltwise', operands, { type: ELTWISE[kind] }, four, options), shape)
}

/** The first operand is the smaller one, which the kernel would take for the second. */
function smallFirst(
  b: GraphBuilder,
  kind: EltwiseKind,
  one: Operand,
  other: Operand,
  shape: Shape,
): TmfileTensor {
  const isNumber = one instanceof Constant && one.size === 1
  switch (kind) {
    case 'prod':
    case 'sum':
      return smallSecond(b, kind, other, one, shape)
    case 'sub':
      return smallSecond(b, 'sum', negated(b, other), one, shape)
    case 'div': {
      const inverse = reciprocal(b, other instanceof Constant ? b.constant(other) : other)
      return isNumber && one.numbers[0] === 1
        ? reshape(b, inverse, shape)
        : smallSecond(b, 'prod', inverse, one, shape)
    }
    case 'pow':
      return whole(b, kind, one, other, shape)
  }
}

function negated(b: GraphBuilder, operand: Operand): Operand {
  return operand instanceof Constant ? operand.mapped((value) => -value) : unary(b, 'neg', operand)
}

/** How a small operand repeats in a large one, as the kernel sees it. */
interface Repetition {
  /** Shape of the large operand. */
  readonly large: Shape
  readonly small: Shape
  readonly fixesBatch: boolean
}

function smallSecond(
  b: GraphBuilder,
  kind: EltwiseKind,
  large: Operand,
  small: Operand,
  shape: Shape,
): TmfileTensor {
  const found = repetitionOf(kind, shape, small.shape!)
  // A stored constant as the large operand changes with no batch; it is small in practice.
  if (!found) return whole(b, kind, large, small, shape)
  const second = kind === 'sub' && found.isPlane ? negated(b, small) : small
  const first = reshapeOperand(b, large, found.large)
  const type = ELTWISE[kind === 'sub' && found.isPlane ? 'sum' : kind]
  const operands = [first, reshapeOperand(b, second, found.small)]
  return reshape(
    b,
    b.emit('Eltwise', operands, { type }, found.large, { fixesBatch: found.fixesBatch }),
    shape,
  )
}

/** Undefined where only an operand of full size is right. */
function repetitionOf(
  kind: EltwiseKind,
  shape: Shape,
  given: Shape,
): (Repetition & { readonly isPlane: boolean }) | undefined {
  if (countOf(given) === 1) {
    const large = shape.length < 3 || shape.length > 4 ? fourAxes(shape) : shape
    return { large, small: [1], fixesBatch: false, isPlane: false }
  }
  if (kind === 'pow') return undefined
  const small = withRank(given, shape.length)
  const repeated = shape.map((extent, axis) => extent !== 1 && small[axis] === 1)
  const [first, last] = [repeated.indexOf(true), repeated.lastIndexOf(true)]
  const isRun = (from: number, to: number): boolean =>
    shape.every((extent, axis) => axis < from || axis >= to || extent === 1 || repeated[axis])
  // One element per channel: it repeats along all axes from one on.
  if (isRun(first, shape.length)) {
    const [channels, rest] = [countOf(shape.slice(0, first)), countOf(shape.slice(first))]
    const isImage = shape.length === 4 && shape[0] === 1 && first >= 2 && shape[1] === channels
    const large = isImage ? shape : [1, channels, 1, rest]
    return { large, small: [1, channels, 1, 1], fixesBatch: true, isPlane: false }
  }
  // One plane: it repeats along all axes before one. The kernel takes it for channels where both have one extent.
  const [count, plane] = [countOf(shape.slice(0, last + 1)), countOf(shape.slice(last + 1))]
  if (!isRun(0, last + 1) || count === plane) return undefined
  return { large: [1, count, 1, plane], small: [1, 1, 1, plane], fixesBatch: true, isPlane: true }
}

/** `1 - x`. */
export function oneMinus(b: GraphBuilder, tensor: TmfileTensor): TmfileTensor {
  const one = Constant.ofNumbers('', 'float32', [1], [1])
  return eltwise(b, 'sum', unary(b, 'neg', tensor), one)
}

/** Comparisons of the engine: 0 and 1 as floats. */
export const COMPARISON = {
  Equal: 0,
  NotEqual: 1,
  Greater: 2,
  GreaterOrEqual: 3,
  Less: 4,
  LessOrEqual: 5,
} as const

export function compare(
  b: GraphBuilder,
  kind: keyof typeof COMPARISON,
  one: Operand,
  other: Operand,
): TmfileTensor {
  const shape = broadcastShape([one.shape!, other.shape!])
  const flat = [1, 1, 1, countOf(shape)]
  const operands = [one, other].map((each) => reshapeOperand(b, broadcastOperand(b, each, shape), flat))
  return reshape(
    b,
    b.emit('Comparison', operands, { type: COMPARISON[kind] }, flat, { fixesBatch: true }),
    shape,
  )
}
