/**
 * Encodes JavaScript values as stored bits. Floats are rounded once, to nearest with ties to even; converting to float32
 * first would round twice.
 *
 * Values that exceed the largest finite value after rounding, and NaN:
 *
 * | type | too large, infinite | with `saturate: false` | NaN |
 * |---|---|---|---|
 * | float64, float32, float16, bfloat16 | infinity | the same | quiet NaN without sign and payload |
 * | float8_e4m3fn | ±448 | NaN | 7F |
 * | float8_e4m3fnuz | ±240 | NaN (80) | 80 |
 * | float8_e5m2 | ±57344 | infinity | 7E |
 * | float8_e5m2fnuz | ±57344 | NaN (80) | 80 |
 * | float8_e8m0fnu | 2^127; 0 and below 2^-127: 2^-127 | NaN (FF) | FF; negative numbers too |
 * | float6_e2m3fn | ±7.5 | the same | 20, the code of -0 |
 * | float6_e3m2fn | ±28 | the same | 20, the code of -0 |
 * | float4_e2m1fn | ±6 | the same | 7, the code of 6 |
 *
 * Saturation and rounding of e8m0 to the next power of two are the defaults of ONNX's Cast. These are the rules of `cast` in
 * mode `spec`, which is tested against this file. Integers are never wrapped or rounded: a value that does not fit is an
 * error.
 */
import { allocateBytes } from '../bytes/view_limit.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { CastOptions } from './cast_step.js'
import { DTYPES, type Dtype, type FloatFields, fieldsOf, isNarrowFloat, type NarrowFloat } from './dtypes.js'
import { packedByteLength, storeCode } from './packed_codes.js'

export type EncodeOptions = Pick<CastOptions, 'saturate' | 'round'>

/** Names a value in an error. */
type Where = () => string

/** The bit pattern nearest to `value` in a float type below 32 bits; see the table at the head of this file. */
export function encodeFloatCode(dtype: NarrowFloat, value: number, options: EncodeOptions = {}): number {
  const fields = fieldsOf(dtype)
  const saturate = (options.saturate ?? true) && fields.bits === 8
  if (fields.specials === 'scale') return encodeScale(value, saturate, options.round ?? 'up')
  const signBit = 2 ** (fields.bits - 1)
  if (Number.isNaN(value)) return nanCode(fields)
  const isNegative = value < 0 || Object.is(value, -0)
  const limit = largestFiniteCode(fields)
  const rounded = roundMagnitude(fields, Math.abs(value))
  const magnitude = rounded > limit ? overflowCode(fields, limit, saturate) : rounded
  if (fields.specials === 'fnuz' && (magnitude === 0 || magnitude === signBit)) return magnitude
  return isNegative ? magnitude + signBit : magnitude
}

/** Bit pattern of a magnitude, with unbounded exponent. Patterns increase with values, so a carry from rounding is correct. */
function roundMagnitude({ mantissaBits, bias }: FloatFields, magnitude: number): number {
  if (magnitude === 0) return 0
  if (magnitude === Number.POSITIVE_INFINITY) return magnitude
  const exponent = Math.max(floorLog2(magnitude), 1 - bias)
  const steps = roundToEven(magnitude / 2 ** (exponent - mantissaBits))
  return (exponent - (1 - bias)) * 2 ** mantissaBits + steps
}

const float64 = new DataView(new ArrayBuffer(8))

/** Exponent of a positive finite number, exact; float64 subnormals count as 2^-1023, below every narrow type. */
function floorLog2(value: number): number {
  float64.setFloat64(0, value)
  return (float64.getUint16(0) >> 4) - 1023
}

function roundToEven(value: number): number {
  const low = Math.floor(value)
  const fraction = value - low
  return fraction > 0.5 || (fraction === 0.5 && low % 2 === 1) ? low + 1 : low
}

function largestFiniteCode({ bits, mantissaBits, specials }: FloatFields): number {
  const allOnes = 2 ** (bits - 1) - 1
  if (specials === 'ieee') return allOnes - 2 ** mantissaBits
  return specials === 'fn' ? allOnes - 1 : allOnes
}

function overflowCode(fields: FloatFields, limit: number, saturate: boolean): number {
  if (saturate || fields.specials === 'finite') return limit
  return fields.specials === 'ieee' ? limit + 1 : nanCode(fields)
}

function nanCode({ bits, mantissaBits, specials }: FloatFields): number {
  const signBit = 2 ** (bits - 1)
  if (specials === 'fn') return signBit - 1
  // ONNX specifies 6 for NaN in float4 and -0 in float6, on separate pages.
  if (specials === 'finite') return bits === 4 ? signBit - 1 : signBit
  // A quiet NaN: all exponent bits and the highest mantissa bit.
  return specials === 'ieee' ? signBit - 2 ** (mantissaBits - 1) : signBit
}

