/**
 * Integer models: codes with a record (scale, zero point) on every tensor. In an ONNX model they stand as DequantizeLinear, a float
 * operator and QuantizeLinear; here the pair disappears, and its parameters become the record of the tensor between.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import type {
  TmfileDtype,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../formats/tmfile/index.js'
import { sizeOf } from './arrays.js'
import { Constant } from './constant.js'
import { type GraphBuilder, isConstantOperand } from './graph_builder.js'
import { conv } from './operators/convolution.js'
import { matMul } from './operators/products.js'
import { type RefusedNode, refuse } from './refusal.js'
import { sameRecord } from './shaping.js'
import type { OperatorRow, Step } from './step.js'

/** How to continue where a part of the graph stays float. */
const ADVICE = "the option quantized: 'dequantize' writes a float32 model"

/** Scale and zero point of a node as a record. */
function recordOf(scale: Constant, zeroPoint: Constant | undefined): TmfileQuantization {
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
  const inner = isPerAxis ? sizeOf(codes.shape.slice(axis + 1)) : 1
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
    refuse(`weights are ${dtype}; an integer model has int8 or uint8`)
  if (dtype === 'uint8' && codes.axis !== undefined)
    refuse('uint8 weights with a scale per channel, which the CPU aborts on')
  if (dtype === 'int8' && codes.quantization.zeroPoints.some((zero) => zero !== 0))
    refuse('int8 weights with a zero point')
  if (codes.axis !== undefined && codes.axis !== 0) refuse('scales of an axis that is not the output channel')
  // An int8 weight with one record crashes the engine.
  const count = dtype === 'int8' ? outputs : 1
  const stored = b.codes(weight, weight.shape, count)
  if (!bias) return [stored]
  const input = step.operand(0)
  const record = isConstantOperand(input) ? undefined : input.quantization
  const exact = bias.codes ? bias : record && quantizedBias(bias, record, codes.quantization)
  if (!exact) return refuse('the input of integer weights is not quantized')
  return [stored, b.codes(exact, [bias.size], count)]
}

