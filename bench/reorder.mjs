/**
 * Compares reorders with plain copies of the same bytes and with other libraries. M is the C library's memcpy; S is a copy
 * with streaming stores, the bandwidth limit beyond the caches. C++ calls the kernels, so the results contain no JavaScript
 * call, and compares every result with the reference. GB/s count bytes read and written, padding included.
 */
import { availableParallelism } from 'node:os'
import { InvalidArgumentError, Option } from 'commander'
import { importFrom } from '../scripts/optional_package.mjs'
import { fail, ROOT } from '../scripts/toolchain.mjs'
import { buildPrograms } from './native_program.mjs'
import { measureOnnxruntime } from './onnxruntime_reorder.mjs'
import { caseName, everyLayoutCases, matchesWords, reorderCases } from './reorder_cases.mjs'
import { goalResults } from './reorder_goals.mjs'
import { plotReorders } from './reorder_plot.mjs'
import { programInput, runReorders } from './reorder_program.mjs'
import { caseRow, casesMarkdown, goalRow, goalsMarkdown, missedRows } from './reorder_tables.mjs'
import { machine, printMachine } from './rounds.mjs'
import { savedResults } from './saved_results.mjs'

const PEERS = ['onednn', 'onnxruntime']
/** Default number of rows of `--worst`. */
const WORST_SHOWN = 30

export function addReorder(program) {
  program
    .command('reorder')
    .description('reorders between layouts, compared with plain copies of the same bytes')
    .option('--case <words>', 'only cases that match all words, for example "bfyx>byxf float32 A"')
    .option(
      '--worst [n]',
      'instead: the n slowest of all layouts from and to row_major, 1 MiB of float32',
      Number,
    )
    .option('--threads <list>', 'thread counts', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 60)
    .option('--reference', 'also time the reference kernels')
    .addOption(
      new Option('--peer <name>', 'also time another library; repeatable')
        .choices(PEERS)
        .argParser(addPeer)
        .default([], 'none'),
    )
    .option('--onnxruntime <folder>', 'folder with onnxruntime-node installed', ROOT)
    .option('--goals', 'show goals and whether they are met instead of the cases, including all layouts')
    .option('--missed', 'with --goals: list every case that missed one')
    .option('--input', 'print the input of build-bench/bench/native/reorder_bench and exit')
    .option('--plot <file>', 'draw the results as SVG')
    .option('--markdown', 'print Markdown')
    .option('--json', 'print JSON')
    .option('--results <files...>', 'show saved --json outputs instead of measuring')
    .action(run)
}

async function run(options) {
  const cases = chosenCases(options)
  if (options.input) {
    process.stdout.write(programInput(cases, options.rounds))
    return
  }
  const measured = options.results ? savedResults(options.results, caseName) : await measure(cases, options)
  show(measured, options)
  if (options.plot) await plotReorders(measured.results, options.plot)
  const wrong = measured.results.filter(isWrong)
  if (wrong.length > 0) fail(`${wrong.length} results differ from the reference: ${caseName(wrong[0])}, …`)
}

function isWrong({ equal, onednnEqual, inNode }) {
  return !equal || onednnEqual === false || inNode?.equal === false
}

function chosenCases({ case: words = '', worst, goals }) {
  const all = worst ? everyLayoutCases() : [...reorderCases(), ...(goals ? everyLayoutCases() : [])]
  return all.filter((each) => matchesWords(each, words.split(' ').filter(Boolean)))
}

function addPeer(name, names) {
  if (!PEERS.includes(name))
    throw new InvalidArgumentError(`unknown peer "${name}"; expected one of: ${PEERS.join(', ')}`)
  return [...names, name]
}

async function measure(cases, { threads, rounds, reference, peer: peers, onnxruntime: folder }) {
  buildPrograms()
  const onnxruntime = peers.includes('onnxruntime') ? await importFrom(folder, 'onnxruntime-node') : undefined
  const candidates = [...(reference ? ['reference'] : []), ...peers.filter((peer) => peer === 'onednn')]
  const counts = [...new Set(threads.split(',').map(Number))]
  const runs = counts.map((count) => runReorders(cases, { threads: count, rounds, candidates }))
  const results = runs.flatMap((each) => each.results)
  reportMissingPeers(peers, { onednn: runs[0].machine.onednn, onnxruntime }, folder)
  return {
    machine: { ...machine(), ...runs[0].machine, onnxruntime: onnxruntime?.env.versions.node },
    results: onnxruntime ? await measureOnnxruntime(onnxruntime, results) : results,
  }
}

function reportMissingPeers(peers, { onednn, onnxruntime }, folder) {
  if (peers.includes('onednn') && onednn === undefined) {
    console.error(
      'oneDNN is skipped: CMake did not find it. Install libdnnl-dev, or set CMAKE_PREFIX_PATH to its folder.',
    )
  }
  if (peers.includes('onnxruntime') && onnxruntime === undefined) {
    console.error(
      `onnxruntime is skipped: ${folder} has no onnxruntime-node. Install it in a folder, and pass --onnxruntime FOLDER.`,
    )
  }
}

function show(measured, { worst, goals, missed, json, markdown }) {
  const { results } = measured
  if (json) {
    console.log(JSON.stringify(measured))
  } else if (markdown) {
    console.log(goals ? goalsMarkdown(goalResults(results)) : casesMarkdown(results))
  } else {
    console.table(goals ? rowsOfGoals(results, missed) : rowsOfCases(results, worst))
    printMachine(measured.machine)
  }
}

function rowsOfGoals(results, missed) {
  return missed ? goalResults(results).flatMap(missedRows) : goalResults(results).map(goalRow)
}

function rowsOfCases(results, worst) {
  return (worst ? slowest(results, worst === true ? WORST_SHOWN : worst) : results).map(caseRow)
}

/** The slowest cases relative to memcpy, slowest first. */
function slowest(results, count) {
  const ratio = ({ tilework, memcpy }) => tilework / memcpy
  return results.toSorted((a, b) => ratio(a) - ratio(b)).slice(0, count)
}
