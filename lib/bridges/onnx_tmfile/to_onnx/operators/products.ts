/** Products of matrices, reductions, and recurrent operators. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import { axisOf, reducedAxes } from '../../../../models/tmfile/index.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { int, ints } from '../onnx_writer.js'

/** Everything behind the first axis is one row of the data. */
function fullyConnected(s: NodeScope<'FullyConnected'>) {
  const [input, weight] = [s.shape(0), s.shape(1)]
  const taken = countOf(input.slice(1))
  const rows = [input[0]!, taken]
  const data = input.length === 2 ? s.input(0) : s.reshape(s.input(0), input, rows)
  const bias = s.bias(2)
  const inputs = [data, s.inputAs(1, [weight[0]!, taken]), ...(bias === undefined ? [] : [bias])]
  const output = s.outputShapes[0]!
  if (output.length === 2) return s.finish('Gemm', inputs, { transB: int(1) })
  s.finishReshape(s.add('Gemm', inputs, { transB: int(1) }), [input[0]!, weight[0]!], output)
}

/** Operators of Reduction by type; three types sum absolute values. */
const REDUCTIONS = [
  ...['ReduceSum', 'ReduceMean', 'ReduceL1', 'ReduceSumSquare', 'ReduceMax', 'ReduceMin', 'ReduceProd'],
  ...['ReduceL1', 'ReduceL1', 'ReduceLogSum', 'ReduceLogSumExp'],
]

function reduction(s: NodeScope<'Reduction'>) {
  const { type, keepdim } = s.params
  const opType = REDUCTIONS[type] ?? refuse(`type ${type} is unknown`)
  const axes = reducedAxes(s.params, s.shape(0))!
  const isAll = axes.length === s.shape(0).length && keepdim === 0
  const keeps = { keepdims: int(keepdim === 0 ? 0 : 1) }
  // ONNX takes the axes of a sum as an input. A result without axes is a scalar, and [1] in the engine.
  const given = opType === 'ReduceSum'
  const inputs = [s.input(0), ...(given ? [s.numbers(axes, 'int64')] : [])]
  const attributes = given ? keeps : { ...keeps, axes: ints(axes) }
  if (!isAll) return s.finish(opType, inputs, attributes)
  s.finish('Reshape', [s.add(opType, inputs, attributes), s.numbers([1], 'int64')])
}

function reduceL2(s: NodeScope<'ReduceL2'>) {
  const first = axisOf(s.params.axis, s.shape(0))!
  const axes = s.shape(0).flatMap((_, axis) => (axis >= first ? [axis] : []))
  s.finish('ReduceL2', [s.input(0)], { axes: ints(axes), keepdims: int(1) })
}

/** Initial states are inputs that the engine ignores. */
function lstm(s: NodeScope<'LSTM'>) {
  if (s.tensors.length !== 6)
    refuse(`it has ${s.tensors.length} inputs; with other than 6 the engine writes one step`)
  recurrent(s, 'LSTM', {})
}

function gru(s: NodeScope<'GRU'>) {
  const count = s.tensors.length
  const steps = s.shape(0)[0]!
  if (count !== 5 && !(count === 4 && steps === 1)) {
    refuse(`it has ${count} inputs and ${steps} steps; the engine computes all steps with 5 inputs only`)
  }
  recurrent(s, 'GRU', { linear_before_reset: int(count === 5 ? 1 : 0) })
}

function recurrent(
  s: NodeScope<'LSTM'> | NodeScope<'GRU'>,
  opType: string,
  attributes: Readonly<Record<string, ReturnType<typeof int>>>,
) {
  if (s.params.mxnet_flag !== 0) refuse('mxnet_flag 1 has another order of weights')
  const inputs = [0, 1, 2, 3].map((index) => s.input(index))
  s.finish(opType, inputs, { hidden_size: int(s.params.hidden_size), ...attributes })
}

export const PRODUCT_ROWS: readonly OperatorRow[] = [
  row('FullyConnected', 'Gemm, Reshape', fullyConnected),
  row('MatMul', 'MatMul', (s) => s.finish('MatMul', [s.input(0), s.input(1)])),
  row('Reduction', 'ReduceSum, ReduceMean, …, Reshape', reduction, 'types 2, 7 and 8 are ReduceL1'),
  row('ReduceL2', 'ReduceL2', reduceL2, 'over all axes from `axis` on'),
  row('LSTM', 'LSTM', lstm, 'initial states are ignored, as in the engine'),
  row('GRU', 'GRU', gru, 'five inputs: linear_before_reset 1'),
]
