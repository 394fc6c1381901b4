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

/** Throws ERR_LAYOUT_NAME. `reason` completes the sentence "… is no layout: …". */
export function refuseName(name: string, reason: string): never {
  const near = nearestName(name)
  const advice = near === undefined ? '' : ` Did you mean "${near}"?`
  throw new TileworkError('ERR_LAYOUT_NAME', `${quote(name)} is no layout: ${shorten(reason)}.${advice}`)
}

function quote(name: string): string {
  const shown = name.length > QUOTED_LENGTH ? `${name.slice(0, QUOTED_LENGTH)}…` : name
  // JSON leaves DEL, C1 controls and bidirectional marks alone, all of which can rewrite a terminal line.
  return JSON.stringify(shown).replace(
    /[^\x20-\x7e…]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function shorten(reason: string): string {
  return reason.length > 300 ? `${reason.slice(0, 300)}…` : reason
}

/** The name of the catalogue with the fewest single-letter edits, if it is near enough to be meant. */
function nearestName(name: string): string | undefined {
  if (name.length > MAX_NAME_LENGTH) return undefined
  const wanted = name.toLowerCase()
  let best: string | undefined
  let fewest = Math.max(2, Math.floor(wanted.length / 3)) + 1
  for (const candidate of ['row_major', ...LAYOUT_NAMES]) {
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
