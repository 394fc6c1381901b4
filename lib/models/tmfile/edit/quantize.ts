/**
 * Quantizes and dequantizes constants by the rules of Tengine's quantization tools: int8 is symmetric with one scale per
 * channel, uint8 has one scale and zero point, and int32 biases use given scales (input scale × weight scale). `quantize`
 * and `quantizationParameters` implement the arithmetic as `rules: 'tmfile'`.
 *
 * A channel is a contiguous run of stored values. The reference assumes this even where the shape means another order
 * (NHWC depthwise weights).
 */
import { bytesOfView } from '../../../bytes/view_bytes.js'
import { checkFlag, checkOneOf, checkOptions, readInput } from '../../../caller_input.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type { TmfileGraph, TmfileQuantization, TmfileTensor } from '../../../formats/tmfile/types.js'
import { quantizationParameters } from '../../../tensor/quantization_range.js'
import { dequantize, quantize } from '../../../tensor/quantize.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { findConstant } from '../document/lookup.js'
import { denseTensorOf } from '../document/tensors.js'
import { replaceConstant } from './edit_constants.js'

/** Element types of quantized constants; int32 is for biases. */
export type TmfileQuantizedDtype = 'int8' | 'uint8' | 'int32'

export interface TmfileQuantizeOptions {
  /** One scale per entry of axis 0 instead of one for the tensor. Default: true for int8, false otherwise. */
  readonly perChannel?: boolean
  /** Given scales. Default: computed from the range of the values; required for int32. */
  readonly scales?: ArrayLike<number>
  /** Zero points of the given scales, of the same length. Default: 0. */
  readonly zeroPoints?: ArrayLike<number>
}

const QUANTIZED_DTYPES: readonly TmfileQuantizedDtype[] = ['int8', 'uint8', 'int32']

/**
 * Quantizes a constant in the graph. The quantized values are computed when they are read.
 *
 * @returns the quantization parameters
 * @throws TileworkError ERR_GRAPH for a tensor that is not a constant, ERR_QUANTIZATION for non-finite values and for
 * scales that do not match the shape, ERR_DTYPE for a constant that is not a float, ERR_ARGUMENT, ERR_NO_DATA
 */
export async function quantizeConstant(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  dtype: TmfileQuantizedDtype,
  options: TmfileQuantizeOptions = {},
): Promise<TmfileQuantization> {
  const tensor = findConstant(graph, key)
  checkOneOf(dtype, 'dtype', QUANTIZED_DTYPES)
  checkOptions(options, 'quantize', ['perChannel', 'scales', 'zeroPoints'])
  const {
    perChannel = dtype === 'int8',
    scales,
    zeroPoints,
  } = readInput('The options of quantize', () => ({ ...options }))
  checkOptionTypes(perChannel, scales, zeroPoints)
  const dense = denseTensorOf(tensor, graph.tensors.indexOf(tensor))
  if (DTYPES[dense.dtype].kind !== 'float') {
    throw new TileworkError(
      'ERR_DTYPE',
      `Tensor ${JSON.stringify(tensor.name)} is ${dense.dtype}; only float32 and float16 can be quantized.`,
    )
  }
  const reals = (await dense.toTypedArray()) as Float32Array
  refuseNonFinite(reals, tensor)
  const parameters = scales
    ? givenParameters(tensor, scales, zeroPoints)
    : rangeParameters(reals, tensor, dtype, perChannel)
  const { scales: scale, zeroPoints: zeroPoint } = parameters
  const codes = quantize(dense, dtype, { scale, zeroPoint, axis: 0, rules: 'tmfile' })
  replaceConstant(graph, tensor, codes, parameters)
  return parameters
}

