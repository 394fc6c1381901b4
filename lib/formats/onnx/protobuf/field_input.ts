/**
 * Checks field values from callers before anything is changed, so that an invalid value leaves the message as it was.
 */
import { isInstance, isList } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { isWellFormed } from '../../../utf8.js'
import { valueText } from '../../../value_text.js'

const INT64_LIMIT = 2n ** 63n

/** @param what - start of the error text. @throws TileworkError ERR_ARGUMENT unless it is a string that UTF-8 can encode */
export function checkText(what: string, value: unknown): string {
  if (typeof value === 'string' && isWellFormed(value)) return value
  throw wrong(what, 'a string', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is an array of strings */
export function checkTexts(what: string, values: unknown): readonly string[] {
  for (const value of checkList(what, values)) checkText(what, value)
  return values as readonly string[]
}

/** @throws TileworkError ERR_ARGUMENT unless it is a safe integer, or a bigint of 64 bits, signed */
export function checkInt64(what: string, value: unknown): number | bigint {
  if (Number.isSafeInteger(value)) return value as number
  if (typeof value === 'bigint' && value >= -INT64_LIMIT && value < INT64_LIMIT) return value
  throw wrong(what, 'a signed 64-bit integer', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is a number; NaN and infinities are allowed */
export function checkFloat(what: string, value: unknown): number {
  if (typeof value === 'number') return value
  throw wrong(what, 'a number', value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is a string or bytes */
export function checkBytes(what: string, value: unknown): string | Uint8Array {
  return isInstance(value, Uint8Array) ? value : checkText(what, value)
}

/** @throws TileworkError ERR_ARGUMENT unless it is an array */
export function checkList(what: string, values: unknown): readonly unknown[] {
  if (isList(values)) return values
  throw wrong(what, 'an array', values)
}

function wrong(what: string, wanted: string, value: unknown): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${what} takes ${wanted}; ${valueText(value)} was given.`)
}