/** A bias of floats as codes with the scales of the products. */
function quantizedBias(bias: Constant, input: TmfileQuantization, weight: TmfileQuantization): Constant {
  const scales = weight.scales.map((scale) => scale * input.scales[0]!)
  const read = (): Float64Array =>
    Float64Array.from(bias.numbers, (value, at) => Math.round(value / (scales[at] ?? scales[0]!)))
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

/** Operators whose kernels copy codes, so that both sides have one record. */
const MOVERS: ReadonlySet<string> = new Set(['Reshape', 'Transpose', 'Slice', 'Split', 'Gather', 'InputOp'])

/** Element types of integer activations. */
const INTEGERS: ReadonlySet<Dtype> = new Set(['int8', 'uint8'])

function recordAt(step: Step, at: number): TmfileQuantization {
  const scale = step.required(at, 'the scale')
  if (scale.size !== 1) refuse('an activation with several scales')
  return recordOf(scale, step.has(at + 1) ? step.required(at + 1, 'the zero point') : undefined)
}

/** Gives a tensor its record, or compares it with the one that it has. */
function attach(
  step: Step,
  tensor: TmfileTensor,
  dtype: Dtype | number | undefined,
  record: TmfileQuantization,
): TmfileTensor {
  if (!INTEGERS.has(dtype as Dtype)) refuse(`codes of type ${dtype}; an integer model has int8 or uint8`)
  if (dtype === 'int8' && record.zeroPoints[0] !== 0)
    refuse('int8 codes with a zero point; the engine has them symmetric')
  const wanted = { ...tensor, dtype: dtype as TmfileDtype, quantization: record }
  if (tensor.quantization && !sameRecord(tensor, wanted)) {
    const producer = step.b.producerOf(tensor)
    if (!producer || MOVERS.has(producer.operator))
      refuse('another scale behind an operator that copies codes')
    if (step.b.consumersOf(tensor).length > 0) refuse('another scale of a tensor that is read with its own')
  }
  setRecord(step.b, tensor, dtype as TmfileDtype, record)
  return tensor
}

/** Sets the record of a tensor, and of those before it that operators only moved. */
function setRecord(
  b: GraphBuilder,
  tensor: TmfileTensor,
  dtype: TmfileDtype,
  record: TmfileQuantization,
): void {
  tensor.dtype = dtype
  tensor.quantization = record
  const producer = b.producerOf(tensor)
  const before = producer && MOVERS.has(producer.operator) ? producer.inputs[0] : undefined
  if (before && before.role === 'variable' && !before.quantization) setRecord(b, before, dtype, record)
}

/** The zero point says the type; without one `output_dtype`, else uint8. */
function codesOf(step: Step): Dtype | number | undefined {
  return step.has(2) ? step.dtype(2) : step.number('output_dtype', 0) === INT8_CODE ? 'int8' : 'uint8'
}

/** int8 in ONNX. */
const INT8_CODE = 3

/** Smallest and largest code of each type. */
const RANGES: Readonly<Record<string, readonly [number, number]>> = {
  ...{ int8: [-128, 127], uint8: [0, 255], int16: [-32_768, 32_767], uint16: [0, 65_535] },
}

/** In a float32 model a quantization still saturates, and exporters rely on it in place of a Relu. */
function saturated(
  step: Step,
  x: TmfileTensor,
  dtype: Dtype | number | undefined,
  record: TmfileQuantization,
): TmfileTensor {
  const [low, high] = RANGES[String(dtype)] ?? refuse(`codes of type ${dtype}`)
  const [scale, zero] = [record.scales[0]!, record.zeroPoints[0]!]
  const [min, max] = [(low - zero) * scale, (high - zero) * scale]
  const before = step.b.producerOf(x)
  const bounds = before?.operator === 'Clip' ? (before as KnownNode<'Clip'>).params : undefined
  return bounds?.min === min && bounds.max === max ? x : step.b.emit('Clip', [x], { min, max }, x.shape!)
}

function quantize(step: Step): TmfileTensor {
  const x = step.tensor(0)
  const record = recordAt(step, 1)
  return step.keepsQuantized
    ? attach(step, x, codesOf(step), record)
    : saturated(step, x, codesOf(step), record)
}

function dequantize(step: Step): TmfileTensor {
  const x = step.tensor(0)
  return step.keepsQuantized ? attach(step, x, step.dtype(0), recordAt(step, 1)) : x
}

/** A constant or tensor of codes, its scale and its zero point, as the numbers that they stand for. */
function realOperand(step: Step, at: number, axis: number): Constant | TmfileTensor {
  const codes = step.operand(at)
  if (!isConstantOperand(codes)) {
    return step.keepsQuantized ? attach(step, codes, step.dtype(at), recordAt(step, at + 1)) : codes
  }
  return dequantized(codes.name, codes, step.required(at + 1, 'the scale'), step.constant(at + 2), axis)
}

function withOutput(step: Step, made: TmfileTensor, at: number): TmfileTensor {
  const [dtype, record] = [step.dtype(at + 1), recordAt(step, at)]
  return step.keepsQuantized ? attach(step, made, dtype, record) : saturated(step, made, dtype, record)
}

function qlinearConv(step: Step): TmfileTensor {
  const [x, weight] = [realOperand(step, 0, 1), realOperand(step, 3, 0) as Constant]
  const bias = step.has(8)
    ? productCodes(step.required(8, 'the bias'), step.required(1, 'the scale'), step.required(4, 'the scale'))
    : undefined
  return withOutput(step, conv(step.withOperands([x, weight, bias])), 6)
}

/** An int32 bias: its scale is that of the products. */
function productCodes(bias: Constant, input: Constant, weight: Constant): Constant {
  const scales = weight.mapped((scale) => scale * input.numbers[0]!)
  return dequantized(bias.name, bias, scales, undefined, 0)
}

function qlinearMatMul(step: Step): TmfileTensor {
  const [one, other] = [realOperand(step, 0, 0), realOperand(step, 3, 1)]
  return withOutput(step, matMul(step.withOperands([one, other])), 6)
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

export const QUANTIZED_ROWS: readonly OperatorRow[] = [
  {
    operator: 'QuantizeLinear',
    target: 'nothing',
    note: 'its scale and zero point become the record of the tensor',
    convert: quantize,
  },
  {
    operator: 'DequantizeLinear',
    target: 'nothing',
    note: 'as QuantizeLinear; constants keep their codes',
    convert: dequantize,
  },
  {
    operator: 'QLinearConv',
    target: 'Convolution',
    note: 'as DequantizeLinear, Conv, QuantizeLinear',
    convert: qlinearConv,
  },
  {
    operator: 'QLinearMatMul',
    target: 'FullyConnected',
    note: 'as DequantizeLinear, MatMul, QuantizeLinear',
    convert: qlinearMatMul,
  },
]
