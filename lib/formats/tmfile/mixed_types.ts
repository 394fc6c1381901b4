/**
 * Which dtypes the constants of a node may have. The runtime assumes one dtype for the model: an operator whose constant has
 * another dtype than its data reads past the constant, or misinterprets its bits.
 */
import type { Dtype } from '../../dtype/dtypes.js'

/** Operators whose constants are numbers like their data, and not indices or shapes. */
const OPERATORS: ReadonlySet<string> = new Set([
  ...['BatchNormalization', 'Bias', 'BroadMul', 'Convolution', 'Deconvolution', 'Eltwise', 'FullyConnected'],
  ...['GRU', 'InstanceNorm', 'LSTM', 'LayerNorm', 'Normalize', 'PReLU', 'RNN', 'Scale'],
])

/** Whether the types of an operator's constants depend on the type of its data. */
export function hasTypedConstants(operator: string): boolean {
  return OPERATORS.has(operator)
}

const CONVOLUTIONS: ReadonlySet<string> = new Set(['Convolution', 'Deconvolution', 'FullyConnected'])

const WEIGHT = 1

/**
 * Dtypes that a constant may have.
 *
 * @param index - among the inputs of the node
 * @param data - dtype of the node's first input
 */
function allowedConstants(operator: string, index: number, data: Dtype): readonly Dtype[] {
  if (data === 'float32' || data === 'float16') return [data]
  // Quantization tools keep slopes as float16, and some older ones keep biases as float32.
  if (operator === 'PReLU') return ['float16', 'float32', data]
  if (!CONVOLUTIONS.has(operator)) return [data, 'int8', 'uint8', 'int32', 'float32']
  if (index > WEIGHT) return ['int32', 'float32']
  return data === 'uint8' ? ['uint8', 'int8'] : [data]
}

/** The constants of a node whose dtype does not fit its data. */
export function* mixedConstants<Tensor extends { readonly dtype: Dtype; readonly isConstant: boolean }>(
  operator: string,
  inputs: readonly Tensor[],
): Generator<{ readonly index: number; readonly allowed: readonly Dtype[] }> {
  const [data, ...others] = inputs
  if (!data || !OPERATORS.has(operator)) return
  for (const [at, { dtype, isConstant }] of others.entries()) {
    const allowed = allowedConstants(operator, at + 1, data.dtype)
    if (isConstant && !allowed.includes(dtype)) yield { index: at + 1, allowed }
  }
}
