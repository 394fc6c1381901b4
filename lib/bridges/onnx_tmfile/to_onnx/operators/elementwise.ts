/**
 * Operators on two or more tensors. The engine broadcasts by counting elements: the larger operand comes first, and the other
 * has one element, as many, one per channel, or one per position of a plane. Small operands get the shape that means the same
 * in ONNX.
 */

import { countOf, type Shape } from '../../../../models/onnx/evaluate/arrays.js'
import type { OperatorName } from '../../../../models/tmfile/index.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { CAST_TO, int } from '../onnx_writer.js'

/** Inputs of a node, the larger first, and the other in a shape that ONNX broadcasts alike. */
export function operands<Name extends OperatorName>(s: NodeScope<Name>): readonly [string, string] {
  const swapped = countOf(s.shape(1)) > countOf(s.shape(0))
  const [large, small] = swapped ? [1, 0] : [0, 1]
  return [s.input(large), s.inputAs(small, broadcastShape(s.shape(large), s.shape(small)))]
}

function broadcastShape(large: Shape, small: Shape): Shape {
  const count = countOf(small)
  if (count === 1) return [1]
  if (count === countOf(large)) return large
  const channels = channelShape(large)
  if (countOf(channels) === count) return channels
  const perImage = large.map((extent, axis) => (axis === 1 ? extent : 1))
  if (large.length >= 3 && countOf(perImage) === count) return perImage
  const plane = large.map((extent, axis) => (axis >= large.length - 2 ? extent : 1))
  const isPlane = large.length >= 3 && countOf(small.slice(-2)) === countOf(plane)
  if (isPlane && count === countOf(plane)) return plane
  return refuse(`its inputs [${large}] and [${small}] do not broadcast in the engine`)
}

/** One element per channel: of axes -4 and -3, or of the first axis of three that is not 1. */
function channelShape(large: Shape): Shape {
  if (large.length >= 4) {
    return large.map((extent, axis) => (axis >= large.length - 4 && axis < large.length - 2 ? extent : 1))
  }
  const axis = large[0] === 1 ? 1 : 0
  return large.map((extent, at) => (at === axis && large.length === 3 ? extent : 1))
}

/** Operators of Eltwise by type, for two inputs. */
const BINARY: Readonly<Record<number, string>> = {
  ...{ 0: 'Mul', 1: 'Mul', 2: 'Add', 4: 'Sub', 5: 'Sub', 6: 'Max', 8: 'Min', 10: 'Div', 16: 'Pow' },
}

/** Operators of Eltwise by type, for its first input. */
const UNARY: Readonly<Record<number, readonly string[]>> = {
  ...{ 7: ['Sqrt', 'Reciprocal'], 11: ['Log'], 12: ['Exp'], 13: ['Sqrt'], 14: ['Floor'] },
}

const [SQUARE, POWER] = [15, 17]

function eltwise(s: NodeScope<'Eltwise'>) {
  const { type } = s.params
  const binary = BINARY[type]
  if (binary !== undefined) return s.finish(binary, operands(s))
  if (type === SQUARE) return s.finish('Mul', [s.input(0), s.input(0)])
  if (type === POWER) return power(s)
  const chain = UNARY[type] ?? refuse(`type ${type} has no kernel in the engine`)
  const inner = chain.length === 1 ? s.input(0) : s.add(chain[0]!, [s.input(0)])
  s.finish(chain.at(-1)!, [inner])
}

/** (shift + scale · x) ^ power */
function power(s: NodeScope<'Eltwise'>) {
  const { shift, power: exponent, scale } = s.params
  const scaled = s.add('Mul', [s.input(0), s.scalar(scale)])
  s.finish('Pow', [s.add('Add', [scaled, s.scalar(shift)]), s.scalar(exponent)])
}

/** Operators of Comparison by type. */
const COMPARISONS = ['Equal', 'Equal', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'] as const
const NOT_EQUAL = 1

function comparison(s: NodeScope<'Comparison'>) {
  const { type } = s.params
  const opType = COMPARISONS[type] ?? refuse(`type ${type} is unknown`)
  const isSwapped = countOf(s.shape(1)) > countOf(s.shape(0))
  const [large, small] = operands(s)
  const compared = s.add(opType, isSwapped ? [small, large] : [large, small])
  const result = type === NOT_EQUAL ? s.add('Not', [compared]) : compared
  s.finish('Cast', [result], { to: int(CAST_TO.float32) })
}

function logical(s: NodeScope<'Logical'>) {
  const opType = ['And', 'Or'][s.params.type] ?? refuse(`type ${s.params.type} is unknown`)
  const [one, other] = operands(s).map((value) => s.add('Cast', [value], { to: int(CAST_TO.bool) }))
  s.finish('Cast', [s.add(opType, [one!, other!])], { to: int(CAST_TO.float32) })
}

/** An operator of any number of tensors of one shape. */
const ofAll = (operator: 'Maximum' | 'Mean' | 'Addn', target: string): OperatorRow =>
  row(operator, target, (s) =>
    s.finish(
      target,
      s.tensors.map((_, index) => s.inputAs(index, s.shape(0))),
    ),
  )

function squaredDifference(s: NodeScope<'SquaredDifference'>) {
  const difference = s.add('Sub', [s.input(0), s.input(1)])
  s.finish('Mul', [difference, difference])
}

export const ELEMENTWISE_ROWS: readonly OperatorRow[] = [
  row(
    'Eltwise',
    'Mul, Add, Sub, Max, Div, Pow, …',
    eltwise,
    'the larger operand first; types 3 and 9 have no kernel',
  ),
  row('BroadMul', 'Mul', (s) => s.finish('Mul', operands(s))),
  ofAll('Maximum', 'Max'),
  ofAll('Mean', 'Mean'),
  ofAll('Addn', 'Sum'),
  row('SquaredDifference', 'Sub, Mul', squaredDifference),
  row('Comparison', 'Equal, Greater, Less, …, Cast', comparison, 'results are 0 and 1'),
  row('Logical', 'And, Or, Cast', logical, 'results are 0 and 1'),
]
