/**
 * Compares casts with plain copies of the same bytes and with other libraries. M is the C library's memcpy; S is a copy with
 * streaming stores, the bandwidth limit beyond the caches. C++ calls the kernels, so the results contain no JavaScript call,
 * and compares every result with the reference. GB/s count bytes read and written.
 */
import { Option } from 'commander'
import { fail, ROOT } from '../scripts/toolchain.mjs'
import { castCases, castLine, castMatches, castName } from './cast_cases.mjs'
import { castGoalResults } from './cast_goals.mjs'
import { measureInNode } from './cast_in_node.mjs'
import { measureInPython } from './cast_in_python.mjs'
import { buildPrograms, runProgram } from './native_program.mjs'
import { goalRow, goalsMarkdown, missedRows, rounded } from './reorder_tables.mjs'
import { machine, printMachine } from './rounds.mjs'
import { savedResults } from './saved_results.mjs'

export function addCast(program) {
  program
    .command('cast')
    .description('casts between element types, compared with plain copies of the same bytes')
    .option('--case <words>', 'only cases that match all words, for example "float32>float16 A"', '')
    .option('--threads <list>', 'thread counts', '1')
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 60)
    .addOption(
      new Option('--peer <name...>', 'also time other libraries')
        .choices(['onnxruntime', 'float16', 'python'])
        .default([], 'none'),
    )
    .option('--modules <folder>', 'folder with onnxruntime-node and @petamoriken/float16 installed', ROOT)
    .option('--python <command>', 'Python with numpy and ml_dtypes', 'python3')
    .option('--goals', 'show goals and whether they are met instead of the cases')
    .option('--missed', 'with --goals: list every case that missed one')
    .option('--input', 'print the input of build-bench/bench/native/cast_bench and exit')
    .option('--markdown', 'with --goals: print Markdown')
    .option('--json', 'print JSON')
    .option('--results <files...>', 'show saved --json outputs instead of measuring')
    .action(run)
}

async function run(options) {
  const words = options.case.split(' ').filter(Boolean)
  const cases = castCases().filter((each) => castMatches(each, words))
  if (options.input) {
    process.stdout.write(inputOf(cases, options.rounds))
    return
  }
  const measured = options.results
    ? savedResults(options.results, castName, (earlier, later) => ({ ...earlier, ...later }))
    : await measure(cases, options)
  show(measured, options)
  const wrong = measured.results.filter(({ equal, inNode }) => !equal || inNode?.equal === false)
  if (wrong.length > 0) fail(`${wrong.length} results differ from the reference: ${castName(wrong[0])}, …`)
}

function inputOf(cases, rounds) {
  return cases.map((each) => `${castLine(each, rounds)}\n`).join('')
}

async function measure(cases, { threads, rounds, peer: peers, modules, python }) {
  buildPrograms()
  const counts = [...new Set(threads.split(',').map(Number))]
  const runs = counts.map((count) => runProgram('cast_bench', [String(count)], inputOf(cases, rounds)))
  let results = runs.flatMap((each) => each.results.map((result, i) => ({ ...cases[i], ...result })))
  if (peers.includes('python')) results = measureInPython(results, python)
  const inNode = peers.filter((peer) => peer !== 'python')
  if (inNode.length > 0) results = await measureInNode(results, inNode, modules)
  return { machine: { ...machine(), ...runs[0].machine }, results }
}

function show(measured, { goals, missed, json, markdown }) {
  const { results } = measured
  if (json) {
    console.log(JSON.stringify(measured))
  } else if (goals && markdown) {
    console.log(goalsMarkdown(castGoalResults(results)))
  } else {
    console.table(goals ? rowsOfGoals(results, missed) : results.map(castRow))
    printMachine(measured.machine)
  }
}

function rowsOfGoals(results, missed) {
  const entries = castGoalResults(results)
  return missed ? entries.flatMap((entry) => missedRows(entry, castName)) : entries.map(goalRow)
}

function castRow(result) {
  const { threads, bytes, level, kernel, equal, tilework, memcpy, streaming, layout, inNode, python } = result
  return {
    case: castName(result),
    threads,
    MiB: rounded(bytes / 2 ** 20),
    level,
    kernel,
    'GB/s': rounded(tilework),
    '/ M': rounded(tilework / memcpy),
    '/ S': rounded(tilework / streaming),
    M: rounded(memcpy),
    S: rounded(streaming),
    ...(layout && { '/ layout': rounded(tilework / layout) }),
    ...(inNode?.onnxruntime && { '/ onnxruntime': rounded(inNode.tilework / inNode.onnxruntime) }),
    ...(inNode?.float16 && { '/ float16.js': rounded(inNode.tilework / inNode.float16) }),
    ...(python && { [`/ ${python.library}`]: rounded(tilework / python.cast) }),
    ...(!equal && { wrong: true }),
  }
}
