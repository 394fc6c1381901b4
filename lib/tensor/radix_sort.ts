/**
 * A stable sort of entry numbers by whole-number keys: one digit of the keys after the other, lowest first, each
 * time keeping the order of equal digits. Keys come from files, so its time must not depend on their order, and
 * it calls no comparator.
 */
import { allocateBytes } from '../bytes/view_limit.js'

/** Bits of a digit: few passes, and a counter for each digit still fits a core's cache. */
export const DIGIT_BITS = 16

/**
 * Sorts `items` and takes 6 bytes an item besides.
 *
 * @param items - overwritten; the result may or may not be the same array
 * @param passes - digits of the longest key
 * @param digitOf - digit `pass` (0 is the lowest) of an item's key, 0 to 2^16 - 1
 */
export function radixSort(
  items: Uint32Array<ArrayBuffer>,
  passes: number,
  digitOf: (item: number, pass: number) => number,
): Uint32Array<ArrayBuffer> {
  const { length } = items
  let from = items
  let to = new Uint32Array(allocateBytes(4 * length).buffer)
  // Keys are looked up once a pass, because they lie far apart in memory once the items are in another order.
  const digits = new Uint16Array(allocateBytes(2 * length).buffer)
  const starts = new Uint32Array(2 ** DIGIT_BITS)
  for (let pass = 0; pass < passes; pass++) {
    starts.fill(0)
    for (let at = 0; at < length; at++) {
      const digit = digitOf(from[at]!, pass)
      digits[at] = digit
      starts[digit]! += 1
    }
    if (starts[digits[0]!] === length) continue
    sumBefore(starts)
    for (let at = 0; at < length; at++) to[starts[digits[at]!]!++] = from[at]!
    ;[from, to] = [to, from]
  }
  return from
}

/** Turns counts into the number of items before each. */
function sumBefore(counts: Uint32Array): void {
  let sum = 0
  for (let digit = 0; digit < counts.length; digit++) {
    const count = counts[digit]!
    counts[digit] = sum
    sum += count
  }
}

/** How many digits the whole numbers up to `highest` have; none for 0. */
export function digitsOf(highest: number): number {
  let digits = 0
  for (let scale = 1; scale <= highest; scale *= 2 ** DIGIT_BITS) digits += 1
  return digits
}
