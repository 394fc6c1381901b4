/**
 * What a counting build (TILEWORK_COUNT_WAYS) says of a run: how often each way was taken, and how each comparison with
 * a threshold went. What no case did is named.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../../scripts/toolchain.mjs'

const NATIVE = join(ROOT, 'native')
/** Files of instruction sets and systems that a run here does not have. */
const ELSEWHERE = process.arch === 'arm64' ? /_avx2|_avx512|_windows/ : /_neon|_windows/

/** Comparisons that have one outcome, by the start of their line, and why they stay. */
const EXPLAINED = [
  {
    file: 'native/reorder/cast/panel_conversion.cc',
    line: 'if (piece > room)',
    reason: 'guards a buffer: a tile has less, as long as it is cut at kMaxEdgeUnits of kLongUnitBytes',
  },
]

/**
 * Prints the tables; false where a way was not taken, or a comparison had one outcome only.
 *
 * @param {readonly string[]} files - written by native/policy/way_counts.cc
 */
export function reportWays(files) {
  const { ways, comparisons } = readCounts(files)
  const missing = []
  console.log('\nways taken')
  for (const name of namedWays()) {
    const count = ways.get(name) ?? 0
    console.log(`${String(count).padStart(12)}  ${name}`)
    if (count === 0) missing.push(`way never taken: ${name}`)
  }
  console.log('\ncomparisons: quantities that are less, equal and more; results that are true and false')
  for (const [key, outcomes] of [...comparisons].sort(([a], [b]) => a.localeCompare(b))) {
    console.log(`${outcomes.map((count) => String(count).padStart(12)).join('')}  ${key}`)
    const [isTrue, isFalse] = outcomes.slice(3)
    if (isTrue > 0 && isFalse > 0) continue
    const explanation = explained(key)
    if (explanation === undefined) missing.push(`one outcome only: ${key}`)
    else console.log(`${' '.repeat(12)}  one outcome: ${explanation}`)
  }
  for (const site of comparedSites()) {
    if (![...comparisons.keys()].some((key) => key.endsWith(` ${site}`)))
      missing.push(`never compared: ${site}`)
  }
  console.log(missing.length === 0 ? '\nways: every one was taken' : `\n${missing.join('\n')}`)
  return missing.length === 0
}

/** @param {string} key - "NAME FILE:LINE" */
function explained(key) {
  const [, file, line] = /^\S+ (.*):(\d+)$/.exec(key)
  const text = readFileSync(join(ROOT, file), 'utf8').split('\n')[Number(line) - 1].trim()
  return EXPLAINED.find((each) => each.file === file && text.startsWith(each.line))?.reason
}

function readCounts(files) {
  const ways = new Map()
  const comparisons = new Map()
  for (const line of files.flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))) {
    const way = /^way (\d+) (.*)$/.exec(line)
    if (way !== null) {
      ways.set(way[2], (ways.get(way[2]) ?? 0) + Number(way[1]))
      continue
    }
    const [, name, site, ...outcomes] = line.split(' ')
    const key = `${name} ${site.replace(/^.*\/native\//, 'native/')}`
    const before = comparisons.get(key) ?? [0, 0, 0, 0, 0]
    comparisons.set(
      key,
      outcomes.map((count, at) => before[at] + Number(count)),
    )
  }
  return { ways, comparisons }
}

function* sources() {
  for (const folder of ['layout', 'policy', 'reorder']) {
    for (const name of readdirSync(join(NATIVE, folder), { recursive: true })) {
      if (!/\.(h|cc)$/.test(name) || ELSEWHERE.test(name)) continue
      yield { file: `native/${folder}/${name}`, text: readFileSync(join(NATIVE, folder, name), 'utf8') }
    }
  }
}

/** The rows of leaves.def, and the names in TILEWORK_WAY("…"), of which one call may choose between two. */
function namedWays() {
  const leaves = readFileSync(join(NATIVE, 'reorder', 'leaf', 'leaves.def'), 'utf8')
  const names = new Set([...leaves.matchAll(/^TILEWORK_LEAF\(\w+,\s*"([^"]+)"/gm)].map(([, name]) => name))
  for (const { text } of sources()) {
    for (const [call] of text.matchAll(/TILEWORK_WAY\([^;]*\);/g)) {
      for (const [, name] of call.matchAll(/"([^"]+)"/g)) names.add(name)
    }
  }
  return [...names].sort()
}

/** Lines that compare with a threshold. */
function comparedSites() {
  const table = readFileSync(join(NATIVE, 'policy', 'thresholds.def'), 'utf8')
  const names = [...table.matchAll(/^TILEWORK_THRESHOLD\((\w+)/gm)].map(([, name]) => name)
  const compared = new RegExp(
    `(?:[<>]=?|at_(?:most|least)\\([^;]*,)\\s*(?:${names.join('|')})\\b(?!\\.value)`,
  )
  const sites = []
  for (const { file, text } of sources()) {
    text.split('\n').forEach((line, at) => {
      if (!/^\s*\/\//.test(line) && compared.test(line)) sites.push(`${file}:${at + 1}`)
    })
  }
  return sites
}
