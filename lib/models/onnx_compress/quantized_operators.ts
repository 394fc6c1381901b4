/** Operators of models that are quantized already: they compute with codes of activations, or give them. */
import { standardDomain } from '../onnx/document/node.js'
import type { Node } from '../onnx/document/types.js'

const STANDARD: ReadonlySet<string> = new Set([
  'ConvInteger',
  'DequantizeLinear',
  'DynamicQuantizeLinear',
  'MatMulInteger',
  'QLinearConv',
  'QLinearMatMul',
  'QuantizeLinear',
])

/** Operators of onnxruntime. Those with quantized weights and float activations, as MatMulNBits, are not among them. */
const MICROSOFT =
  /^(Q(Linear|Gemm|Attention|Embed|Ordered)|DynamicQuantize|(MatMul|Mul|ReduceSum)Integer|(Quantize|Dequantize)(Linear|BFP|WithOrder))/

export function isQuantizedOperator({ domain, opType }: Node): boolean {
  if (standardDomain(domain) === '') return STANDARD.has(opType)
  return domain === 'com.microsoft' && MICROSOFT.test(opType)
}
