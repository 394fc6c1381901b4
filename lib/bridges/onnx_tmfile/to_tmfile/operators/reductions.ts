/** Reductions and softmax. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { unary } from '../eltwise.js'
import { reshape, transpose, within } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'
import { globalPool } from './pooling.js'

/** Types of Reduction; three of them sum absolute values. */
const KINDS = {
  ...{
    ReduceSum: 0,
    ReduceMean: 1,
    ReduceSumSquare: 3,
    ReduceMax: 4,
    ReduceMin: 5,
    ReduceProd: 6,
    ReduceL1: 8,
  },
  ...{ ReduceLogSum: 9, ReduceLogSumExp: 10 },
} as const

/** Marks an axis of Reduction that is not reduced. */
const NO_AXIS = -2

function reduce(step: Step): TmfileTensor {
  const { b, view } = step
  const rank = step.shape(0).length
  const since = view.opType === 'ReduceSum' ? 13 : 18
  const given = step.axes(since, rank)
  const isNone = !given || given.length === 0
  const x = step.tensor(0)
  if (isNone && step.number('noop_with_empty_axes', 0) !== 0) return x
  const all = Array.from({ length: rank }, (_, axis) => axis)
  const axes = isNone ? all : [...given].sort((one, other) => one - other)
  const isPlane = rank === 4 && String(axes) === '2,3'
  if (view.opType === 'ReduceMean' && isPlane)
    return reshape(b, globalPool(step, 'average', x), step.output())
  const kept = all.filter((axis) => !axes.includes(axis))
  const moved = transpose(b, x, [...kept, ...axes])
  const extents = (list: readonly number[]): number => countOf(list.map((axis) => x.shape![axis]!))
  const rows = [1, 1, extents(kept), extents(axes)]
  const flat = reshape(b, moved, rows)
  const shape = rows.with(3, 1)
  const made =
    view.opType === 'ReduceL2'
      ? b.emit('ReduceL2', [flat], { axis: 3, keepdim: 1 }, shape)
      : b.emit('Reduction', [flat], reductionParams(view.opType as keyof typeof KINDS), shape)
  return reshape(b, made, step.output())
}

function reductionParams(operator: keyof typeof KINDS) {
  return { dim_0: 3, dim_1: NO_AXIS, dim_2: NO_AXIS, dim_3: NO_AXIS, keepdim: 1, type: KINDS[operator] }
}

/** Softmax along an axis; before version 13 over all axes from one on. */
function softmax(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const shape = x.shape!
  const axis = step.axis('axis', step.opset < 13 ? 1 : -1, Math.max(1, shape.length))
  const isAlong = step.opset >= 13 || shape.slice(axis + 1).every((extent) => extent === 1)
  if (isAlong) return b.emit('Softmax', [x], { axis }, shape)
  const rows = [countOf(shape.slice(0, axis)), countOf(shape.slice(axis))]
  return within(b, x, rows, (inner) => b.emit('Softmax', [inner], { axis: 1 }, rows))
}

export const REDUCTION_ROWS: readonly OperatorRow[] = [
  ...Object.entries(KINDS).map(
    ([operator, kind]): OperatorRow => ({
      operator,
      target: operator === 'ReduceMean' ? 'Reduction or Pooling' : 'Reduction',
      note: `type ${kind}, on [1, 1, rows, reduced]${operator === 'ReduceMean' ? '; over height and width a global Pooling' : ''}`,
      convert: reduce,
    }),
  ),
  { operator: 'ReduceL2', target: 'ReduceL2', note: 'on [1, 1, rows, reduced]', convert: reduce },
  { operator: 'Softmax', target: 'Softmax', note: 'before version 13 on two axes', convert: softmax },
  {
    operator: 'LogSoftmax',
    target: 'Softmax, Unary',
    note: 'type 8 behind it',
    convert: (step) => unary(step.b, 'log', softmax(step)),
  },
]
