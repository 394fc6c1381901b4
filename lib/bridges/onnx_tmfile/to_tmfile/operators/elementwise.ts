/** Operators that compute each element alone, and those of two or more operands. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import type { OperatorName, OperatorParams, TmfileTensor } from '../../../../models/tmfile/index.js'
import { Constant } from '../constant.js'
import {
  broadcastShape,
  type COMPARISON,
  compare,
  ELTWISE,
  type EltwiseKind,
  eltwise,
  oneMinus,
  UNARY,
  unary,
} from '../eltwise.js'
import { fuseActivation, fuseBias } from '../fusion.js'
import type { Operand } from '../graph_builder.js'
import { refuse } from '../refusal.js'
import { broadcastOperand, within } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

/** The largest float32, which stands for an absent bound. */
const LARGEST = 3.4028234663852886e38

type Apply = (step: Step, tensor: TmfileTensor) => TmfileTensor

const elementwise = (operator: string, target: string, apply: Apply, note?: string): OperatorRow => ({
  operator,
  target,
  ...(note !== undefined && { note }),
  convert: (step) => apply(step, step.tensor(0)),
})

/** An operator of the engine for every rank. */
const direct = <Name extends OperatorName>(
  operator: string,
  target: Name,
  params: (step: Step) => Partial<OperatorParams[Name]> = () => ({}),
  note?: string,
): OperatorRow =>
  elementwise(operator, target, (step, x) => step.b.emit(target, [x], params(step), x.shape!), note)

/** A kernel for one image of four axes. */
const flat = <Name extends OperatorName>(operator: string, target: Name, note: string): OperatorRow =>
  elementwise(
    operator,
    target,
    ({ b }, x) => {
      const isImage = x.shape!.length === 4 && x.shape![0] === 1
      const shape = isImage ? x.shape! : [1, 1, 1, countOf(x.shape!)]
      return within(b, x, shape, (inner) => b.emit(target, [inner], {}, shape, { fixesBatch: true }))
    },
    note,
  )

const FLAT = 'kernel for one image of four axes: Reshape around other shapes'

const UNARIES = (
  ['Abs', 'Neg', 'Floor', 'Ceil', 'Sqrt', 'Exp', 'Log', 'Sin', 'Cos', 'Tan', 'Asin', 'Acos', 'Atan'] as const
).map((name) => [name, name.toLowerCase() as keyof typeof UNARY] as const)

/** Element types of ONNX that a tensor of floats stands for. */
const FLOATS: ReadonlySet<unknown> = new Set(['float32', 'float16', 'float64', 'bfloat16'])

/** Codes of float, float16, double and bfloat16 in `Cast.to`. */
const FLOAT_CODES: ReadonlySet<number> = new Set([1, 10, 11, 16])

function castTensor(step: Step): TmfileTensor {
  const to = step.view.opType === 'Cast' ? step.number('to', 0) : undefined
  const isFloat = to === undefined ? FLOATS.has(step.dtype(1)) : FLOAT_CODES.has(to)
  const from = step.dtype(0)
  if (isFloat && (FLOATS.has(from) || from === 'bool')) return step.tensor(0)
  refuse(`a cast from ${from} to type ${to ?? step.dtype(1)}; the engine computes in float32`)
}

function prelu(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const slope = step.operand(1)
  const shape = x.shape!
  const aligned = [...Array<number>(Math.max(0, shape.length - slope.shape!.length)).fill(1), ...slope.shape!]
  const isPerChannel = aligned.every((extent, axis) => axis === 1 || extent === 1)
  if (slope instanceof Constant && slope.size === 1) {
    return b.emit('ReLu', [x], { negative_slope: slope.numbers[0]! }, shape)
  }
  if (slope instanceof Constant && isPerChannel && [2, 3, 4].includes(shape.length)) {
    // The kernel for three axes never ends.
    const four = shape.length === 3 ? [shape[0]!, shape[1]!, 1, shape[2]!] : shape
    const stored = b.constant(slope, [slope.size])
    return within(b, x, four, (inner) => b.emit('PReLU', [inner, stored], {}, four))
  }
  // Relu(x) - slope * Relu(-x)
  const positive = b.emit('ReLu', [x], { negative_slope: 0 }, shape)
  const negative = b.emit('ReLu', [unary(b, 'neg', x)], { negative_slope: 0 }, shape)
  return eltwise(b, 'sub', positive, eltwise(b, 'prod', negative, slope))
}

function clip(step: Step): TmfileTensor {
  const bound = (name: string, input: number): number | undefined => {
    if (step.opset < 11) return step.view.attribute(name) ? step.number(name, 0) : undefined
    return step.values(input, `the bound ${name}`)?.[0]
  }
  const [lower, max] = [bound('min', 1), bound('max', 2)]
  // Where the bounds cross, ONNX gives the upper one and the engine the lower one.
  const min = lower !== undefined && max !== undefined ? Math.min(lower, max) : lower
  const x = step.tensor(0)
  if (min === 0 && max === 6 && fuseActivation(step, x, 6)) return x
  if (min === undefined && max === undefined) return x
  const finite = (value: number): number => Math.min(Math.max(value, -LARGEST), LARGEST)
  return step.b.emit('Clip', [x], { max: finite(max ?? LARGEST), min: finite(min ?? -LARGEST) }, x.shape!)
}