function checkOptionTypes(perChannel: unknown, scales: unknown, zeroPoints: unknown): void {
  const refuse = (message: string): never => {
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  checkFlag(perChannel, 'perChannel')
  for (const [name, list] of Object.entries({ scales, zeroPoints })) {
    const isList = Array.isArray(list) || ArrayBuffer.isView(list)
    if (list !== undefined && !isList)
      refuse(`${name} is ${valueText(list)}; it must be an array of numbers.`)
    if (ArrayBuffer.isView(list)) bytesOfView(list, name)
    const entries = Array.from((list ?? []) as ArrayLike<unknown>)
    const index = entries.findIndex((entry) => typeof entry !== 'number')
    if (index >= 0) refuse(`${name}[${index}] is ${valueText(entries[index])}; it must be a number.`)
  }
  if (zeroPoints !== undefined && scales === undefined) {
    refuse('zeroPoints are given without scales; computed scales come with their own zero points.')
  }
}

function refuse({ name }: TmfileTensor, reason: string): never {
  const message = `Tensor ${JSON.stringify(name)} ${reason}.`
  throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
}

function refuseNonFinite(reals: Float32Array, tensor: TmfileTensor): void {
  if (reals.length === 0) refuse(tensor, 'has no values')
  const bad = reals.find((real) => !Number.isFinite(real))
  if (bad !== undefined) refuse(tensor, `has the value ${bad}; quantized values must be finite`)
}

function givenParameters(
  tensor: TmfileTensor,
  scales: ArrayLike<number>,
  zeroPoints: ArrayLike<number> = new Int32Array(scales.length),
): TmfileQuantization {
  const count = scales.length
  if (count !== 1 && count !== tensor.shape?.[0]) {
    refuse(
      tensor,
      `has ${count} scales and the shape [${tensor.shape?.join(', ')}]; the number of scales must be 1 or the first dimension`,
    )
  }
  if (zeroPoints.length !== count) refuse(tensor, `has ${count} scales and ${zeroPoints.length} zero points`)
  const zeros = Array.from(zeroPoints)
  // Int32Array would truncate a fraction without an error.
  const fraction = zeros.find((zero) => !Number.isInteger(zero))
  if (fraction !== undefined)
    refuse(tensor, `has the zero point ${fraction}; a zero point must be an integer`)
  return parametersOf(Array.from(scales), zeros)
}

function parametersOf(scales: readonly number[], zeroPoints: readonly number[]): TmfileQuantization {
  return {
    scales: Float32Array.from(scales),
    zeroPoints: Int32Array.from(zeroPoints),
    widths: new Int32Array(scales.length),
  }
}

/** Scales and zero points that cover the range of the values and 0. */
function rangeParameters(
  reals: Float32Array,
  tensor: TmfileTensor,
  dtype: TmfileQuantizedDtype,
  perChannel: boolean,
): TmfileQuantization {
  if (dtype === 'int32')
    refuse(tensor, 'cannot become int32 without scales; a bias uses input scale × weight scale')
  const channels = perChannel ? (tensor.shape?.[0] ?? 1) : 1
  const channelSize = reals.length / channels
  const ranges = Array.from({ length: channels }, (_, channel) =>
    rangeOf(reals.subarray(channel * channelSize, (channel + 1) * channelSize)),
  )
  const range = { min: ranges.map(({ min }) => min), max: ranges.map(({ max }) => max) }
  const rules = { symmetric: dtype === 'int8', rules: 'tmfile' } as const
  const { scale, zeroPoint } = quantizationParameters(range, dtype, rules)
  return parametersOf(scale as number[], zeroPoint as number[])
}

function rangeOf(reals: Float32Array): { readonly min: number; readonly max: number } {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const real of reals) {
    min = Math.min(min, real)
    max = Math.max(max, real)
  }
  return { min, max }
}

/**
 * The real values of a quantized constant, `(stored - zero point) * scale`, rounded once to float32 and computed when they
 * are read.
 *
 * @throws TileworkError ERR_GRAPH for a tensor that is not a constant, ERR_QUANTIZATION where its parameters are absent,
 * unknown (scale 0), or neither one nor one per entry of axis 0; ERR_NO_DATA
 */
export function dequantizeConstant(graph: TmfileGraph, key: TmfileTensor | string): DenseTensor {
  const tensor = findConstant(graph, key)
  const dense = denseTensorOf(tensor, graph.tensors.indexOf(tensor))
  const { quantization } = dense
  if (!quantization) {
    const message = `Tensor ${JSON.stringify(tensor.name)} has no quantization parameters.`
    throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
  }
  return dequantize(dense, quantization)
}
