/**
 * Costs of a reorder other than moving bytes: the call from JavaScript for a tiny tensor, and page faults in new memory for
 * a large one. Each result is printed with its goal.
 */
import { availableParallelism } from 'node:os'
import { cast, planReorder, reorder, setThreads, tensor } from '../dist/index.js'
import { buildPrograms } from './native_program.mjs'
import { runReorders } from './reorder_program.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const TINY = { shape: [1, 16, 2, 2], from: 'bfyx', to: 'b_fs_yx_fsv8', dtype: 'float32' }
const LARGE = { shape: [16, 64, 128, 128], from: 'bfyx', to: 'b_fs_yx_fsv16', dtype: 'float32' }
/** Calls per timed run: about a millisecond, which a shared machine rarely interrupts. */
const CALLS = 500
/** Timed runs per round. */
const RUNS = 10
/** Microseconds more than the kernel alone, and of whole calls; minimum rate relative to memory in use, by threads. */
const MAX_MICROSECONDS_ABOVE_KERNEL = 0.2
const MAX_ONE_SHOT_MICROSECONDS = 2
const MAX_PLAN_MICROSECONDS = 0.5
const minRelativeRate = (threads) => (threads === 1 ? 0.4 : 0.8)

export function addCalls(program) {
  program
    .command('calls')
    .description('cost of a call for a tiny tensor, and of new memory for a large one')
    .option('--threads <list>', 'thread counts for the large tensor', `1,${availableParallelism()}`)
    .option('--rounds <n>', 'number of rounds; the best counts', Number, 30)
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
  const best = {}
  const calls = {
    prepared: () => plan.runSync(sourceBytes, destination),
    reordered: () => reorder(stored, TINY.to).bytesSync(),
    cast: () => cast(stored, 'float16').bytesSync(),
    both: () => reorder(cast(stored, 'float16'), TINY.to).bytesSync(),
    planned: () => planReorder(TINY),
  }
  for (let round = 0; round < rounds * RUNS; round++) {
    for (const [name, call] of Object.entries(calls)) {
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, microsecondsOf(call))
    }
  }
  return [
    row('the kernel alone, 256 B, µs', kernel),
    row(
      'plan.runSync above the kernel, 256 B, µs',
      best.prepared - kernel,
      `at most ${MAX_MICROSECONDS_ABOVE_KERNEL}`,
    ),
    oneShotRow('reorder(…).bytesSync(), 256 B, µs', best.reordered),
    oneShotRow('cast(…).bytesSync(), 256 B, µs', best.cast),
    row('reorder(cast(…)).bytesSync(), 256 B, µs', best.both),
    row('planReorder(…) from cache, µs', best.planned, `at most ${MAX_PLAN_MICROSECONDS}`),
  ]
}

/** Rate of a reorder into a new buffer, relative to a buffer that was written before. */
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
    `new result of ${mib} MiB, rate relative to used memory, threads: ${threads}`,
    best.warm / best.fresh,
    `at least ${minRelativeRate(threads)}`,
  )
}

/** Microseconds of one call. */
function microsecondsOf(call) {
  const started = process.hrtime.bigint()
  for (let i = 0; i < CALLS; i++) call()
  return Number(process.hrtime.bigint() - started) / 1e3 / CALLS
}

function oneShotRow(what, microseconds) {
  return row(what, microseconds, `at most ${MAX_ONE_SHOT_MICROSECONDS}`)
}

function values({ shape }) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  return new Float32Array(elements).map((_, i) => i)
}

function row(what, value, goal = '') {
  return { what, value: Math.round(value * 1000) / 1000, goal }
}
