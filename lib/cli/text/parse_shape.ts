/** Parses lists of numbers on the command line: shapes and padding. */
import { TileworkError } from '../../index.js'

/** Denotes a shape without axes; the empty list does too. */
const SCALAR = 'scalar'

/** A dimension of which neither extent nor name is known. */
const UNKNOWN = '?'

/**
 * A parser for a flag with whole numbers separated by commas; an empty list or `scalar` has rank 0.
 *
 * @throws TileworkError ERR_ARGUMENT (from the parser)
 */
export function numberList(flag: string): (text: string) => readonly number[] {
  return (text) => partsOf(text).map((part) => wholeNumber(part, flag, text))
}

/**
 * As `numberList`, with names of symbolic dimensions, and `?` (null) for unknown ones.
 *
 * @throws TileworkError ERR_ARGUMENT (from the parser)
 */
export function dimensionList(flag: string): (text: string) => readonly (number | string | null)[] {
  return (text) =>
    partsOf(text).map((part) => {
      if (part === UNKNOWN) return null
      if (/^[A-Za-z_]/.test(part)) return part
      return wholeNumber(part, flag, text, `, names of dimensions or "${UNKNOWN}",`)
    })
}

function partsOf(text: string): string[] {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === SCALAR) return []
  return trimmed.split(',').map((part) => part.trim())
}

function wholeNumber(part: string, flag: string, text: string, others = ''): number {
  const value = /^\d+$/.test(part) ? Number(part) : Number.NaN
  if (!Number.isSafeInteger(value)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${flag} has "${part}" in "${text}"; it takes whole numbers from 0 to 2^53 - 1${others} separated by commas, or "${SCALAR}".`,
    )
  }
  return value
}

/** A list in the form that `--shape` takes. */
export function formatShape(shape: readonly number[]): string {
  return shape.length === 0 ? SCALAR : shape.join(',')
}
