/**
 * What callers give as values of fields, looked at before anything is changed: a program without types gives anything,
 * and a value that is none must leave the message as it was.
 */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'

/** Half of a character, which UTF-8 has no bytes for. */
const LONE_SURROGATE = /\p{Surrogate}/u

const INT64_LIMIT = 2n ** 63n

/** @param what - begins the sentence. @throws TileworkError ERR_ARGUMENT for what is no text, or none that UTF-8 can hold */
export function checkText(what: string, value: unknown): string {
  if (typeof value === 'string' && !LONE_SURROGATE.test(value)) return value
  throw wrong(what, 'a text', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is a list of texts */
export function checkTexts(what: string, values: unknown): readonly string[] {
  for (const value of checkList(what, values)) checkText(what, value)
  return values as readonly string[]
}

/** @throws TileworkError ERR_ARGUMENT unless it is a whole number that is exact, or a bigint, of 64 bits with a sign */
export function checkInt64(what: string, value: unknown): number | bigint {
  if (Number.isSafeInteger(value)) return value as number
  if (typeof value === 'bigint' && value >= -INT64_LIMIT && value < INT64_LIMIT) return value
  throw wrong(what, 'a whole number of 64 bits', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is a number; NaN and infinities are some */
export function checkFloat(what: string, value: unknown): number {
  if (typeof value === 'number') return value
  throw wrong(what, 'a number', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is a text or bytes */
export function checkBytes(what: string, value: unknown): string | Uint8Array {
  return value instanceof Uint8Array ? value : checkText(what, value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is an array */
export function checkList(what: string, values: unknown): readonly unknown[] {
  if (Array.isArray(values)) return values
  throw wrong(what, 'an array', values)
}

function wrong(what: string, wanted: string, value: unknown): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${what} takes ${wanted}; ${valueText(value)} was given.`)
}
