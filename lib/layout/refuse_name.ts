/**
 * The one way in which a layout name is refused: quoted (shortened, control characters escaped), with the reason,
 * and with the nearest name that exists.
 */
import { TileworkError } from '../errors.js'
import { LAYOUT_NAMES } from './catalogue.js'

/** Longest name that is looked at. The longest of the catalogue has 49 characters; user-made names may double it. */
export const MAX_NAME_LENGTH = 128
/** Characters of a refused name that a message repeats. */
const QUOTED_LENGTH = 60
/** Characters of a reason; only the words of a hostile name make one longer. */
const REASON_LENGTH = 300

/** Throws ERR_LAYOUT_NAME. `reason` completes the sentence "… is no layout: …". */
export function refuseName(name: string, reason: string): never {
  const near = nearestName(name)
  const advice = near === undefined ? '' : ` Did you mean "${near}"?`
  throw new TileworkError(
    'ERR_LAYOUT_NAME',
    `${quote(name)} is no layout: ${shorten(reason, REASON_LENGTH)}.${advice}`,
  )
}

function quote(name: string): string {
  return `"${shorten(name, QUOTED_LENGTH)}"`
}

/**
 * Cuts and escapes, since a name may come from a file: control characters, and the bidirectional marks that rewrite
 * a terminal line, become `\\u…`. The signs that our own sentences use stay.
 */
function shorten(text: string, length: number): string {
  const shown = text.length > length ? `${text.slice(0, length)}…` : text
  return shown.replace(/[^\x20-\x7e…×]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The name of the catalogue with the fewest single-letter edits, if it is near enough to be meant. */
function nearestName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined
  const wanted = name.toLowerCase()
  let best: string | undefined
  let fewest = Math.max(2, Math.floor(wanted.length / 3)) + 1
  for (const candidate of ['row_major', 'column_major', ...LAYOUT_NAMES]) {
    if (Math.abs(candidate.length - wanted.length) >= fewest) continue
    const edits = editDistance(wanted, candidate)
    if (edits < fewest) {
      fewest = edits
      best = candidate
    }
  }
  return best
}

/** Levenshtein distance, one row at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const replaced = row[column - 1]! + (from[line - 1] === to[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[column]! + 1, next[column - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
