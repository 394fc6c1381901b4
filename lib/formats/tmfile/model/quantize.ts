/**
 * Real numbers of constants as codes, by the rules of the tools that quantize for this format: int8 symmetric with a scale
 * a channel, uint8 with one scale and zero point, int32 biases by scales that are given (input scale × weight scale).
 * `quantize` and `quantizationParameters` have the arithmetic, as `rules: 'tmfile'`.
 *
 * A channel is a run of stored values, as the reference takes it also where a shape says another order (NHWC depthwise).
 */
import { bytesOfView } from '../../../bytes/view_bytes.js'
import { checkOptions, readInput } from '../../../caller_input.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { quantizationParameters } from '../../../tensor/quantization_range.js'
import { dequantize, quantize } from '../../../tensor/quantize.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { isConstant } from '../enums.js'
import { FORMAT_NAME } from '../schema.js'
import { replaceConstant } from './edit_constants.js'
import { findTensor, refuseEdit } from './lookup.js'
import { denseTensorOf } from './tensors.js'
import type { TmfileGraph, TmfileQuantization, TmfileTensor } from './types.js'

/** Types of codes. int32 is that of biases. */
export type TmfileCodes = 'int8' | 'uint8' | 'int32'

export interface TmfileQuantizeOptions {
  /** One scale for each entry of the first axis, in place of one for all. Default: for int8. */
  readonly perChannel?: boolean
  /** Scales that are given, with zero points or 0 for all, in place of those that the numbers ask for. */
  readonly scales?: ArrayLike<number>
  /** With `scales` only, as many. */
  readonly zeroPoints?: ArrayLike<number>
}

const CODE_TYPES: readonly TmfileCodes[] = ['int8', 'uint8', 'int32']

/**
 * Replaces a constant's real numbers by codes, and gives it the parameters. The codes are computed when they are read.
 *
 * @returns the parameters
 * @throws TileworkError ERR_GRAPH for a tensor that is no constant, ERR_QUANTIZATION for numbers that are not finite and for
 * scales that do not fit, ERR_DTYPE for numbers that are codes already, ERR_ARGUMENT, ERR_NO_DATA
 */
