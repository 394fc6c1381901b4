/** Numbers of texts: float32 rounded once, and integers within their range. */
import type { ScalarKind } from '../schema.js'

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

/** A float32 or float64 in the file; NaN keeps its sign. */
export function floatBytes(numeral: string, isDouble: boolean): Uint8Array {
  const bytes = new Uint8Array(isDouble ? 8 : 4)
  const view = new DataView(bytes.buffer)
  const value = wordValue(numeral) ?? (isDouble ? Number(numeral) : singleOf(numeral))
  if (isDouble) view.setFloat64(0, value, true)
  else view.setFloat32(0, value, true)
  if (Number.isNaN(value) && numeral.startsWith('-')) bytes[bytes.length - 1]! |= 0x80
  return bytes
}

function wordValue(numeral: string): number | undefined {
  const word = /^([-+]?)(inf|nan)/i.exec(numeral)
  if (!word) return undefined
  if (word[2]!.toLowerCase() === 'nan') return Number.NaN
  return word[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** The float32 nearest to a decimal numeral. Rounding to float64 first differs where that lies half way between two float32. */
function singleOf(numeral: string): number {
  const value = Number(numeral)
  const single = Math.fround(value)
  if (single === value || Number.isNaN(value)) return single
  const other = neighbour(single, value > single)
  if (Math.abs(value - single) !== Math.abs(finite(other) - value)) return single
  const sign = compare(numeral, value)
  if (sign === 0) return single
  const isUpper = sign > 0
  return isUpper === single > other ? single : other
}

/** The next float32 in a direction; the largest one has infinity as its upper neighbour. */
function neighbour(single: number, upwards: boolean): number {
  float[0] = single
  if (single === 0) {
    bits[0] = upwards ? 1 : 0x80000001
  } else bits[0] = bits[0]! + (upwards === single > 0 ? 1 : -1)
  return float[0]!
}

/** Infinity as the number that would follow the largest float32. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : Math.sign(value) * 2 ** 128
}

/** -1, 0 or 1 where a numeral is less than, equal to or greater than a float64. */
function compare(numeral: string, value: number): number {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^([-+]?)(\d*)\.?(\d*)(?:[eE]([-+]?\d+))?$/.exec(numeral) ?? []
  let left = BigInt(`${whole}${fraction}` || '0') * (sign === '-' ? -1n : 1n)
  const exponent = Number(power) - fraction.length
  let right = BigInt(value * 2 ** EXACT_SHIFT)
  left *= 2n ** BigInt(EXACT_SHIFT)
  if (exponent >= 0) left *= 10n ** BigInt(exponent)
  else right *= 10n ** BigInt(-exponent)
  return left > right ? 1 : left < right ? -1 : 0
}

/** Midpoints of float32 are multiples of 2^-150. */
const EXACT_SHIFT = 150

/** Least and greatest value of the integers of protobuf. */
export const INTEGER_RANGES: Readonly<Partial<Record<ScalarKind, readonly [bigint, bigint]>>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  enum: [-(2n ** 31n), 2n ** 31n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
}
