/**
 * Lists that a file can make long. A list that is spread into arguments takes a stack slot per element, so that about 120,000
 * elements end the call with a RangeError; the lint rule `no_spread_arguments` refuses such calls.
 */

/** Appends items to a list. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item)
}

/** The greatest number; -Infinity for an empty list. */
export function greatest(numbers: Iterable<number>): number {
  let found = Number.NEGATIVE_INFINITY
  for (const each of numbers) found = Math.max(found, each)
  return found
}

/** The least number; Infinity for an empty list. */
export function least(numbers: Iterable<number>): number {
  let found = Number.POSITIVE_INFINITY
  for (const each of numbers) found = Math.min(found, each)
  return found
}