export async function quantizeConstant(
  graph: TmfileGraph,
  key: TmfileTensor | string,
  dtype: TmfileCodes,
  options: TmfileQuantizeOptions = {},
): Promise<TmfileQuantization> {
  const tensor = findTensor(graph, key)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is no constant.`)
  if (!CODE_TYPES.includes(dtype)) {
    const message = `The type of codes must be ${CODE_TYPES.join(', ')}; it is ${valueText(dtype)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  checkOptions(options, 'quantize', ['perChannel', 'scales', 'zeroPoints'])
  const {
    perChannel = dtype === 'int8',
    scales,
    zeroPoints,
  } = readInput('The options of quantize', () => ({ ...options }))
  checkReturned(perChannel, scales, zeroPoints)
  const dense = denseTensorOf(tensor, graph.tensors.indexOf(tensor))
  if (DTYPES[dense.dtype].kind !== 'float') {
    throw new TileworkError('ERR_DTYPE', `Tensor ${JSON.stringify(tensor.name)} is ${dense.dtype}, no float.`)
  }
  const reals = (await dense.toTypedArray()) as Float32Array
  refuseInfinite(reals, tensor)
  const parameters = scales
    ? givenParameters(tensor, scales, zeroPoints)
    : rangeParameters(reals, tensor, dtype, perChannel)
  const { scales: scale, zeroPoints: zeroPoint } = parameters
  const codes = quantize(dense, dtype, { scale, zeroPoint, axis: 0, rules: 'tmfile' })
  replaceConstant(graph, tensor, codes, parameters)
  return parameters
}

function checkReturned(perChannel: unknown, scales: unknown, zeroPoints: unknown): void {
  const refuse = (message: string): never => {
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  if (typeof perChannel !== 'boolean') {
    refuse(`perChannel must be true or false; it is ${valueText(perChannel)}.`)
  }
  for (const [name, list] of Object.entries({ scales, zeroPoints })) {
    const isList = Array.isArray(list) || ArrayBuffer.isView(list)
    if (list !== undefined && !isList) refuse(`${name} must be a list of numbers; it is ${valueText(list)}.`)
    if (ArrayBuffer.isView(list)) bytesOfView(list, name)
    const entries = Array.from((list ?? []) as ArrayLike<unknown>)
    const at = entries.findIndex((each) => typeof each !== 'number')
    if (at >= 0) refuse(`${name}[${at}] must be a number; it is ${valueText(entries[at])}.`)
  }
  if (zeroPoints !== undefined && scales === undefined) {
    refuse(
      'zeroPoints are given without scales; those that the numbers ask for have zero points of their own.',
    )
  }
}

function refuse({ name }: TmfileTensor, reason: string): never {
  const message = `Tensor ${JSON.stringify(name)} ${reason}.`
  throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
}

function refuseInfinite(reals: Float32Array, tensor: TmfileTensor): void {
  if (reals.length === 0) refuse(tensor, 'has no values')
  const bad = reals.find((real) => !Number.isFinite(real))
  if (bad !== undefined) refuse(tensor, `has the value ${bad}, for which there is no code`)
}

function givenParameters(
  tensor: TmfileTensor,
  scales: ArrayLike<number>,
  zeroPoints: ArrayLike<number> = new Int32Array(scales.length),
): TmfileQuantization {
  const count = scales.length
  if (count !== 1 && count !== tensor.shape?.[0]) {
    refuse(tensor, `of the shape [${tensor.shape?.join(', ')}] cannot have ${count} scales`)
  }
  if (zeroPoints.length !== count) refuse(tensor, `has ${count} scales and ${zeroPoints.length} zero points`)
  const zeros = Array.from(zeroPoints)
  // An Int32Array would make a whole number of it, which nobody asked for.
  const broken = zeros.find((zero) => !Number.isInteger(zero))
  if (broken !== undefined) refuse(tensor, `cannot have the zero point ${broken}; it is a whole number`)
  return parametersOf(Array.from(scales), zeros)
}

function parametersOf(scales: readonly number[], zeroPoints: readonly number[]): TmfileQuantization {
  return {
    scales: Float32Array.from(scales),
    zeroPoints: Int32Array.from(zeroPoints),
    widths: new Int32Array(scales.length),
  }
}

/** Scales and zero points with which the codes hold all numbers, and 0 among them. */
function rangeParameters(
  reals: Float32Array,
  tensor: TmfileTensor,
  dtype: TmfileCodes,
  perChannel: boolean,
): TmfileQuantization {
  if (dtype === 'int32') refuse(tensor, 'becomes int32 by scales that are given: input scale × weight scale')
  const channels = perChannel ? (tensor.shape?.[0] ?? 1) : 1
  const run = reals.length / channels
  const ranges = Array.from({ length: channels }, (_, at) =>
    rangeOf(reals.subarray(at * run, (at + 1) * run)),
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
 * The real values of a quantized constant, `(stored - zero point) * scale` rounded once to float32, computed when they are
 * read. With a scale for each channel a channel is a run of stored values, which holds also for NHWC depthwise weights,
 * whose shape says another order than their values have.
 *
 * @throws TileworkError ERR_GRAPH for a tensor that is no constant, ERR_QUANTIZATION where its parameters are absent,
 * unknown (scale 0) or not one and not one for each entry of its first axis; ERR_NO_DATA
 */
export function dequantizeConstant(graph: TmfileGraph, key: TmfileTensor | string): DenseTensor {
  const tensor = findTensor(graph, key)
  const title = JSON.stringify(tensor.name)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${title} is no constant.`)
  const dense = denseTensorOf(tensor, graph.tensors.indexOf(tensor))
  const { quantization } = dense
  if (!quantization) {
    const message = `Tensor ${title} has no quantization parameters.`
    throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
  }
  return dequantize(dense, quantization)
}