function relu(step: Step): TmfileTensor {
  const x = step.tensor(0)
  if (fuseActivation(step, x, 0)) return x
  return step.b.emit('ReLu', [x], { negative_slope: 0 }, x.shape!)
}

const arithmetic = (operator: string, kind: EltwiseKind): OperatorRow => ({
  operator,
  target: 'Eltwise',
  note: `type ${ELTWISE[kind]}; operands in the shapes that the kernel broadcasts, else in full size`,
  convert: (step) => {
    checkBroadcast(step)
    const [one, other] = [step.operand(0), step.operand(1)]
    return (kind === 'sum' && fuseBias(step)) || eltwise(step.b, kind, one, other)
  },
})

/** Before version 7 operands are broadcast on request, from an axis on. */
function checkBroadcast(step: Step): void {
  if (step.opset >= 7) return
  const [one, other] = [step.shape(0), step.shape(1)]
  const isAligned = step.number('axis', -1) === -1 || step.number('axis', -1) === one.length - other.length
  if (String(one) !== String(other) && !isAligned && countOf(other) !== 1)
    refuse('a broadcast from an axis, of operator sets before 7')
}

/** All operands in one shape. */
function fullOperands(step: Step): { operands: Operand[]; shape: readonly number[] } {
  const { operands } = step
  const shape = broadcastShape(operands.map((each) => each.shape!))
  return { shape, operands: operands.map((each) => broadcastOperand(step.b, each, shape)) }
}

function sumOf(step: Step): TmfileTensor {
  const [first, ...others] = step.operands
  if (others.length === 0) return step.tensor(0)
  return others.reduce<Operand>((sum, each) => eltwise(step.b, 'sum', sum, each), first!) as TmfileTensor
}

const joint = (operator: string, target: 'Mean' | 'Maximum'): OperatorRow => ({
  operator,
  target,
  note: 'all operands in full size',
  convert: (step) => {
    const bound = target === 'Maximum' ? scalarBound(step) : undefined
    if (bound)
      return step.b.emit('Clip', [bound.tensor], { max: LARGEST, min: bound.value }, bound.tensor.shape!)
    const { operands, shape } = fullOperands(step)
    if (operands.length === 1) return step.tensor(0)
    return step.b.emit(target, operands, {}, shape, {
      fixesBatch: operands.some((each) => each instanceof Constant),
    })
  },
})

/** A tensor and a constant number, the two operands of Min or Max. */
function scalarBound(step: Step): { tensor: TmfileTensor; value: number } | undefined {
  if (step.inputCount !== 2) return undefined
  const at = [0, 1].find((input) => step.constant(input)?.size === 1)
  if (at === undefined || step.constant(1 - at)) return undefined
  const tensor = step.tensor(1 - at)
  return step.shape(at).length > tensor.shape!.length
    ? undefined
    : { tensor, value: step.constant(at)!.numbers[0]! }
}

function minimum(step: Step): TmfileTensor {
  const { b } = step
  const bound = scalarBound(step)
  if (bound) return b.emit('Clip', [bound.tensor], { max: bound.value, min: -LARGEST }, bound.tensor.shape!)
  const { operands, shape } = fullOperands(step)
  if (operands.length === 1) return step.tensor(0)
  const negative = operands.map((each) =>
    each instanceof Constant ? each.mapped((value) => -value) : unary(b, 'neg', each),
  )
  const fixesBatch = operands.some((each) => each instanceof Constant)
  return unary(b, 'neg', b.emit('Maximum', negative, {}, shape, { fixesBatch }))
}

const comparison = (operator: keyof typeof COMPARISON): OperatorRow => ({
  operator,
  target: 'Comparison',
  note: 'both operands in full size as [1, 1, 1, n]; gives 0 and 1',
  convert: (step) => compare(step.b, operator, step.operand(0), step.operand(1)),
})

function logical(step: Step): TmfileTensor {
  const { b, view } = step
  const [one, other] = [step.operand(0), step.operand(1)]
  if (view.opType === 'And') return eltwise(b, 'prod', one, other)
  if (view.opType === 'Xor') return compare(b, 'NotEqual', one, other)
  const { operands, shape } = fullOperands(step)
  return b.emit('Maximum', operands, {}, shape)
}

/** `c * a + (1 - c) * b`: exact for finite numbers, since c is 0 or 1. */
function where(step: Step): TmfileTensor {
  const { b } = step
  const condition = step.operand(0)
  const inverse =
    condition instanceof Constant ? condition.mapped((value) => Number(value === 0)) : oneMinus(b, condition)
  const [one, other] = [selected(step, condition, 1), selected(step, inverse, 2)]
  if (one instanceof Constant && other instanceof Constant) refuse('all operands are constant')
  step.report.notes.add(
    'Where is computed as c * a + (1 - c) * b: an infinity or NaN of the branch that is not taken shows.',
  )
  return eltwise(b, 'sum', one, other)
}

