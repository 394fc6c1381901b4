/**
 * Reorders beside plain copies of the same bytes: M is the C library's memcpy, S a copy with streaming stores, which
 * is what memory can do beyond the caches. The kernels are called from C++, so the figures hold no call of JavaScript;
 * every result is compared with the reference's. GB/s count bytes read and written, padding included.
 */
import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseLayout } from '../dist/index.js'
import { fail, jobs, ROOT, requireTools, runOrExit } from '../scripts/toolchain.mjs'
import { report } from './rounds.mjs'

const FOLDER = join(ROOT, 'build-bench')

/** Second-level cache, third-level cache, memory, odd extents, one image, a batch of images. */
const ACTIVATIONS = {
  A: [1, 32, 32, 32],
  B: [1, 64, 112, 112],
  C: [32, 256, 56, 56],
  D: [3, 19, 37, 53],
  E: [1, 3, 224, 224],
  F: [64, 3, 224, 224],
}
const WEIGHTS = { W7: [64, 3, 7, 7], W1: [1024, 1024, 1, 1], W3: [512, 512, 3, 3] }
const DTYPES = ['float32', 'float16', 'uint8']
const BITS = { float64: 64, float32: 32, float16: 16, uint8: 8 }

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
    .option('--threads <list>', 'numbers of threads', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'rounds of the smallest case; the best counts', Number, 60)
    .option('--reference', 'time the reference kernels as well')
    .option('--json', 'print JSON')
    .action(measure)
}

function measure({ case: wanted, threads, rounds, reference, json }) {
  const cases = [
    ...casesOf(ACTIVATIONS, DATA_PAIRS, rounds),
    ...casesOf(WEIGHTS, WEIGHT_PAIRS, rounds),
  ].filter(({ name }) => wanted === undefined || name.includes(wanted.replaceAll(' ', '_')))
  build()
  const counts = [...new Set(threads.split(',').map(Number))]
  const results = counts.flatMap((count) => run(cases, count, reference))
  const wrong = results.filter(({ equal }) => !equal)
  report(results.map(row), { json })
  if (wrong.length > 0) fail(`${wrong.length} results differ from the reference's.`)
}

function casesOf(shapes, pairs, rounds) {
  return Object.entries(shapes).flatMap(([label, shape]) =>
    pairs.flatMap(([from, to]) => DTYPES.map((dtype) => oneCase({ label, shape, from, to, dtype, rounds }))),
  )
}

function oneCase({ label, shape, from, to, dtype, rounds }) {
  const sides = [from, to].map((name) => parseLayout(name).storage(shape, { dtype }))
  const [source, destination] = sides
  const bytes = source.byteLength + destination.byteLength
  const tokens = [
    `${from}>${to}_${dtype}_${label}`,
    BITS[dtype],
    Math.max(5, Math.min(rounds, Math.round((rounds * 2 ** 22) / bytes))),
    source.extents.length,
    ...source.extents,
    ...sides.flatMap(({ side }) => sideTokens(side)),
  ]
  return { name: tokens[0], line: tokens.join(' ') }
}

/** The form that bench/native/reorder_bench.cc reads. */
function sideTokens({ lower, upper, elements, pieces }) {
  const digitTokens = ({ axes, radix, weight }) => [axes.length, ...axes, radix, weight]
  return [
    ...lower,
    ...upper,
    elements,
    pieces.length,
    ...pieces.flatMap(({ axis, lo, hi, digits }) => [
      axis,
      lo,
      hi,
      digits.length,
      ...digits.flatMap(digitTokens),
    ]),
  ]
}

function build() {
  requireTools()
  const options = ['-DTILEWORK_BUILD_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release']
  runOrExit('Configuring the benchmark', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  runOrExit('Building the benchmark', 'cmake', ['--build', FOLDER, '--parallel', String(jobs())])
}

function run(cases, threads, reference) {
  const program = join(FOLDER, 'bench', 'native', 'reorder_bench')
  const input = cases.map(({ line }) => `${line}\n`).join('')
  const options = [String(threads), ...(reference ? ['reference'] : [])]
  const { status, stdout } = spawnSync(program, options, { input, encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (status !== 0) fail(`${program} ended with status ${status}.`)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}

function row({ case: name, threads, bytes, kernel, equal, tilework, memcpy, streaming, reference }) {
  const two = (value) => Math.round(value * 100) / 100
  return {
    case: name,
    threads,
    MiB: two(bytes / 2 ** 20),
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
