/**
 * Real numbers of constants as codes, by the rules of the tools that quantize for this format: int8 symmetric with a scale
 * a channel, uint8 with one scale and zero point, int32 biases by scales that are given (input scale × weight scale).
 *
 * `code = round(real / scale + zero point)` in float32, halves away from zero; int8 begins at -127, and zero points are cut.
 * A channel is a run of stored values, as the reference takes it also where a shape says another order (NHWC depthwise).
 */
import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { tensor as denseTensor } from '../../tensor/from_values.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { replaceConstant } from './edit_constants.js'
import { findTensor, refuseEdit } from './find.js'
import { isConstant, type TmfileModel, type TmfileQuantization, type TmfileTensor } from './model.js'
import { FORMAT_NAME } from './schema.js'
import { denseTensorOf } from './tensors.js'

/** Types of codes. int32 is that of biases. */
export type TmfileCodes = 'int8' | 'uint8' | 'int32'

export interface TmfileQuantizeOptions {
  /** One scale for each entry of the first axis, in place of one for all. Default: for int8. */
  readonly perChannel?: boolean
  /** Scales that are given, with zero points or 0 for all, in place of those that the numbers ask for. */
  readonly scales?: ArrayLike<number>
  readonly zeroPoints?: ArrayLike<number>
}

const CODE_ARRAYS = { int8: Int8Array, uint8: Uint8Array, int32: Int32Array } as const

/** Least and most code. int8 has as many below 0 as above. */
const CODE_LIMITS = {
  int8: [-127, 127],
  uint8: [0, 255],
  int32: [-(2 ** 31), 2 ** 31 - 1],
} as const satisfies Record<TmfileCodes, readonly [number, number]>

/**
 * Replaces a constant's real numbers by codes, and gives it the parameters.
 *
 * @returns the parameters
 * @throws TileworkError ERR_GRAPH for a tensor that is no constant, ERR_QUANTIZATION for numbers that are not finite and for
 * scales that do not fit, ERR_DTYPE for numbers that are codes already, ERR_ARGUMENT, ERR_NO_DATA
 */
export async function quantizeConstant(
  model: TmfileModel,
  key: TmfileTensor | string,
  dtype: TmfileCodes,
  options: TmfileQuantizeOptions = {},
): Promise<TmfileQuantization> {
  const tensor = findTensor(model, key)
  if (!isConstant(tensor)) refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is no constant.`)
  if (!Object.hasOwn(CODE_ARRAYS, dtype)) {
    throw new TileworkError('ERR_ARGUMENT', `The type of codes must be int8, uint8 or int32; it is ${dtype}.`)
  }
  const dense = denseTensorOf(tensor, model.graph.tensors.indexOf(tensor))
  if (DTYPES[dense.dtype].kind !== 'float') {
    throw new TileworkError('ERR_DTYPE', `Tensor ${JSON.stringify(tensor.name)} is ${dense.dtype}, no float.`)
  }
  const reals = (await dense.toTypedArray()) as Float32Array
  const parameters = parametersOf(reals, tensor, dtype, options)
  const codes = codesOf(reals, dtype, parameters)
  const { name, shape } = dense
  replaceConstant(model, tensor, denseTensor(codes, { name, dtype, shape }) as DenseTensor, parameters)
  return parameters
}

function refuse({ name }: TmfileTensor, reason: string): never {
  const message = `Tensor ${JSON.stringify(name)} ${reason}.`
  throw new TileworkError('ERR_QUANTIZATION', message, { format: FORMAT_NAME })
}

function parametersOf(
  reals: Float32Array,
  tensor: TmfileTensor,
  dtype: TmfileCodes,
  { perChannel = dtype === 'int8', scales, zeroPoints }: TmfileQuantizeOptions,
): TmfileQuantization {
  if (reals.length === 0) refuse(tensor, 'has no values')
  const bad = reals.find((real) => !Number.isFinite(real))
  if (bad !== undefined) refuse(tensor, `has the value ${bad}, for which there is no code`)
  if (scales) return givenParameters(reals.length, tensor, dtype, { scales, zeroPoints })
  if (dtype === 'int32') refuse(tensor, 'becomes int32 by scales that are given: input scale × weight scale')
  const channels = perChannel ? (tensor.shape?.[0] ?? 1) : 1
  const run = reals.length / channels
  const all = Array.from({ length: channels }, (_, at) =>
    rangeParameters(reals.subarray(at * run, (at + 1) * run), dtype),
  )
  return {
    scales: Float32Array.from(all, ({ scale }) => scale),
    zeroPoints: Int32Array.from(all, ({ zeroPoint }) => zeroPoint),
    widths: new Int32Array(channels),
  }
}

function givenParameters(
  size: number,
  tensor: TmfileTensor,
  dtype: TmfileCodes,
  {
    scales,
    zeroPoints,
  }: { readonly scales: ArrayLike<number>; readonly zeroPoints: ArrayLike<number> | undefined },
): TmfileQuantization {
  const count = scales.length
  const zeros = zeroPoints ?? new Int32Array(count)
  const isCount = count === 1 || count === tensor.shape?.[0]
  if (!isCount || size % count !== 0) refuse(tensor, `of ${size} values cannot have ${count} scales`)
  if (zeros.length !== count) refuse(tensor, `has ${count} scales and ${zeros.length} zero points`)
  const parameters = {
    scales: Float32Array.from(scales),
    zeroPoints: Int32Array.from(zeros),
    widths: new Int32Array(count),
  }
  const bad = parameters.scales.find((scale) => !(scale > 0 && scale < Number.POSITIVE_INFINITY))
  if (bad !== undefined) refuse(tensor, `cannot have the scale ${bad}; a scale is above 0 and finite`)
  const { min, max } = DTYPES[dtype].limits!
  const outside = Array.from(zeros).find((zero) => !Number.isInteger(zero) || zero < min || zero > max)
  if (outside !== undefined)
    refuse(tensor, `cannot have the zero point ${outside}; ${dtype} has ${min} to ${max}`)
  return parameters
}

/** Scale and zero point with which the codes hold all numbers, and 0 among them. */
function rangeParameters(
  reals: Float32Array,
  dtype: 'int8' | 'uint8',
): { readonly scale: number; readonly zeroPoint: number } {
  let [low, high] = [0, 0]
  for (const real of reals) {
    low = Math.min(low, real)
    high = Math.max(high, real)
  }
  const [least, most] = CODE_LIMITS[dtype]
  if (dtype === 'int8') return { scale: Math.fround(Math.max(-low, high) / most) || 1, zeroPoint: 0 }
  const scale = Math.fround(Math.fround(high - low) / (most - least)) || 1
  const zeroPoint = Math.trunc(Math.fround(-low / scale))
  return { scale, zeroPoint: Math.min(most, Math.max(least, zeroPoint)) }
}

function codesOf(
  reals: Float32Array,
  dtype: TmfileCodes,
  { scales, zeroPoints }: TmfileQuantization,
): Int8Array | Uint8Array | Int32Array {
  const [least, most] = CODE_LIMITS[dtype]
  const codes = new CODE_ARRAYS[dtype](reals.length)
  const run = reals.length / scales.length
  for (let at = 0; at < reals.length; at++) {
    const channel = Math.floor(at / run)
    const exact = Math.fround(Math.fround(reals[at]! / scales[channel]!) + zeroPoints[channel]!)
    // Halves away from zero; Math.round takes them up.
    const code = Math.sign(exact) * Math.round(Math.abs(exact))
    codes[at] = Math.min(most, Math.max(least, code))
  }
  return codes
}
