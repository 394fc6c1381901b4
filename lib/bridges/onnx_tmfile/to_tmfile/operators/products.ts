/** Products of matrices. */

import { countOf, type Shape, withRank } from '../../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { Constant } from '../constant.js'
import { broadcastShape, eltwise } from '../eltwise.js'
import type { Operand } from '../graph_builder.js'
import { storedWeights } from '../quantized.js'
import { broadcastOperand, reshape, reshapeOperand, transpose } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

/** `x · weightᵀ` for x [m, k] and a weight [n, k]. */
function fullyConnected(
  step: Step,
  x: TmfileTensor,
  stored: readonly TmfileTensor[],
  count: number,
): TmfileTensor {
  return step.b.emit('FullyConnected', [x, ...stored], { num_output: count }, [x.shape![0]!, count])
}

const number = (value: number): Constant => Constant.ofNumbers('', 'float32', [1], [value])

function gemm(step: Step): TmfileTensor {
  const { b } = step
  const [alpha, beta] = [step.number('alpha', 1), step.number('beta', 1)]
  const isTransposed = (name: string): boolean => step.number(name, 0) !== 0
  const left = step.tensor(0)
  const x = isTransposed('transA') ? transpose(b, left, [1, 0]) : left
  const weight = step.operand(1)
  if (!(weight instanceof Constant)) {
    const y = isTransposed('transB') ? transpose(b, weight, [1, 0]) : weight
    const product = b.emit('MatMul', [x, y], {}, step.output())
    const scaled = alpha === 1 ? product : eltwise(b, 'prod', product, number(alpha))
    return step.has(2) ? withSummand(step, scaled, beta) : scaled
  }
  const rows = isTransposed('transB') ? weight : weight.transposed([1, 0])
  const factor = alpha === 1 ? rows : rows.mapped((value) => value * alpha)
  const [count] = factor.shape as [number]
  const summand = step.has(2) ? step.operand(2) : undefined
  const isBias =
    summand instanceof Constant &&
    (summand.size === 1 || (summand.size === count && summand.shape.at(-1) === count))
  if (!isBias) {
    const product = fullyConnected(step, x, storedWeights(step, factor), count)
    return summand ? withSummand(step, product, beta) : product
  }
  const bias = summand.size === count ? summand.reshaped([count]) : summand.reshaped([1]).expanded([count])
  const scaled = beta === 1 ? bias : bias.mapped((value) => value * beta)
  return fullyConnected(step, x, storedWeights(step, factor, scaled), count)
}

function withSummand(step: Step, product: TmfileTensor, beta: number): TmfileTensor {
  const summand = step.operand(2)
  if (summand instanceof Constant) {
    return eltwise(step.b, 'sum', product, beta === 1 ? summand : summand.mapped((value) => value * beta))
  }
  return eltwise(
    step.b,
    'sum',
    product,
    beta === 1 ? summand : eltwise(step.b, 'prod', summand, number(beta)),
  )
}

export function matMul(step: Step): TmfileTensor {
  const { b } = step
  const [one, other] = [step.operand(0), step.operand(1)]
  const left: Shape = one.shape!.length === 1 ? [1, ...one.shape!] : one.shape!
  const right: Shape = other.shape!.length === 1 ? [...other.shape!, 1] : other.shape!
  const [rows, depth, columns] = [left.at(-2)!, left.at(-1)!, right.at(-1)!]
  const isMatrix = countOf(right.slice(0, -2)) === 1
  if (isMatrix) {
    const flat = countOf(left) / depth
    const x = reshape(b, one instanceof Constant ? b.constant(one) : one, [flat, depth])
    if (other instanceof Constant) {
      const weight = other.reshaped([depth, columns]).transposed([1, 0])
      return reshape(b, fullyConnected(step, x, storedWeights(step, weight), columns), step.output())
    }
    const y = reshape(b, other, [depth, columns])
    return reshape(b, b.emit('MatMul', [x, y], {}, [flat, columns]), step.output())
  }
  const batch = broadcastShape([left.slice(0, -2), right.slice(0, -2)])
  const full = (operand: Operand, own: Shape): Operand => {
    const matrix = own.slice(-2)
    const ranked = reshapeOperand(b, operand, withRank(own, batch.length + 2))
    return reshapeOperand(b, broadcastOperand(b, ranked, [...batch, ...matrix]), [countOf(batch), ...matrix])
  }
  const product = b.emit('MatMul', [full(one, left), full(other, right)], {}, [countOf(batch), rows, columns])
  return reshape(b, product, step.output())
}

export const PRODUCT_ROWS: readonly OperatorRow[] = [
  {
    operator: 'Gemm',
    target: 'FullyConnected',
    note: 'alpha and beta go into constants; MatMul and Eltwise where B or C varies',
    convert: gemm,
  },
  {
    operator: 'MatMul',
    target: 'FullyConnected or MatMul',
    note: 'FullyConnected for a constant matrix, with an Add of one number per column behind it',
    convert: matMul,
  },
]
