/** The known names nearest to a mistyped one, for the advice in an error. */
import { least } from './long_lists.js'

/** Longest name that is compared: the distance costs time in proportion to it, and hostile names are long. */
const MAX_COMPARED_LENGTH = 128
/** Longest name that an error repeats. */
const MAX_SHOWN_LENGTH = 160
/** Names that an error suggests: more would not be read. */
const MAX_SUGGESTIONS = 3
/** Longest list that an error shows whole though a name is near: it is read at a glance. */
const MAX_LISTED = 6

/**
 * Up to three of `known`, nearest first: names that start with `name`, then names within an edit distance of half its
 * length. A name that differs in case alone is the only one.
 */
export function nearestNames(name: string, known: Iterable<string>): string[] {
  const wanted = name.toLowerCase()
  if (wanted.length === 0 || wanted.length > MAX_COMPARED_LENGTH) return []
  const maxDistance = Math.min(wanted.length - 1, Math.max(2, Math.ceil(wanted.length / 2)), 8)
  const near: { readonly candidate: string; readonly distance: number }[] = []
  for (const candidate of known) {
    const distance = distanceTo(candidate.toLowerCase(), wanted, maxDistance)
    if (distance <= maxDistance) near.push({ candidate, distance })
  }
  return near
    .sort((a, b) => a.distance - b.distance)
    .filter(({ distance }, _, [nearest]) => nearest!.distance > SAME || distance === SAME)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ candidate }) => candidate)
}

/**
 * The end of a message about an unknown name: `; did you mean "a" or "b"?`
 *
 * @param otherwise - the end where no name is near, without its full stop
 */
export function nearestText(name: unknown, known: Iterable<string>, otherwise = ''): string {
  const near = typeof name === 'string' ? nearestNames(name, known) : []
  const shown = near.map((each) => JSON.stringify(each.slice(0, MAX_SHOWN_LENGTH)))
  const last = shown.pop()
  if (last === undefined) return `${otherwise}.`
  return `; did you mean ${shown.length === 0 ? last : `${shown.join(', ')} or ${last}`}?`
}

/**
 * The end of a message about a value that is none of `known`: the nearest names of a long list, else the whole list.
 */
export function expectedText(value: unknown, known: readonly string[]): string {
  const whole = `; expected one of: ${known.join(', ')}`
  return known.length <= MAX_LISTED ? `${whole}.` : nearestText(value, known, whole)
}

/** Distance of names that differ in case alone. */
const SAME = -1

function distanceTo(candidate: string, wanted: string, limit: number): number {
  if (candidate === wanted) return SAME
  if (wanted.length > 1 && candidate.startsWith(wanted)) return 0
  if (Math.abs(candidate.length - wanted.length) > limit) return Number.POSITIVE_INFINITY
  const [one, other] = withoutSharedEnds(wanted, candidate)
  return editDistance(one, other, limit)
}

/** Names of one model share long prefixes and suffixes, which cost time and change no distance. */
function withoutSharedEnds(one: string, other: string): [string, string] {
  const shorter = Math.min(one.length, other.length)
  let start = 0
  while (start < shorter && one[start] === other[start]) start++
  let end = 0
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)]
}

/**
 * Edits from one name to another: characters put in, left out or replaced, and neighbours that changed places, as typing errors do.
 * One row of the table at a time; infinite where it exceeds `limit`.
 */
function editDistance(from: string, to: string, limit: number): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const replaced = row[column - 1]! + (from[line - 1] === to[column - 1] ? 0 : 1)
      const isSwapped = from[line - 2] === to[column - 1] && from[line - 1] === to[column - 2]
      const swapped = isSwapped ? (before[column - 2] ?? limit) + 1 : limit + 1
      next.push(Math.min(replaced, swapped, row[column]! + 1, next[column - 1]! + 1))
    }
    before = row
    row = next
    if (least(row) > limit) return Number.POSITIVE_INFINITY
  }
  return row[to.length]!
}
