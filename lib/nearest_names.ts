/** The known names nearest to a mistyped one, for the advice in an error. */

/** Longest name that is compared: the distance costs time in proportion to it, and hostile names are long. */
const MAX_COMPARED_LENGTH = 128
/** Names that an error suggests: more would not be read. */
const MAX_SUGGESTIONS = 3

/**
 * Up to three of `known`, nearest first: names that start with `name`, then names within an edit distance of half its
 * length. A name that differs in case alone is the only one.
 */
export function nearestNames(name: string, known: Iterable<string>): string[] {
  const wanted = name.toLowerCase()
  if (wanted.length === 0 || wanted.length > MAX_COMPARED_LENGTH) return []
  const maxDistance = Math.min(wanted.length - 1, Math.max(2, Math.ceil(wanted.length / 2)), 8)
  return [...known]
    .map((candidate) => ({ candidate, distance: distanceTo(candidate.toLowerCase(), wanted) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((a, b) => a.distance - b.distance)
    .filter(({ distance }, _, [nearest]) => nearest!.distance > SAME || distance === SAME)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ candidate }) => candidate)
}

/** Distance of names that differ in case alone. */
const SAME = -1

function distanceTo(candidate: string, wanted: string): number {
  if (candidate === wanted) return SAME
  if (wanted.length > 1 && candidate.startsWith(wanted)) return 0
  return editDistance(wanted, candidate)
}

/** Levenshtein distance, one row of the table at a time. */
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
