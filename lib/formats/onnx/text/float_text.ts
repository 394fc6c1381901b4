/**
 * Numbers as C++'s `std::to_chars` writes them, which is what ONNX text has: the fewest digits that give the same number
 * again, in the shorter of plain and scientific notation.
 */

import { countDigits, MINUS, writeFraction, writeText, writeWhole } from './write_numbers.js'

/** Digits without trailing zeros, and the power of ten that they are multiplied by. */
interface Decimal {
  readonly digits: string
  readonly exponent: number
}

/** Longest plain form of a number of several digits, in added zeros: 12e5 is written 1200000, and 12e6 as 1.2e+07. */
const MAX_ZEROS = 5
/** As `MAX_ZEROS`, for the digits behind the point beyond those of the number: 0.0012. */
const MAX_LEADING_ZEROS = 3

/** @param isSingle - whether the value is a float32, which needs fewer digits than a float64 */
export function floatText(value: number, isSingle: boolean): string {
  if (Number.isNaN(value)) return 'nan'
  if (value < 0 || Object.is(value, -0)) return `-${floatText(-value, isSingle)}`
  if (value === Number.POSITIVE_INFINITY) return 'inf'
  if (value === 0) return '0'
  const { digits, exponent } = isSingle ? decimalOfSingle(value) : decimalOf(value.toExponential())
  return isPlain(digits.length, exponent) ? plain(value, digits, exponent) : scientific(digits, exponent)
}

/**
 * Writes the text of `floatText` as ASCII; most float32 values without a string of their own.
 *
 * @returns the offset behind the text
 */
export function writeFloat(bytes: Buffer, at: number, value: number, isSingle: boolean): number {
  const magnitude = Math.abs(value)
  const digits = isSingle ? exactSingle(magnitude) : 0
  const count = countDigits(digits)
  if (digits === 0 || !isPlain(count, exactExponent)) return writeText(bytes, at, floatText(value, isSingle))
  let to = at
  if (value < 0) bytes[to++] = MINUS
  if (exactExponent >= 0) return writeWhole(bytes, to, magnitude)
  return writeFraction(bytes, to, digits, count, -exactExponent)
}

function isPlain(digitCount: number, exponent: number): boolean {
  const isOne = digitCount === 1
  const upper = isOne ? MAX_ZEROS - 1 : MAX_ZEROS
  const lower = -(digitCount + (isOne ? MAX_LEADING_ZEROS - 1 : MAX_LEADING_ZEROS))
  return exponent >= lower && exponent <= upper
}

function plain(value: number, digits: string, exponent: number): string {
  // Written with all its digits: the shortest ones need not be those of the number.
  if (exponent >= 0) return BigInt(value).toString()
  const point = digits.length + exponent
  if (point > 0) return `${digits.slice(0, point)}.${digits.slice(point)}`
  return `0.${'0'.repeat(-point)}${digits}`
}

