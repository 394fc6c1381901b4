/** Operators that compute each element alone. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import type { OperatorName } from '../../../../models/tmfile/index.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { type Attributes, CAST_TO, float, int } from '../onnx_writer.js'

/** One node with the same input. */
const direct = <Name extends OperatorName>(
  operator: Name,
  target: string,
  attributes: (params: NodeScope<Name>['params']) => Attributes = () => ({}),
  note?: string,
): OperatorRow =>
  row<Name>(operator, target, (s) => s.finish(target, [s.input(0)], attributes(s.params)), note)

function clip<Name extends OperatorName>(s: NodeScope<Name>, min: number, max: number) {
  s.finish('Clip', [s.input(0), s.scalar(min), s.scalar(max)])
}

/** Operators of Unary by type; a list is applied in order. */
const UNARY: readonly (readonly string[])[] = [
  ...[['Abs'], ['Neg'], ['Floor'], ['Ceil'], [], ['Sqrt'], ['Sqrt', 'Reciprocal'], ['Exp'], ['Log'], ['Sin']],
  ...[['Cos'], ['Tan'], ['Asin'], ['Acos'], ['Atan'], ['Reciprocal'], ['Tanh']],
]

const UNARY_SQUARE = 4

function unary(s: NodeScope<'Unary'>) {
  const { type } = s.params
  const value = s.input(0)
  if (type === UNARY_SQUARE) return s.finish('Mul', [value, value])
  const [first, second] = UNARY[type] ?? refuse(`type ${type} is unknown`)
  if (second === undefined) return s.finish(first!, [value])
  s.finish(second, [s.add(first!, [value])])
}

/** Bounds of a model converted from ONNX are inputs, and win over the parameters. */
function clipOperator(s: NodeScope<'Clip'>) {
  if (s.tensors.length !== 3) return clip(s, s.params.min, s.params.max)
  s.finish('Clip', [s.input(0), s.inputAs(1, []), s.inputAs(2, [])])
}

function prelu(s: NodeScope<'PReLU'>) {
  const rank = s.shape(0).length
  const slopes = countOf(s.shape(1))
  const shape = [slopes, ...Array<number>(Math.max(0, rank - 2)).fill(1)]
  s.finish('PRelu', [s.input(0), s.inputAs(1, slopes === 1 ? [1] : shape)])
}

function leaky(s: NodeScope<'ReLu'>) {
  const { negative_slope } = s.params
  if (negative_slope === 0) return s.finish('Relu', [s.input(0)])
  s.finish('LeakyRelu', [s.input(0)], { alpha: float(negative_slope) })
}

function mish(s: NodeScope<'Mish'>) {
  const gate = s.add('Tanh', [s.add('Softplus', [s.input(0)])])
  s.finish('Mul', [s.input(0), gate])
}

/** The kernel has its constants built in. */
function hardSwish(s: NodeScope<'HardSwish'>) {
  const gate = s.add('HardSigmoid', [s.input(0)], { alpha: float(1 / 6), beta: float(0.5) })
  s.finish('Mul', [s.input(0), gate])
}

/** 0.5 x (1 + erf(x / √2)) */
function gelu(s: NodeScope<'Gelu'>) {
  const value = s.input(0)
  const erf = s.add('Erf', [s.add('Mul', [value, s.scalar(Math.SQRT1_2)])])
  const half = s.add('Mul', [value, s.scalar(0.5)])
  s.finish('Mul', [half, s.add('Add', [erf, s.scalar(1)])])
}

function threshold(s: NodeScope<'Threshold'>) {
  const above = s.add('Greater', [s.input(0), s.scalar(s.params.threshold)])
  s.finish('Cast', [above], { to: int(CAST_TO.float32) })
}

const TIES = 'ONNX rounds ties to even, the engine away from zero'

function round(s: NodeScope<'Round'>) {
  s.note(TIES)
  s.finish('Round', [s.input(0)])
}

export const ACTIVATION_ROWS: readonly OperatorRow[] = [
  row('ReLu', 'Relu, LeakyRelu', leaky),
  row('ReLu6', 'Clip', (s) => clip(s, 0, 6)),
  row('ReLU1', 'Clip', (s) => clip(s, -1, 1)),
  row('Clip', 'Clip', clipOperator),
  row('PReLU', 'PRelu', prelu),
  direct('Elu', 'Elu', ({ alpha }) => ({ alpha: float(alpha) })),
  direct('Selu', 'Selu', ({ alpha, lambda }) => ({ alpha: float(alpha), gamma: float(lambda) })),
  direct('Sigmoid', 'Sigmoid'),
  direct('Logistic', 'Sigmoid'),
  direct('Tanh', 'Tanh'),
  direct('Softplus', 'Softplus'),
  direct('Hardsigmoid', 'HardSigmoid', ({ alpha, beta }) => ({ alpha: float(alpha), beta: float(beta) })),
  row(
    'HardSwish',
    'HardSigmoid, Mul',
    hardSwish,
    'x · clip(x/6 + 1/2, 0, 1); the engine ignores its parameters',
  ),
  row('Mish', 'Softplus, Tanh, Mul', mish),
  row('Gelu', 'Mul, Erf, Add', gelu),
  row('Unary', 'Abs, Neg, Floor, …', unary, 'square: Mul; 1/√x: Sqrt, Reciprocal'),
  direct('Reciprocal', 'Reciprocal'),
  direct('Ceil', 'Ceil'),
  row('Round', 'Round', round, TIES),
  row('Threshold', 'Greater, Cast', threshold),
  direct('Dropout', 'Identity'),
  direct('Noop', 'Identity'),
  direct('Cast', 'Identity', () => ({}), 'floats stay; integers are behind a DequantizeLinear anyway'),
]
