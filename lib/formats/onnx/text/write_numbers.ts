/** Digits as ASCII bytes: a text of a million numbers is one string, without a string for each number. Each returns the offset behind. */

/** ASCII of the characters beside digits. */
export const MINUS = 45
const POINT = 46
const ZERO = 48

/** Digits that are numbers of 32 bits, for which division is a multiplication. */
const LOW_DIGITS = 9
const LOW = 10 ** LOW_DIGITS

/** @param whole - from 0 to 10^9 - 1 */
export function countDigits(whole: number): number {
  let count = 1
  for (let least = 10; least <= whole; least *= 10) count += 1
  return count
}

/** @param whole - without a fraction, of a magnitude up to 2^53 */
export function writeWhole(bytes: Buffer, at: number, whole: number): number {
  if (whole < 0) {
    bytes[at] = MINUS
    return writeWhole(bytes, at + 1, -whole)
  }
  if (whole < LOW) return writeDigits(bytes, at, whole | 0, countDigits(whole))
  const low = whole % LOW
  return writeDigits(bytes, writeWhole(bytes, at, (whole - low) / LOW), low | 0, LOW_DIGITS)
}

/**
 * A number of `count` digits, the last `places` of which are behind the point.
 *
 * @param digits - from 0 to 10^9 - 1
 */
export function writeFraction(
  bytes: Buffer,
  at: number,
  digits: number,
  count: number,
  places: number,
): number {
  const wholeDigits = count - places
  if (wholeDigits <= 0) {
    bytes[at] = ZERO
    bytes[at + 1] = POINT
    return writeDigits(bytes, at + 2, digits, places)
  }
  // Written one byte further, the digits before the point are moved back over it.
  const end = writeDigits(bytes, at + 1, digits, count)
  for (let each = at; each < at + wholeDigits; each++) bytes[each] = bytes[each + 1]!
  bytes[at + wholeDigits] = POINT
  return end
}

export function writeText(bytes: Buffer, at: number, text: string): number {
  for (let each = 0; each < text.length; each++) bytes[at + each] = text.charCodeAt(each)
  return at + text.length
}

/** With leading zeros up to `count` digits. */
function writeDigits(bytes: Buffer, at: number, whole: number, count: number): number {
  let left = whole
  for (let to = at + count - 1; to >= at; to--) {
    const next = (left / 10) | 0
    bytes[to] = ZERO + left - next * 10
    left = next
  }
  return at + count
}

/** Bytes of text that become a string at a time, and the most that one number and its separator take. */
const PART_BYTES = 2 ** 15
const NUMBER_BYTES = 64

/** @param write - writes a number as ASCII at an offset, and returns the offset behind it */
export function joinedNumbers(
  count: number,
  separator: string,
  write: (bytes: Buffer, at: number, index: number) => number,
): string {
  const bytes = Buffer.allocUnsafe(Math.min(PART_BYTES, count * NUMBER_BYTES))
  const parts: string[] = []
  let end = 0
  for (let index = 0; index < count; index++) {
    if (index > 0) end = writeText(bytes, end, separator)
    end = write(bytes, end, index)
    if (end <= PART_BYTES - NUMBER_BYTES && index < count - 1) continue
    parts.push(bytes.toString('latin1', 0, end))
    end = 0
  }
  return parts.join('')
}
