/**
 * The error for an unknown layout name: the name, quoted and escaped because it may come from a file; the reason; and the
 * nearest known names.
 */
import { TileworkError } from '../errors.js'
import { nearestText } from '../nearest_names.js'
import { LAYOUT_ALIASES, LAYOUT_NAMES } from './catalogue.js'

/** Longest name that is parsed. The longest of the catalogue has 49 characters; user-made names may double it. */
export const MAX_NAME_LENGTH = 128
/** Characters of the name that the message repeats. */
const QUOTED_LENGTH = 60
/** Characters of the reason; only a word of a hostile name makes one longer. */
const REASON_LENGTH = 300

const KNOWN_NAMES: readonly string[] = ['row_major', 'column_major', ...LAYOUT_ALIASES, ...LAYOUT_NAMES]

/** @param reason - completes the sentence "unknown layout …: …" @throws TileworkError ERR_LAYOUT_NAME */
export function refuseName(name: string, reason: string): never {
  throw new TileworkError(
    'ERR_LAYOUT_NAME',
    `unknown layout "${shorten(name, QUOTED_LENGTH)}": ${shorten(reason, REASON_LENGTH)}${nearestText(name, KNOWN_NAMES)}`,
  )
}

/** Truncates, and escapes control characters and bidirectional marks, which would rewrite a terminal line. */
function shorten(text: string, length: number): string {
  const shown = text.length > length ? `${text.slice(0, length)}…` : text
  return shown.replace(/[^\x20-\x7e…×]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
