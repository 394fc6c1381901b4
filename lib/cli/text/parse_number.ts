/** Parses numbers on the command line: counts and byte sizes. The library checks their ranges. */
import { TileworkError } from '../../index.js'

/**
 * The parser of a whole number.
 *
 * @param flag - the flag with its dashes, for the error message
 */
export function wholeNumber(flag: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,15}$/.test(text)) return Number(text)
    throw new TileworkError('ERR_ARGUMENT', `${flag} is "${text}"; it must be a whole number.`)
  }
}

/** Prefixes of powers of 1024. */
const PREFIXES = ['', 'K', 'M', 'G', 'T']

/**
 * The parser of a number of bytes: `1048576`, `512MiB`, `2GiB`, also `2G`.
 *
 * @param flag - the flag with its dashes, for the error message
 */
export function byteCount(flag: string): (text: string) => number {
  return (text) => {
    const [, digits, prefix = ''] = /^(\d{1,15})(?:([KMGT])(?:iB)?)?$/.exec(text) ?? []
    const bytes = Number(digits) * 1024 ** PREFIXES.indexOf(prefix)
    if (digits !== undefined && Number.isSafeInteger(bytes)) return bytes
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${flag} is "${text}"; it must be a number of bytes such as 512MiB.`,
    )
  }
}