function scientific(digits: string, exponent: number): string {
  const power = exponent + digits.length - 1
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : ''
  return `${digits[0]}${fraction}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

function decimalOf(exponential: string): Decimal {
  const [mantissa = '', power = ''] = exponential.split('e')
  const digits = mantissa.replace('.', '')
  const short = digits.replace(/0+$/, '')
  const point = mantissa.includes('.') ? digits.length - 1 : 0
  return { digits: short, exponent: Number(power) - point + digits.length - short.length }
}

/** Most digits that a float32 needs, and those that it always keeps: fewer ones are these without zeros at the end. */
const SINGLE_DIGITS = 9
const KEPT_DIGITS = 6
const MOST_DROPPED = SINGLE_DIGITS - KEPT_DIGITS
const POWERS = Array.from({ length: 13 }, (_, power) => 10 ** power)
const INVERSES = POWERS.map((power) => 1 / power)
/** Numbers from 10^8 on have nine digits before the point. */
const [LOWEST_SCALED, HIGHEST_SCALED] = [10 ** (SINGLE_DIGITS - 1), 10 ** SINGLE_DIGITS]

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)
const MANTISSA = 2 ** 23 - 1

/** Powers of ten that move the floats of an exponent, 2^(e - 127) and more, to nine digits or ten. */
const POWER_OF_EXPONENT = Int8Array.from(
  { length: 256 },
  (_, exponent) => SINGLE_DIGITS - 1 - Math.floor(Math.log10(2 ** (exponent - 127))),
)

/** Half of the distance between neighbouring floats of an exponent. */
const HALF_STEPS = Float64Array.from({ length: 256 }, (_, exponent) => 2 ** (exponent - 151))

/** The power of ten of the digits that `exactSingle` returned last: an object for each number would cost as much as the digits. */
let exactExponent = 0

/**
 * The shortest digits of a float32 from 10^-4 to 10^9 by numbers alone, which takes a fiftieth of the time of texts. The product with a
 * power of ten up to 12 is exact: 24 bits and 28 of 5^12. Returns 0 for other numbers, and for powers of two that need more than six
 * digits, around which floats are not evenly spaced. Sets `exactExponent`.
 */
function exactSingle(value: number): number {
  float[0] = value
  const word = bits[0]!
  let power = POWER_OF_EXPONENT[word >>> 23]!
  if (!(power >= 0 && power <= 12)) return 0
  let scaled = value * POWERS[power]!
  // The float is up to twice the power of two that was looked up.
  if (scaled >= HIGHEST_SCALED) scaled = value * (POWERS[--power] ?? Number.NaN)
  if (!(scaled >= LOWEST_SCALED && scaled < HIGHEST_SCALED)) return 0
  const isPower = (word & MANTISSA) === 0
  // Numbers at half of the distance to the next float round to the even one.
  const half = isPower ? 0 : HALF_STEPS[word >>> 23]! * POWERS[power]!
  const isEven = (word & 1) === 0
  let found = isPower ? 0 : rounded(scaled, 1, 1)
  for (let places = isPower ? MOST_DROPPED : 1; places <= MOST_DROPPED; places++) {
    const near = rounded(scaled, POWERS[places]!, INVERSES[places]!)
    const distance = Math.abs(near - scaled)
    if (distance > half || (distance === half && !isEven)) break
    found = near
  }
  found |= 0
  if (found === 0) return 0
  exactExponent = -power
  while (found % 10 === 0) {
    found = (found / 10) | 0
    exactExponent += 1
  }
  return found
}

/**
 * The multiple of a unit that is nearest to `scaled`; of two, the one that is even. A product with the inverse that is rounded up to the
 * next whole number has a rest below zero, and the same result.
 */
function rounded(scaled: number, unit: number, inverse: number): number {
  const lower = Math.floor(scaled * inverse)
  const rest = 2 * (scaled - lower * unit)
  return (rest > unit || (rest === unit && (lower & 1) === 1) ? lower + 1 : lower) * unit
}

function decimalOfSingle(value: number): Decimal {
  const digits = exactSingle(value)
  return digits > 0 ? { digits: String(digits), exponent: exactExponent } : shortestSingle(value)
}

function shortestSingle(value: number): Decimal {
  const exact = decimalOf(value.toExponential(MAX_FRACTION_DIGITS))
  for (let count = 1; count <= SINGLE_DIGITS; count++) {
    const near = candidates(value, exact, count)
    const found = near.filter((each) => Math.fround(numberOf(each)) === value)
    if (found.length > 0) return found.reduce((one, other) => (isNearer(other, one, value) ? other : one))
  }
  return exact
}

/** Digits behind the point that `toExponential` writes. */
const MAX_FRACTION_DIGITS = 100

/**
 * Numbers of `count` digits: the nearest one, and those one unit of the last digit away, because at a power of two the nearest
 * one may lie outside the range of the float. Of two that are equally near, the even one alone.
 */
function candidates(value: number, exact: Decimal, count: number): readonly Decimal[] {
  const { digits, exponent } = decimalOf(value.toExponential(count - 1))
  const zeros = count - digits.length
  const whole = BigInt(digits) * 10n ** BigInt(zeros)
  const unit = exponent - zeros
  const isTie = exact.digits.length === count + 1 && exact.digits.endsWith('5')
  // `toExponential` rounds a tie up.
  const near = isTie ? [whole - (whole % 2n)] : [whole, whole - 1n, whole + 1n]
  return near.filter((each) => each > 0n).map((each) => trimmed(each, unit))
}

function trimmed(whole: bigint, unit: number): Decimal {
  const text = whole.toString()
  const digits = text.replace(/0+$/, '')
  return { digits, exponent: unit + text.length - digits.length }
}

function numberOf({ digits, exponent }: Decimal): number {
  return Number(`${digits}e${exponent}`)
}

function isNearer(one: Decimal, other: Decimal, value: number): boolean {
  return Math.abs(numberOf(one) - value) < Math.abs(numberOf(other) - value)
}
