/**
 * Tests the C++ tests of reorders: `npm run test:mutants`. Changes one line of the sources at a time, compiles the mutant and
 * runs the tests on it. A mutant on which no test fails survives and is printed: a test is missing, or the change is
 * equivalent. `--seed` draws the mutants; the same sources give the same ones in the same order.
 *
 * Not counted are mutants that do not compile, those whose objects are the original's byte for byte, and those that
 * `equivalent_mutants.json` explains. A killed run continues with `--resume`.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import picomatch from 'picomatch'
import { fail, ROOT, requireTools, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { Copy, copySources } from './mutants/copy.mjs'
import { draw, keyOf } from './mutants/drawn.mjs'
import { excludedFile } from './mutants/excluded.mjs'
import { findTool, mutantsOf, TOOL } from './mutants/generated.mjs'
import { TESTS, writeSizesCases } from './mutants/test_runs.mjs'

const EQUIVALENT = new URL('equivalent_mutants.json', import.meta.url)
const SOURCE = /\.(?:cc|h)$/
const ALL_FILES = ['native/reorder/**/*.{h,cc}', 'native/layout/*.{h,cc}']
/** Outcomes of mutants that the tests should have noticed. */
const COUNTED = ['killed', 'survived']

const options = new Command('npm run test:mutants --')
  .description('Changes lines of the reorders, and checks that the C++ tests notice.')
  .option('--files <glob...>', 'files to change', ALL_FILES)
  .option('--count <n>', 'mutants that compile and are not equivalent', integer, 40)
  .option('--seed <n>', 'seed of the draw', integer, 1)
  .option('--targets <test...>', 'C++ tests, from fast to slow', Object.keys(TESTS))
  .option('--least <share>', 'share of the mutants that tests must kill', number, 0.95)
  .option('--jobs <n>', 'mutants at once, each in a copy of its own', integer, 1)
  .option('--resume <file>', 'file of results, one JSON line each; those that it has are not run again')
  .option('--work <folder>', 'keeps the copies and their builds there for the next run')
  .option('--python <path>', `a Python with ${TOOL.name} ${TOOL.version}; by default it is installed`)
  .parse()
  .opts()

const started = performance.now()
requireTools()
const temporary = makeWorkFolder('mutants')
const python = pythonWithTool()
// Somebody may edit the checkout meanwhile.
const original = join(temporary, 'original')
copySources(ROOT, original)
const files = selectedFiles()
const explained = JSON.parse(readFileSync(EQUIVALENT, 'utf8'))
const known = readResults()
writeSizesCases(temporary)
const copies = await prepareCopies()
const results = await tryMutants()
process.exitCode = summarize(results)

/** Ends this process where it or ninja is missing; a Python that was given must have the tool. */
function pythonWithTool() {
  const hasNinja = spawnSync('ninja', ['--version'], { stdio: 'ignore' }).status === 0
  const { python, reason } = hasNinja
    ? findTool(join(temporary, 'python'), options.python)
    : { reason: 'ninja was not found' }
  if (python !== undefined) return python
  if (options.python !== undefined) fail(reason)
  console.log(`mutants: skipped, ${reason}`)
  process.exit(0)
}

function selectedFiles() {
  const isSelected = picomatch(options.files)
  const names = readdirSync(join(original, 'native'), { recursive: true }).map((name) => `native/${name}`)
  const selected = names.filter((name) => SOURCE.test(name) && isSelected(name)).sort()
  const drawable = selected.filter((path) => excludedFile(path) === undefined)
  if (drawable.length === 0)
    fail(`No source of native/ can be changed by --files ${options.files.join(' ')}.`)
  const excluded = selected.filter((path) => !drawable.includes(path))
  for (const path of excluded) console.log(`left out: ${path}, ${excludedFile(path)}`)
  return drawable.map((path) => ({ path, lines: readFileSync(join(original, path), 'utf8').split('\n') }))
}

/** Results of an earlier run, if it was of the same sources and tests. */
function readResults() {
  if (options.resume === undefined) return new Map()
  const tests = options.targets.map((test) => [test, ...(TESTS[test] ?? [])].join(' '))
  const run = { tool: TOOL.version, sources: hashOfSources(), tests }
  if (!existsSync(options.resume)) {
    appendFileSync(options.resume, `${JSON.stringify(run)}\n`)
    return new Map()
  }
  // A run that was killed may have written half of the last line.
  const lines = readFileSync(options.resume, 'utf8').split('\n').slice(0, -1)
  if (lines[0] !== JSON.stringify(run))
    fail(`${options.resume} has results of other sources or tests; name another file.`)
  writeFileSync(options.resume, `${lines.join('\n')}\n`)
  return new Map(lines.slice(1).map((line) => [keyOf(JSON.parse(line)), JSON.parse(line)]))
}