function encodeScale(value: number, saturate: boolean, round: 'up' | 'nearest' | 'down'): number {
  if (Number.isNaN(value) || value < 0) return 0xff
  if (value === 0) return saturate ? 0 : 0xff
  if (value === Number.POSITIVE_INFINITY) return saturate ? 0xfe : 0xff
  const floor = floorLog2(value)
  const fraction = value / 2 ** floor
  const isUp = round === 'up' ? fraction > 1 : round === 'nearest' && fraction >= 1.5
  const code = floor + 127 + (isUp ? 1 : 0)
  if (code > 0xfe) return saturate ? 0xfe : 0xff
  return Math.max(code, 0)
}

/**
 * Writes `value` as element `index` of packed storage.
 *
 * @param options - `where` names the value in errors, for example `values[2][0]`
 * @throws TileworkError ERR_ARGUMENT for a value that is not a number, or not a whole number in the range of an integer type;
 * ERR_DTYPE for complex and string types
 */
export function encodeElement(
  dtype: Dtype,
  bytes: Uint8Array,
  index: number,
  value: unknown,
  options: EncodeOptions & { readonly where?: () => string } = {},
): void {
  // A function, because building a string for each element costs more than encoding it.
  const where = options.where ?? (() => `value ${index}`)
  const { kind } = DTYPES[dtype]
  if (kind === 'float') encodeFloat(dtype, bytes, index, asNumber(value, where), options)
  else if (kind === 'int' || kind === 'uint') encodeInteger(dtype, bytes, index, value, where)
  else if (kind === 'bool') bytes[index] = asBoolean(value, where) ? 1 : 0
  else throw new TileworkError('ERR_DTYPE', `a single value cannot be stored as ${dtype}`)
}

function encodeFloat(
  dtype: Dtype,
  bytes: Uint8Array,
  index: number,
  value: number,
  options: EncodeOptions,
): void {
  if (isNarrowFloat(dtype)) {
    storeBits(DTYPES[dtype].bits, bytes, index, encodeFloatCode(dtype, value, options))
    return
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (dtype === 'float32') view.setFloat32(4 * index, value, true)
  else view.setFloat64(8 * index, value, true)
}

function encodeInteger(dtype: Dtype, bytes: Uint8Array, index: number, value: unknown, where: Where): void {
  const { min, max } = DTYPES[dtype].limits!
  const exact = asInteger(value, where, dtype)
  if (exact < min || exact > max) {
    const message = `${where()} is ${valueText(value)}; ${dtype} takes ${min} to ${max}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const { bits } = DTYPES[dtype]
  if (bits < 8) {
    storeCode(bits, bytes, index, Number(BigInt.asUintN(bits, exact)))
    return
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bits === 64) view.setBigUint64(8 * index, BigInt.asUintN(64, exact), true)
  else if (bits === 32) view.setInt32(4 * index, Number(exact), true)
  else if (bits === 16) view.setInt16(2 * index, Number(exact), true)
  else view.setInt8(index, Number(exact))
}

function storeBits(bits: number, bytes: Uint8Array, index: number, code: number): void {
  if (bits === 16) {
    bytes[2 * index] = code & 0xff
    bytes[2 * index + 1] = code >> 8
  } else if (bits === 8) bytes[index] = code
  else storeCode(bits, bytes, index, code)
}

function asNumber(value: unknown, where: Where): number {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  throw notANumber(value, where)
}

function asBoolean(value: unknown, where: Where): boolean {
  if (typeof value === 'boolean') return value
  if (value === 0 || value === 1 || value === 0n || value === 1n) return Number(value) === 1
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${where()} is ${valueText(value)}; bool takes true, false, 1 and 0`,
  )
}

function asInteger(value: unknown, where: Where, dtype: Dtype): bigint {
  if (typeof value === 'bigint') return value
  if (typeof value === 'boolean') return value ? 1n : 0n
  if (typeof value !== 'number') throw notANumber(value, where)
  if (Number.isInteger(value)) return BigInt(value)
  throw new TileworkError('ERR_ARGUMENT', `${where()} is ${value}; ${dtype} takes whole numbers`)
}

function notANumber(value: unknown, where: Where): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `${where()} is ${valueText(value)}; it must be a number, a bigint or a boolean`,
  )
}

/**
 * Packs `values` as `dtype`.
 *
 * @throws TileworkError as `encodeElement`; `name(i)` names value `i` in the message
 */
export function encodeAll(
  dtype: Dtype,
  values: ArrayLike<unknown>,
  options: EncodeOptions & { readonly name?: (index: number) => string } = {},
): Uint8Array<ArrayBuffer> {
  const bytes = allocateBytes(packedByteLength(dtype, values.length))
  const { name } = options
  let at = 0
  const named = name ? { ...options, where: () => name(at) } : options
  for (; at < values.length; at++) encodeElement(dtype, bytes, at, values[at], named)
  return bytes
}
