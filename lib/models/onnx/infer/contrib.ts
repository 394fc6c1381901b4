/**
 * Types and shapes of the outputs of operators of `com.microsoft`, as far as tools write them into models: what
 * onnxruntime's quantizers, its transformer fusions and MatMulNBits give. Others stay unknown.
 *
 * Source: the operators' documentation in onnxruntime, `docs/ContribOperators.md` of 1.32; compared with its results.
 */
import { ownEntry } from '../../../own_entry.js'
import { broadcast, type Dim, type Dims } from '../evaluate/dims.js'
import { gemm, matmul, recurrent } from './linear.js'
import { concatDims } from './movement.js'
import type { NodeView } from './node_view.js'
import { convolution, pooling } from './windows.js'

export const CONTRIB_DOMAIN = 'com.microsoft'

/** As `OPERATOR_TYPES`. */
export const CONTRIB_TYPES = {
  '=0': `BiasGelu DynamicQuantizeMatMul FastGelu FusedConv FusedGemm FusedMatMul Gelu MatMulBnb4 MatMulNBits
    QLinearAdd QLinearAveragePool QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax QuickGelu
    RotaryEmbedding`,
  '=0 =0 =0': 'DynamicQuantizeLSTM',
  '=0 ? ? =0': 'SkipLayerNormalization SkipSimplifiedLayerNormalization',
  '=1': 'DequantizeLinear QLinearConcat',
  '=2': 'MatMulIntegerToFloat QuantizeLinear',
} as const

type ShapeRule = (node: NodeView) => readonly (Dims | undefined)[]

export function contribShapesOf(node: NodeView): readonly (Dims | undefined)[] {
  return ownEntry(SHAPES, node.opType)?.(node) ?? []
}

const same: ShapeRule = (node) => [node.dims(0)]
const product: ShapeRule = (node) => [matmul(node.dims(0), node.dims(1))]
/** Each operand of these has a scale and a zero point behind it. */
const quantizedPair: ShapeRule = (node) => {
  const operands = [node.dims(0), node.dims(3)]
  return [operands.every((dims) => dims !== undefined) ? broadcast(operands as Dims[]) : undefined]
}
const blocks: ShapeRule = (node) => {
  const [dims, columns] = [node.dims(0), node.int('N')]
  return [dims && dims.length > 0 ? [...dims.slice(0, -1), columns ?? null] : undefined]
}
const skipNormalization: ShapeRule = (node) => [node.dims(0), undefined, undefined, node.dims(0)]

const SHAPES: Readonly<Record<string, ShapeRule>> = {
  BiasGelu: same,
  DequantizeLinear: same,
  DynamicQuantizeLSTM: (node) => (node.int('hidden_size') === undefined ? [] : recurrent(node)),
  DynamicQuantizeMatMul: product,
  FastGelu: same,
  FusedConv: (node) => [convolution(node)],
  FusedGemm: (node) => [gemm(node)],
  FusedMatMul: fusedMatMul,
  Gelu: same,
  MatMulBnb4: blocks,
  MatMulIntegerToFloat: product,
  MatMulNBits: blocks,
  QLinearAdd: quantizedPair,
  QLinearAveragePool: (node) => [node.int('channels_last', 0) === 0 ? pooling(node) : undefined],
  QLinearConcat: quantizedConcat,
  QLinearGlobalAveragePool: globalPool,
  QLinearLeakyRelu: same,
  QLinearMul: quantizedPair,
  QLinearSigmoid: same,
  QLinearSoftmax: same,
  QuantizeLinear: same,
  QuickGelu: same,
  RotaryEmbedding: same,
  SkipLayerNormalization: skipNormalization,
  SkipSimplifiedLayerNormalization: skipNormalization,
}

function fusedMatMul(node: NodeView): readonly (Dims | undefined)[] {
  if (node.int('transBatchA', 0) !== 0 || node.int('transBatchB', 0) !== 0) return []
  const operand = (input: number, flag: string): Dims | undefined => {
    const dims = node.dims(input)
    const isTransposed = node.int(flag, 0) !== 0 && dims && dims.length > 1
    return isTransposed ? [...dims.slice(0, -2), dims.at(-1)!, dims.at(-2)!] : dims
  }
  return [matmul(operand(0, 'transA'), operand(1, 'transB'))]
}

/** Scale and zero point of the result come first, then each operand with its own. */
function quantizedConcat(node: NodeView): readonly (Dims | undefined)[] {
  const operands = node.inputs.flatMap((_, input) => (input % 3 === 2 ? [node.dims(input)] : []))
  return [concatDims(operands, node.int('axis', Number.NaN))]
}

function globalPool(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  const channels = node.int('channels_last', 0) === 0 ? 1 : (dims?.length ?? 0) - 1
  return [dims?.map((dim, axis): Dim => (axis === 0 || axis === channels ? dim : 1))]
}
