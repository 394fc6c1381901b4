/** Encodes names and texts for files. UTF-8 has no lone surrogates: two names that differ only in one would become the same name. */
import { TileworkError } from './errors.js'
import { valueText } from './value_text.js'

const LONE_SURROGATE = /\p{Surrogate}/u

/** True for text that UTF-8 can represent: every surrogate is half of a pair. */
export function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text)
}

/**
 * @param what - subject of the error's sentence
 * @throws TileworkError ERR_UNSUPPORTED for a lone surrogate
 */
export function encodeUtf8(text: string, what: string, format?: string): Uint8Array {
  if (isWellFormed(text)) return Buffer.from(text, 'utf8')
  const message = `${what} is ${valueText(text)}, which has a lone surrogate; UTF-8 cannot represent it.`
  throw new TileworkError('ERR_UNSUPPORTED', message, { ...(format !== undefined && { format }) })
}
