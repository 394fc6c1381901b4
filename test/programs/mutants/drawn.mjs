/** Draws mutants by seed: first one of all lines, so that a file counts by its lines, then one of the line's mutations. */
import { generator, pick } from '../../../scripts/seeded.mjs'
import { excludedChange, excludedLines } from './excluded.mjs'

/** Lines in a row that give no new mutant; then there are hardly any left. */
const MAX_MISSES = 5000

/**
 * @typedef {object} Mutant
 * @property {string} file - path in the checkout
 * @property {number} line - number of the line, from 1
 * @property {string} original - the line
 * @property {string} mutated - what replaces it, one line or two
 */

/**
 * Each mutant once. The order depends on the arguments alone.
 *
 * @param {readonly { path: string, lines: readonly string[] }[]} files
 * @param {number} seed
 * @param {(path: string) => Promise<Map<number, string[]>>} mutantsOf - by number of the line, from 0
 * @returns {AsyncGenerator<Mutant>}
 */
export async function* draw(files, seed, mutantsOf) {
  const random = generator(seed)
  const lines = files.flatMap(drawableLines)
  const drawn = new Set()
  for (let misses = 0; misses < MAX_MISSES && lines.length > 0; misses++) {
    const { path, index, original } = pick(lines, random)
    const all = (await mutantsOf(path)).get(index) ?? []
    const mutations = all.filter((mutated) => excludedChange(original, mutated) === undefined)
    if (mutations.length === 0) continue
    const mutant = { file: path, line: index + 1, original, mutated: pick(mutations, random) }
    if (drawn.has(keyOf(mutant))) continue
    drawn.add(keyOf(mutant))
    misses = 0
    yield mutant
  }
}

/** @param {Mutant} mutant */
export function keyOf({ file, line, original, mutated }) {
  return JSON.stringify([file, line, original, mutated])
}

function drawableLines({ path, lines }) {
  const rules = excludedLines(lines)
  return lines
    .map((original, index) => ({ path, index, original }))
    .filter(({ index }) => rules[index] === undefined)
}