/** A branch times its condition; of two constants a constant. */
function selected(step: Step, condition: Operand, input: number): Operand {
  const branch = step.operand(input)
  if (!(branch instanceof Constant)) return eltwise(step.b, 'prod', condition, branch)
  const finite = branch.mapped((value) => Math.min(Math.max(value, -LARGEST), LARGEST))
  if (!(condition instanceof Constant)) return eltwise(step.b, 'prod', condition, finite)
  const shape = broadcastShape([condition.shape, branch.shape])
  const [left, right] = [condition.expanded(shape), finite.expanded(shape)]
  return right.mapped((value, index) => (left.numbers[index] ? value : 0))
}

export const ELEMENTWISE_ROWS: readonly OperatorRow[] = [
  ...UNARIES.map(([operator, kind]) =>
    elementwise(operator, 'Unary', ({ b }, x) => unary(b, kind, x), `type ${UNARY[kind]}`),
  ),
  direct('Sigmoid', 'Sigmoid'),
  direct('Tanh', 'Tanh'),
  direct('Reciprocal', 'Reciprocal'),
  elementwise(
    'Gelu',
    'Gelu',
    (step, x) =>
      step.text('approximate', 'none') === 'none'
        ? step.b.emit('Gelu', [x], {}, x.shape!)
        : refuse('approximate is tanh; the engine has the exact form'),
    'also where it is written with Erf',
  ),
  flat('Round', 'Round', `ties away from zero, in ONNX to even; ${FLAT}`),
  flat('Softplus', 'Softplus', FLAT),
  flat('Mish', 'Mish', FLAT),
  elementwise('Relu', 'ReLu', relu, 'becomes the activation of a convolution before it'),
  direct('LeakyRelu', 'ReLu', (step) => ({ negative_slope: step.number('alpha', 0.01) })),
  {
    operator: 'PRelu',
    target: 'PReLU',
    note: 'slopes per channel; other slopes by ReLu and Eltwise',
    convert: prelu,
  },
  direct('Elu', 'Elu', (step) => ({ alpha: step.number('alpha', 1) })),
  elementwise('Selu', 'Selu', (step, x) => {
    const params = {
      alpha: step.number('alpha', 1.6732632423543772),
      lambda: step.number('gamma', 1.0507009873554805),
    }
    const shape = x.shape!.length === 4 ? x.shape! : [1, 1, 1, countOf(x.shape!)]
    return within(step.b, x, shape, (inner) => step.b.emit('Selu', [inner], params, shape))
  }),
  direct('HardSigmoid', 'Hardsigmoid', (step) => ({
    alpha: step.number('alpha', 0.2),
    beta: step.number('beta', 0.5),
  })),
  direct('HardSwish', 'HardSwish', () => ({ alpha: 1 / 6, beta: 0.5 })),
  {
    operator: 'Clip',
    target: 'Clip',
    note: 'constant bounds; 0 to 6 becomes the activation of a convolution before it',
    convert: clip,
  },
  arithmetic('Add', 'sum'),
  arithmetic('Sub', 'sub'),
  arithmetic('Mul', 'prod'),
  arithmetic('Div', 'div'),
  arithmetic('Pow', 'pow'),
  { operator: 'Sum', target: 'Eltwise', note: 'a chain of type 2', convert: sumOf },
  joint('Mean', 'Mean'),
  joint('Max', 'Maximum'),
  {
    operator: 'Min',
    target: 'Unary, Maximum, Unary',
    note: 'the negative of the largest negative; Clip for a number',
    convert: minimum,
  },
  comparison('Equal'),
  comparison('Greater'),
  comparison('GreaterOrEqual'),
  comparison('Less'),
  comparison('LessOrEqual'),
  elementwise('Not', 'Unary, Eltwise', ({ b }, x) => oneMinus(b, x), '1 - x'),
  { operator: 'And', target: 'Eltwise', note: 'type 0', convert: logical },
  { operator: 'Or', target: 'Maximum', convert: logical },
  { operator: 'Xor', target: 'Comparison', note: 'type 1', convert: logical },
  {
    operator: 'Where',
    target: 'Eltwise',
    note: 'c * a + (1 - c) * b; an infinity or NaN of the other branch shows',
    convert: where,
  },
  ...['Identity', 'Dropout'].map(
    (operator): OperatorRow => ({
      operator,
      target: 'nothing',
      ...(operator === 'Dropout' && { note: 'as in inference; its mask must be unused' }),
      convert: (step) => {
        if (step.isUsed(1)) refuse('the mask is used')
        if (step.opset >= 12 && (step.values(2, 'training_mode')?.[0] ?? 0) !== 0)
          refuse('training_mode is 1')
        return step.tensor(0)
      },
    }),
  ),
  ...['Cast', 'CastLike'].map(
    (operator): OperatorRow => ({
      operator,
      target: 'nothing',
      note: 'between floats, and from bool to float',
      convert: castTensor,
    }),
  ),
]
