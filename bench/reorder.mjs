/**
 * Reorders beside plain copies of the same bytes and beside other libraries: M is the C library's memcpy, S a copy with
 * streaming stores, which is what memory can do beyond the caches. The kernels are called from C++, so the figures hold no
 * call of JavaScript; every result is compared with the reference's. GB/s count bytes read and written, padding included.
 */
import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { InvalidArgumentError, Option } from 'commander'
import { importFrom } from '../scripts/optional_package.mjs'
import { fail, ROOT } from '../scripts/toolchain.mjs'
import { buildPrograms } from './native_program.mjs'
import { measureOnnxruntime } from './onnxruntime_reorder.mjs'
import { caseName, everyLayoutCases, matchesWords, reorderCases } from './reorder_cases.mjs'
import { reached } from './reorder_goals.mjs'
import { plotReorders } from './reorder_plot.mjs'
import { programInput, runReorders } from './reorder_program.mjs'
import { caseRow, casesMarkdown, goalRow, goalsMarkdown, missedRows } from './reorder_tables.mjs'
import { machine, printMachine } from './rounds.mjs'

const PEERS = ['onednn', 'onnxruntime']
/** Rows of `--worst` without a number. */
const WORST_SHOWN = 30

export function addReorder(program) {
  program
    .command('reorder')
    .description('reorders between layouts, against plain copies of the same bytes')
    .option('--case <words>', 'only cases that have these words, for example "bfyx>byxf float32 A"')
    .option(
      '--worst [n]',
      'instead: all layouts from and to row_major, 1 MiB of float32, the n slowest',
      Number,
    )
    .option('--threads <list>', 'numbers of threads', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 60)
    .option('--reference', 'time the reference kernels as well')
    .addOption(
      new Option('--peer <name>', 'time another library as well, repeatable')
        .choices(PEERS)
        .argParser(addPeer)
        .default([], 'none'),
    )
    .option('--onnxruntime <folder>', 'where the peer onnxruntime-node is installed', ROOT)
    .option(
      '--goals',
      'show what has to be reached, and whether it was, instead of the cases; also of all layouts',
    )
    .option('--missed', 'with --goals: every case that missed one')
    .option(
      '--input',
      'print what the measuring program reads (build-bench/bench/native/reorder_bench) and end',
    )
    .option('--plot <file>', 'draw the results as SVG')
    .option('--markdown', 'print Markdown')
    .option('--json', 'print JSON')
    .option('--results <files...>', 'show what earlier runs printed with --json, instead of measuring')
    .action(run)
}

async function run(options) {
  const cases = chosenCases(options)
  if (options.input) {
    process.stdout.write(programInput(cases, options.rounds))
    return
  }
  const measured = options.results ? earlier(options.results) : await measure(cases, options)
  show(measured, options)
  if (options.plot) await plotReorders(measured.results, options.plot)
  const wrong = measured.results.filter(isWrong)
  if (wrong.length > 0) fail(`${wrong.length} results differ from the reference's: ${caseName(wrong[0])}, …`)
}

function isWrong({ equal, onednnEqual, inNode }) {
  return !equal || onednnEqual === false || inNode?.equal === false
}

function chosenCases({ case: words = '', worst, goals }) {
  const all = worst ? everyLayoutCases() : [...reorderCases(), ...(goals ? everyLayoutCases() : [])]
  return all.filter((each) => matchesWords(each, words.split(' ').filter(Boolean)))
}

function addPeer(name, names) {
  if (!PEERS.includes(name)) throw new InvalidArgumentError(`Peers are ${PEERS.join(' and ')}.`)
  return [...names, name]
}

async function measure(cases, { threads, rounds, reference, peer: peers, onnxruntime: folder }) {
  buildPrograms()
  const onnxruntime = peers.includes('onnxruntime') ? await importFrom(folder, 'onnxruntime-node') : undefined
  const candidates = [...(reference ? ['reference'] : []), ...peers.filter((peer) => peer === 'onednn')]
  const counts = [...new Set(threads.split(',').map(Number))]
  const runs = counts.map((count) => runReorders(cases, { threads: count, rounds, candidates }))
  const results = runs.flatMap((each) => each.results)
  sayWhatIsMissing(peers, { onednn: runs[0].machine.onednn, onnxruntime }, folder)
  return {
    machine: { ...machine(), ...runs[0].machine, onnxruntime: onnxruntime?.env.versions.node },
    results: onnxruntime ? await measureOnnxruntime(onnxruntime, results) : results,
  }
}

function sayWhatIsMissing(peers, { onednn, onnxruntime }, folder) {
  if (peers.includes('onednn') && onednn === undefined) {
    console.error(
      'oneDNN is left out: CMake did not find it (install libdnnl-dev, or name its folder in CMAKE_PREFIX_PATH).',
    )
  }
  if (peers.includes('onnxruntime') && onnxruntime === undefined) {
    console.error(
      `onnxruntime is left out: there is no onnxruntime-node in ${folder} (npm install onnxruntime-node in a folder of its own, then --onnxruntime FOLDER).`,
    )
  }
}

/** What was measured twice counts as it was the last time. */
function earlier(files) {
  const runs = files.map((file) => JSON.parse(readFileSync(file, 'utf8')))
  const results = new Map()
  for (const result of runs.flatMap((each) => each.results)) {
    results.set(`${caseName(result)} ${result.threads}`, result)
  }
  return { machine: runs[0].machine, results: [...results.values()] }
}

function show(measured, { worst, goals, missed, json, markdown }) {
  const { results } = measured
  if (json) {
    console.log(JSON.stringify(measured))
  } else if (markdown) {
    console.log(goals ? goalsMarkdown(reached(results)) : casesMarkdown(results))
  } else {
    console.table(goals ? rowsOfGoals(results, missed) : rowsOfCases(results, worst))
    printMachine(measured.machine)
  }
}

function rowsOfGoals(results, missed) {
  return missed ? reached(results).flatMap(missedRows) : reached(results).map(goalRow)
}

function rowsOfCases(results, worst) {
  return (worst ? slowest(results, worst === true ? WORST_SHOWN : worst) : results).map(caseRow)
}

/** The slowest against memcpy first. */
function slowest(results, count) {
  const ratio = ({ tilework, memcpy }) => tilework / memcpy
  return results.toSorted((a, b) => ratio(a) - ratio(b)).slice(0, count)
}
