/**
 * What a reorder costs besides moving bytes: the call from JavaScript for a tiny tensor, and memory that nobody has
 * touched before for a large one. What has to be reached stands beside each figure.
 */
import { availableParallelism } from 'node:os'
import { planReorder, reorder, setThreads, tensor } from '../dist/index.js'
import { buildPrograms } from './native_program.mjs'
import { runReorders } from './reorder_program.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const TINY = { shape: [1, 16, 2, 2], from: 'bfyx', to: 'b_fs_yx_fsv8', dtype: 'float32' }
const LARGE = { shape: [16, 64, 128, 128], from: 'bfyx', to: 'b_fs_yx_fsv16', dtype: 'float32' }
/** Calls that are timed together. */
const CALLS = 5000
/** Microseconds above the kernel's own; the share of the rate into memory that was used before, by threads. */
const MOST_ABOVE_KERNEL = 0.3
const MOST_ONE_SHOT = 1.5
const LEAST_SHARE = (threads) => (threads === 1 ? 0.4 : 0.8)

export function addCalls(program) {
  program
    .command('calls')
    .description('the cost of a call for a tiny tensor, and of new memory for a large one')
    .option('--threads <list>', 'numbers of threads for the large one', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'rounds; the best counts', Number, 30)
    .option('--json', 'print JSON')
    .action(measure)
}

async function measure({ threads, rounds, json }) {
  const rows = await tinyRows(rounds)
  for (const count of new Set(threads.split(',').map(Number))) rows.push(await largeRow(count, rounds))
  report(rows, { json })
}

async function tinyRows(rounds) {
  buildPrograms()
  const [{ bytes, tilework }] = runReorders([{ ...TINY, bits: 32, label: 'tiny' }], {
    threads: 1,
    rounds,
    candidates: [],
  }).results
  const kernel = bytes / tilework / 1e3
  const source = values(TINY)
  const plan = planReorder(TINY)
  const destination = new Uint8Array(plan.destinationBytes)
  const stored = tensor(source, { dtype: TINY.dtype, shape: TINY.shape })
  const sourceBytes = new Uint8Array(source.buffer)
  const best = await bestOfRounds(
    {
      prepared: () => repeated(() => plan.runSync(sourceBytes, destination)),
      'one shot': () => repeated(() => reorder(stored, TINY.to).bytesSync()),
      planned: () => repeated(() => planReorder(TINY)),
    },
    rounds,
  )
  const microseconds = (name) => (best[name] / CALLS) * 1e6
  return [
    row('the kernel alone, 256 B, µs', kernel),
    row(
      'plan.runSync above the kernel, 256 B, µs',
      microseconds('prepared') - kernel,
      `at most ${MOST_ABOVE_KERNEL}`,
    ),
    row('reorder(…).bytesSync(), 256 B, µs', microseconds('one shot'), `at most ${MOST_ONE_SHOT}`),
    row('planReorder(…), µs', microseconds('planned')),
  ]
}

/** The rate of a reorder into a new result, as a share of that into a buffer which has been written before. */
async function largeRow(threads, rounds) {
  setThreads(threads)
  const source = values(LARGE)
  const plan = planReorder(LARGE)
  const warm = new Uint8Array(plan.destinationBytes).fill(1)
  const stored = tensor(source, { dtype: LARGE.dtype, shape: LARGE.shape })
  const sourceBytes = new Uint8Array(source.buffer)
  const best = await bestOfRounds(
    {
      warm: () => plan.runSync(sourceBytes, warm),
      fresh: () => reorder(stored, LARGE.to).bytesSync(),
    },
    rounds,
  )
  const mib = plan.destinationBytes / 2 ** 20
  return row(
    `new result of ${mib} MiB, rate / rate into used memory, threads: ${threads}`,
    best.warm / best.fresh,
    `at least ${LEAST_SHARE(threads)}`,
  )
}

function repeated(body) {
  for (let i = 0; i < CALLS; i++) body()
}

function values({ shape }) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  return new Float32Array(elements).map((_, i) => i)
}

function row(what, value, goal = '') {
  return { what, value: Math.round(value * 1000) / 1000, goal }
}
