/** Quantization of ONNX: pairs of nodes around float operators, and operators on codes. */
import type { Dtype } from '../../../../dtype/dtypes.js'
import type {
  KnownNode,
  TmfileDtype,
  TmfileQuantization,
  TmfileTensor,
} from '../../../../models/tmfile/index.js'
import type { Constant } from '../constant.js'
import { type GraphBuilder, isConstantOperand } from '../graph_builder.js'
import { dequantized, recordOf, refuseInteger } from '../quantized.js'
import { refuse } from '../refusal.js'
import { sameRecord } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'
import { conv } from './convolution.js'
import { matMul } from './products.js'

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
  if (!INTEGERS.has(dtype as Dtype))
    refuseInteger(`codes of type ${dtype}; an integer model has int8 or uint8`)
  if (dtype === 'int8' && record.zeroPoints[0] !== 0)
    refuseInteger('int8 codes with a zero point; the engine has them symmetric')
  const wanted = { ...tensor, dtype: dtype as TmfileDtype, quantization: record }
  if (tensor.quantization && !sameRecord(tensor, wanted)) {
    const producer = step.b.producerOf(tensor)
    if (!producer || MOVERS.has(producer.operator))
      refuseInteger('another scale behind an operator that copies codes')
    if (step.b.consumersOf(tensor).length > 0)
      refuseInteger('another scale of a tensor that is read with its own')
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
