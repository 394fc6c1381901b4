/**
 * Compares the reorders of two builds, case by case in turn, so that a change of the machine's clock affects both. Each
 * build runs in its own process and therefore in its own steady state. A case counts as slower when the build of this
 * checkout is slower by more than a margin in each of several runs; later runs repeat only the cases that still do.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fail, ROOT } from '../scripts/toolchain.mjs'
import { buildPrograms, PROGRAM_FOLDER } from './native_program.mjs'
import { caseLine, caseName, everyLayoutCases, matchesWords, reorderCases } from './reorder_cases.mjs'
import { machine, printMachine } from './rounds.mjs'

export function addReorderBuilds(program) {
  program
    .command('reorder-builds')
    .description(
      'reorders of this checkout, compared with another checkout whose benchmark programs are built',
    )
    .argument('<folder>', 'the other checkout')
    .option('--case <words>', 'only cases that match all words, for example "bfyx>byxf float32 A"', '')
    .option('--threads <n>', 'thread count', Number, 1)
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 30)
    .option('--runs <n>', 'runs in which a case has to be slower', Number, 3)
    .option('--margin <percent>', 'difference from which a case is slower in one run', Number, 3)
    .option('--every-layout', 'also all layouts from and to row_major, 1 MiB of float32')
    .option('--json', 'print JSON')
    .action(run)
}

async function run(folder, { case: words, threads, rounds, runs, margin, everyLayout, json }) {
  buildPrograms()
  const programs = [join(resolve(folder), PROGRAM_FOLDER), join(ROOT, PROGRAM_FOLDER)].map((each) =>
    startProgram(join(each, 'reorder_bench'), threads),
  )
  const all = [...reorderCases(), ...(everyLayout ? everyLayoutCases() : [])]
  let left = all.filter((each) => matchesWords(each, words.split(' ').filter(Boolean)))
  const measured = []
  for (let n = 1; n <= runs && left.length > 0; n++) {
    const results = await compare(left, programs, rounds)
    measured.push(results)
    left = results.filter(({ ratio }) => ratio < 1 - margin / 100).map(({ which }) => which)
    console.error(`run ${n}: ${left.length} of ${results.length} cases slower by more than ${margin} %`)
  }
  for (const each of programs) each.end()
  show({ first: measured[0] ?? [], last: measured.at(-1) ?? [], left, threads }, json)
  if (left.length > 0)
    fail(`${left.length} cases are slower by more than ${margin} % in each of ${runs} runs`)
}

/** A process that answers each line with a line of JSON. */
function startProgram(path, threads) {
  if (!existsSync(path))
    fail(`${path} does not exist; build the other checkout with -DTILEWORK_BUILD_BENCH=ON`)
  const child = spawn(path, [String(threads)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const read = async () => {
    const { value, done } = await lines.next()
    return done ? fail(`${path} ended early`) : JSON.parse(value)
  }
  const started = read()
  return {
    async measure(line) {
      await started
      child.stdin.write(`${line}\n`)
      return read()
    },
    end: () => child.stdin.end(),
  }
}

/** Rates in GB/s of both builds; the build that starts alternates. */
async function compare(cases, programs, rounds) {
  const results = []
  for (const [i, which] of cases.entries()) {
    const line = caseLine(which, rounds)
    const order = i % 2 === 0 ? [0, 1] : [1, 0]
    const rates = [0, 0]
    for (const n of order) {
      const result = await programs[n].measure(line)
      if (!result.equal)
        fail(`${caseName(which)}: the result of ${n === 0 ? 'the other' : 'this'} build is wrong`)
      rates[n] = result.tilework
      if (n === 1) results[i] = { which, kernel: result.kernel }
    }
    Object.assign(results[i], { other: rates[0], here: rates[1], ratio: rates[1] / rates[0] })
  }
  return results
}

function show({ first, last, left, threads }, json) {
  const mean = Math.exp(first.reduce((sum, { ratio }) => sum + Math.log(ratio), 0) / first.length)
  const slower = last.filter(({ which }) => left.includes(which))
  if (json) {
    console.log(
      JSON.stringify({ machine: machine(), threads, mean, first: first.map(row), slower: slower.map(row) }),
    )
    return
  }
  if (slower.length > 0) console.table(slower.map(row))
  console.log(
    `${first.length} cases, ${threads} threads: geometric mean ${mean.toFixed(3)} of the other build's rate`,
  )
  printMachine(machine())
}

function row({ which, kernel, other, here, ratio }) {
  return { case: caseName(which), kernel, other, here, ratio: Number(ratio.toFixed(3)) }
}