function hashOfSources() {
  const hash = createHash('sha256')
  for (const folder of ['native', 'test/native']) {
    const names = readdirSync(join(original, folder), { recursive: true }).map(String).sort()
    for (const name of names.filter((each) => /\.(?:cc|def|h|txt)$/.test(each)))
      hash.update(`${folder}/${name}\n`).update(readFileSync(join(original, folder, name)))
  }
  return hash.digest('hex')
}

async function prepareCopies() {
  const parent = resolve(options.work ?? temporary)
  const prepared = Array.from({ length: options.jobs }, async (_, index) => {
    const folder = join(parent, `copy-${index + 1}`)
    mkdirSync(folder, { recursive: true })
    const copy = new Copy(folder)
    return { copy, tests: await copy.prepare(original, options.targets) }
  })
  const all = await Promise.all(prepared)
  for (const test of options.targets.filter((each) => !all[0].tests.includes(each)))
    console.log(`left out: the test ${test}, which does not exist`)
  if (all[0].tests.length === 0) fail(`There is no C++ test of --targets ${options.targets.join(' ')}.`)
  console.log(`mutants: ready to try them (${seconds(started)})`)
  return all.map(({ copy }) => copy)
}

/** @returns the results up to the last one that counts, in the order of the draw */
async function tryMutants() {
  const generated = new Map()
  const mutants = draw(files, options.seed, (path) => {
    if (!generated.has(path)) generated.set(path, mutantsOf(python, join(original, path), temporary))
    return generated.get(path)
  })
  const found = []
  const results = []
  const isDone = () => results.filter(isCounted).length >= options.count
  let next = 0
  const work = async (copy) => {
    while (!isDone()) {
      // Taken before the wait, which others may use.
      const index = next++
      const { value: mutant, done } = await mutants.next()
      if (done) return
      found[index] = await resultOf(mutant, copy)
      while (!isDone() && found[results.length] !== undefined) {
        results.push(found[results.length])
        print(results.at(-1), results.length)
      }
    }
  }
  await Promise.all(copies.map(work))
  return results
}

async function resultOf(mutant, copy) {
  const explanation = explained.find((each) => isExplainedBy(mutant, each))
  if (explanation) return { ...mutant, outcome: 'explained', reason: explanation.reason }
  const before = known.get(keyOf(mutant))
  if (before) return before
  const began = performance.now()
  const result = { ...mutant, ...(await copy.try(mutant)) }
  result.seconds = Math.round((performance.now() - began) / 100) / 10
  if (options.resume !== undefined) appendFileSync(options.resume, `${JSON.stringify(result)}\n`)
  return result
}

/** Lines of explanations are without their indentation; lines move, so their numbers are not compared. */
function isExplainedBy(mutant, { file, original, mutated }) {
  const same = (a, b) => a.trim().replace(/\n\s*/g, '\n') === b
  return mutant.file === file && same(mutant.original, original) && same(mutant.mutated, mutated)
}

function isCounted({ outcome }) {
  return COUNTED.includes(outcome)
}

function print(result, number) {
  const { file, line, original, mutated } = result
  const change = [original, mutated].map((text) => text.trim().replace(/\n\s*/g, ' ⏎ '))
  const took = result.seconds === undefined ? '' : ` (${result.seconds.toFixed(1)} s)`
  console.log(`${number}  ${file}:${line}  ${change.join(' → ')}  ${inWords(result)}${took}`)
  if (result.outcome === 'survived') printDiff(result)
}

function inWords({ outcome, test, isLate, reason }) {
  if (outcome === 'killed') return `killed by ${test}${isLate ? ', by time' : ''}`
  if (outcome === 'equivalent') return 'equivalent by compiler'
  return outcome === 'explained' ? `equivalent, explained: ${reason}` : outcome
}

function printDiff({ file, line, original, mutated }) {
  console.log(`    --- ${file}:${line}`)
  console.log(`    -${original}`)
  for (const each of mutated.split('\n')) console.log(`    +${each}`)
}

/** @returns the exit code */
function summarize(results) {
  const counts = {}
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1
  const { killed = 0, survived = 0 } = counts
  if (survived > 0) console.log('\nsurvived:')
  for (const result of results.filter(({ outcome }) => outcome === 'survived')) printDiff(result)
  const share = killed / (killed + survived)
  const all = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`)
  console.log(
    `\nmutants: ${all.join(', ')} (seed ${options.seed}, ${TOOL.name} ${TOOL.version}, ${seconds(started)})`,
  )
  if (killed + survived < options.count) console.log(`mutants: there were only ${killed + survived} to count`)
  console.log(`mutants: ${(100 * share).toFixed(1)} % killed, at least ${100 * options.least} % must be`)
  return share >= options.least ? 0 : 1
}

function integer(text) {
  const value = number(text)
  if (!Number.isSafeInteger(value)) throw new InvalidArgumentError('must be an integer')
  return value
}

function number(text) {
  const value = Number(text)
  if (text.trim() === '' || !(value >= 0)) throw new InvalidArgumentError('must be a number of at least 0')
  return value
}
