/**
 * Least-significant-digit radix sort of entry numbers by integer keys; stable. Keys come from files, so the running time must
 * not depend on their order.
 */
import { allocateBytes } from '../bytes/view_limit.js'

/** Bits of a digit: few iterations over the items, and the 2^16 counters fit a core's L2 cache. */
export const DIGIT_BITS = 16

/**
 * Sorts `items`, with 6 bytes of additional memory per item.
 *
 * @param items - overwritten
 * @param digitCount - digits of the longest key
 * @param digitOf - digit `digit` (0 is the lowest) of an item's key, 0 to 2^16 - 1
 * @returns the sorted items: `items` or another array
 */
export function radixSort(
  items: Uint32Array<ArrayBuffer>,
  digitCount: number,
  digitOf: (item: number, digit: number) => number,
): Uint32Array<ArrayBuffer> {
  const { length } = items
  let from = items
  let to = new Uint32Array(allocateBytes(4 * length).buffer)
  // Digits are read once per iteration, because keys are far apart in memory once the items are reordered.
  const digits = new Uint16Array(allocateBytes(2 * length).buffer)
  const starts = new Uint32Array(2 ** DIGIT_BITS)
  for (let position = 0; position < digitCount; position++) {
    starts.fill(0)
    for (let at = 0; at < length; at++) {
      const digit = digitOf(from[at]!, position)
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

/** Exclusive prefix sum, in place. */
function sumBefore(counts: Uint32Array): void {
  let sum = 0
  for (let digit = 0; digit < counts.length; digit++) {
    const count = counts[digit]!
    counts[digit] = sum
    sum += count
  }
}

/** Number of digits of `highest`; 0 for 0. */
export function digitsOf(highest: number): number {
  let digits = 0
  for (let scale = 1; scale <= highest; scale *= 2 ** DIGIT_BITS) digits += 1
  return digits
}
