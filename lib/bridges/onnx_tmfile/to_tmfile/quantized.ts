import { countOf } from '../../../models/onnx/evaluate/arrays.js'
import type {
  TmfileDtype,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../models/tmfile/index.js'
import type { RefusedNode } from '../refused_error.js'
import { Constant } from './constant.js'
import { type GraphBuilder, isConstantOperand } from './graph_builder.js'
import { Refusal } from './refusal.js'
import type { Step } from './step.js'

/** How to continue where a part of the graph stays float. */
const ADVICE = 'the option quantized: dequantize (--quantized dequantize) writes a float32 model'

/** Refuses what an integer model cannot have, and a float32 model can. */
export function refuseInteger(reason: string): never {
  throw new Refusal(`${reason}; ${ADVICE}`)
}

/** Scale and zero point of a node as a record. */
export function recordOf(scale: Constant, zeroPoint: Constant | undefined): TmfileQuantization {
  const scales = Float32Array.from(scale.numbers)
  const zeros = zeroPoint?.numbers
  return {
    scales,
    zeroPoints: Int32Array.from(scales, (_, at) => zeros?.[at] ?? zeros?.[0] ?? 0),
    widths: new Int32Array(scales.length),
  }
}

/** A constant of integer codes as the numbers that it stands for. */
export function dequantized(
  name: string,
  codes: Constant,
  scale: Constant,
  zeroPoint: Constant | undefined,
  axis: number,
): Constant {
  const quantization = recordOf(scale, zeroPoint)
  const { scales, zeroPoints } = quantization
  const isPerAxis = scales.length > 1
  const inner = isPerAxis ? countOf(codes.shape.slice(axis + 1)) : 1
  const indexOf = (at: number): number => (isPerAxis ? Math.floor(at / inner) % scales.length : 0)
  const read = (): Float32Array =>
    Float32Array.from(
      codes.numbers as ArrayLike<number>,
      (code, at) => (code - zeroPoints[indexOf(at)]!) * scales[indexOf(at)]!,
    )
  const known = { values: codes, quantization, ...(isPerAxis && { axis }) }
  return new Constant({ name, dtype: 'float32', shape: codes.shape, read, codes: known })
}

/** Weight and bias as the engine stores them: integer codes where the model has them, else float32. */
export function storedWeights(step: Step, weight: Constant, bias?: Constant): TmfileTensor[] {
  const { b } = step
  const { codes } = weight
  const outputs = weight.shape[0]!
  if (!step.keepsQuantized || !codes) {
    return [b.constant(weight), ...(bias ? [b.constant(bias, [bias.size])] : [])]
  }
  const { dtype } = codes.values
  if (dtype !== 'int8' && dtype !== 'uint8')
    refuseInteger(`weights are ${dtype}; an integer model has int8 or uint8`)
  if (dtype === 'uint8' && codes.axis !== undefined)
    refuseInteger('uint8 weights with a scale per channel, which the CPU aborts on')
  if (dtype === 'int8' && codes.quantization.zeroPoints.some((zero) => zero !== 0))
    refuseInteger('int8 weights with a zero point')
  if (codes.axis !== undefined && codes.axis !== 0)
    refuseInteger('scales of an axis that is not the output channel')
  // An int8 weight with one record crashes the engine.
  const count = dtype === 'int8' ? outputs : 1
  const stored = b.codes(weight, weight.shape, count)
  if (!bias) return [stored]
  const input = step.operand(0)
  const record = isConstantOperand(input) ? undefined : input.quantization
  const exact = bias.codes ? bias : record && quantizedBias(bias, record, codes.quantization)
  if (!exact) return refuseInteger('the input of integer weights is not quantized')
  return [stored, b.codes(exact, [bias.size], count)]
}

/** A bias of floats as codes with the scales of the products. */
function quantizedBias(bias: Constant, input: TmfileQuantization, weight: TmfileQuantization): Constant {
  const scales = weight.scales.map((scale) => scale * input.scales[0]!)
  const read = (): Int32Array =>
    Int32Array.from(bias.numbers, (value, at) => Math.round(value / (scales[at] ?? scales[0]!)))
  const values = new Constant({ name: bias.name, dtype: 'int32', shape: [bias.size], read })
  const quantization = {
    scales,
    zeroPoints: new Int32Array(scales.length),
    widths: new Int32Array(scales.length),
  }
  return new Constant({
    name: bias.name,
    dtype: 'float32',
    shape: [bias.size],
    read: () => bias.numbers,
    codes: { values, quantization },
  })
}

/** Operators with a kernel for int8. */
const INT8_KERNELS = `Clip Concat Convolution DepthToSpace Dropout Eltwise Flatten FullyConnected Interp Permute Pooling PReLU ReLu
  Reshape ShuffleChannel Sigmoid Softmax Split Transpose`

/** Operators with a kernel for uint8 alone. */
const UINT8_KERNELS = `BatchNormalization Elu Gather Gelu Hardsigmoid HardSwish InstanceNorm LayerNorm Mish Pad Reduction Selu Slice Tanh
  Unary`

const wordsOf = (text: string): string[] => text.split(/\s+/)

/** Operators that the CPU computes, by the type of the codes. */
const KERNELS: Readonly<Record<string, ReadonlySet<string>>> = {
  int8: new Set(wordsOf(INT8_KERNELS)),
  uint8: new Set([...wordsOf(INT8_KERNELS), ...wordsOf(UINT8_KERNELS)]),
}

/**
 * Nodes of an integer model that would compute in float32, or not at all; empty for float models.
 *
 * @param labelOf - name and operator of the ONNX node that a node came from
 */
export function floatNodes(
  builder: GraphBuilder,
  labelOf: (node: TmfileNode) => { readonly node: string; readonly operator: string },
): RefusedNode[] {
  const tensors = builder.nodes.flatMap(({ inputs, outputs }) => [...inputs, ...outputs])
  const isCode = ({ quantization, role }: TmfileTensor): boolean =>
    quantization !== null && role !== 'constant'
  const type = tensors.find(isCode)?.dtype
  if (type === undefined) return []
  const refused = new Map<string, RefusedNode>()
  for (const node of builder.nodes) {
    const reason = whyNotInteger(node, type)
    const label = labelOf(node)
    if (reason !== undefined && !refused.has(label.node))
      refused.set(label.node, { ...label, reason: `${reason}; ${ADVICE}` })
  }
  return [...refused.values()]
}

function whyNotInteger({ operator, inputs, outputs }: TmfileNode, type: TmfileDtype): string | undefined {
  if (!KERNELS[type]?.has(operator)) return `the engine computes no ${operator} on ${type}`
  const variables = [...outputs, ...inputs.filter(({ role }) => role !== 'constant')]
  const bad = variables.find(({ dtype, quantization }) => dtype !== type || !quantization)
  if (!bad) return undefined
  const what = bad.quantization
    ? `is ${bad.dtype} in a model of ${type}`
    : 'stays float32 in a quantized model'
  return `tensor "${bad.name}" ${what}`
}
