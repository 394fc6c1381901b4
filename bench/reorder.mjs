/**
 * Reorders beside plain copies of the same bytes: M is the C library's memcpy, S a copy with streaming stores, which
 * is what memory can do beyond the caches. The kernels are called from C++, so the figures hold no call of JavaScript;
 * every result is compared with the reference's. GB/s count bytes read and written, padding included.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { fail, jobs, ROOT, requireTools, runOrExit } from '../scripts/toolchain.mjs'
import { ACTIVATIONS, caseLine, caseName, everyLayoutCases, WEIGHTS } from './reorder_cases.mjs'
import { report } from './rounds.mjs'

const FOLDER = join(ROOT, 'build-bench')

const DTYPES = ['float32', 'float16', 'uint8']

const DATA_PAIRS = [
  ['bfyx', 'bfyx'],
  ['bfyx', 'byxf'],
  ['byxf', 'bfyx'],
  ['bfyx', 'b_fs_yx_fsv4'],
  ['b_fs_yx_fsv4', 'bfyx'],
  ['bfyx', 'b_fs_yx_fsv8'],
  ['b_fs_yx_fsv8', 'bfyx'],
  ['bfyx', 'b_fs_yx_fsv16'],
  ['b_fs_yx_fsv16', 'bfyx'],
  ['bfyx', 'b_fs_yx_fsv32'],
  ['b_fs_yx_fsv32', 'bfyx'],
  ['byxf', 'b_fs_yx_fsv16'],
  ['b_fs_yx_fsv16', 'b_fs_yx_fsv32'],
  ['bfyx', 'bs_fs_yx_bsv16_fsv16'],
]
const WEIGHT_PAIRS = [
  ['oiyx', 'yxio'],
  ['oiyx', 'os_is_yx_isv16_osv16'],
  ['os_is_yx_isv16_osv16', 'oiyx'],
  ['oiyx', 'os_is_yx_isa8_osv16_isv4'],
]

export function addReorder(program) {
  program
    .command('reorder')
    .description('reorders between layouts, against plain copies of the same bytes')
    .option('--case <text>', 'only cases whose name has this text, for example "bfyx>byxf float32"')
    .option(
      '--worst [n]',
      'instead: all layouts from and to row_major, 1 MiB of float32, the n slowest',
      Number,
    )
    .option('--threads <list>', 'numbers of threads', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 60)
    .option('--reference', 'time the reference kernels as well')
    .option('--json', 'print JSON')
    .action(measure)
}

/** Rows of `--worst` without a number. */
const WORST_SHOWN = 30

function measure({ case: wanted, worst, threads, rounds, reference, json }) {
  const all = worst
    ? everyLayoutCases()
    : [...casesOf(ACTIVATIONS, DATA_PAIRS), ...casesOf(WEIGHTS, WEIGHT_PAIRS)]
  const cases = all.filter((each) => wanted === undefined || caseName(each).includes(wanted))
  build()
  const counts = [...new Set(threads.split(',').map(Number))]
  const results = counts.flatMap((count) => run(cases, { threads: count, rounds, reference }))
  report((worst ? slowest(results, worst === true ? WORST_SHOWN : worst) : results).map(row), { json })
  const wrong = results.filter(({ equal }) => !equal)
  if (wrong.length > 0) fail(`${wrong.length} results differ from the reference's.`)
}

function casesOf(shapes, pairs) {
  return Object.entries(shapes).flatMap(([label, shape]) =>
    pairs.flatMap(([from, to]) => DTYPES.map((dtype) => ({ label, shape, from, to, dtype }))),
  )
}

/** The slowest against memcpy first. */
function slowest(results, count) {
  const ratio = ({ tilework, memcpy }) => tilework / memcpy
  return results.toSorted((a, b) => ratio(a) - ratio(b)).slice(0, count)
}

function build() {
  requireTools()
  const options = ['-DTILEWORK_BUILD_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release']
  runOrExit('Configuring the benchmark', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  runOrExit('Building the benchmark', 'cmake', ['--build', FOLDER, '--parallel', String(jobs())])
}

function run(cases, { threads, rounds, reference }) {
  const program = join(FOLDER, 'bench', 'native', 'reorder_bench')
  const input = cases.map((each) => `${caseLine(each, rounds)}\n`).join('')
  const options = [String(threads), ...(reference ? ['reference'] : [])]
  const { status, stdout } = spawnSync(program, options, { input, encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) fail(`${program} ended with status ${status}.`)
  return stdout
    .trim()
    .split('\n')
    .map((line, i) => ({ ...cases[i], ...JSON.parse(line) }))
}

function row(result) {
  const { threads, bytes, kernel, class: nest, equal, tilework, memcpy, streaming, reference } = result
  const two = (value) => Math.round(value * 100) / 100
  return {
    case: caseName(result),
    threads,
    MiB: two(bytes / 2 ** 20),
    class: nest,
    kernel,
    'GB/s': two(tilework),
    '/ M': two(tilework / memcpy),
    '/ S': two(tilework / streaming),
    M: two(memcpy),
    S: two(streaming),
    ...(reference && { '/ reference': two(tilework / reference) }),
    ...(!equal && { wrong: true }),
  }
}
