/** Compares tensors of strings by their bytes. */
import { throwIfAborted } from '../cancel.js'
import { eachRawString } from './raw_strings.js'
import type { StringTensor } from './tensor.js'
import { type DifferentElement, equalBits, indexOf, type ValueDifferences } from './value_differences.js'

const decoder = new TextDecoder()

/**
 * Compares tensors with the same number of strings, one by one. Strings have no errors, so every tolerance is 0.
 *
 * @throws TileworkError ERR_ABORTED, and what reading the strings throws
 */
export async function compareStrings(
  a: StringTensor,
  b: StringTensor,
  signal: AbortSignal | undefined,
): Promise<ValueDifferences> {
  throwIfAborted(signal)
  const others = (await eachRawString(b))[Symbol.iterator]()
  let count = 0
  let different = 0
  let first: DifferentElement | null = null
  for (const one of await eachRawString(a)) {
    const next = others.next()
    const other = next.done ? new Uint8Array() : next.value
    if (Buffer.compare(one, other) !== 0) {
      different++
      first ??= { index: indexOf(a.shape, count), a: decoder.decode(one), b: decoder.decode(other) }
    }
    count++
  }
  if (different === 0) return equalBits(count)
  const none = { maxError: null, maxRelativeError: null, meanError: null, sqnr: null, cosine: null }
  const places = { first, firstBeyond: first, worst: null, worstRelative: null }
  return { count, equalBits: false, different, beyond: different, ...places, ...none, nans: null }
}
