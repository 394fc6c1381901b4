/**
 * Checks for memory leaks in runs on an OpenCL device: `npm run test:opencl`. 10,000 runs in one process alternate between
 * in place, copied, copied in slices, with a cast, rejected by the compiler, and aborted. From time to time the device is
 * lost and gets a new context. Resident memory must stay flat after a warm-up.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { Command } from 'commander'
import { asTensor, cast, devices, materialize, planReorder, reorder } from '../../dist/index.js'
import { collectGarbage } from '../../scripts/collect_garbage.mjs'
import { seededBytes } from '../../scripts/seeded.mjs'

const MIB = 1024 * 1024
/** 2.3 MiB of destination: if one kind of run leaked it, 80 of 1,200 runs would grow memory by three times the limit below. */
const SHAPE = [2, 19, 96, 96]
/** Size of a device buffer that divides a run into slices. */
const SLICE_BYTES = '262144'
/** Fraction of the runs in which programs, queues and compiled code may still grow. */
const WARM_UP_SHARE = 0.4
/**
 * Fraction of the runs whose lowest sample counts: memory that allocators cache fluctuates by several MiB, and leaked
 * memory never returns.
 */
const COUNTED_SHARE = 0.2
/** Number of samples; enough for each part of a short run. */
const SAMPLES = 50
/** Twice the memory by which the allocators of drivers and V8 were seen to fluctuate without a leak. */
const MAX_GROWTH_BYTES = 64 * MIB

/** A new context costs as much as several hundred runs. */
const LOST_EVERY = 50
/** Drivers cache memory per context; this number fills their caches. */
const LOST_BEFORE = 100

const { runs } = new Command('npm run test:opencl --')
  .option('--runs <n>', 'number of runs', Number, 10_000)
  .parse()
  .opts()

const plan = planReorder({ dtype: 'float32', shape: SHAPE, from: 'bfyx', to: 'b_fs_yx_fsv16' })
const source = seededBytes(plan.sourceBytes, 1)
const wanted = new Uint8Array(plan.destinationBytes)
plan.runSync(source, wanted)
const target = new Uint8Array(plan.destinationBytes)
const base = asTensor({ dtype: 'float32', shape: SHAPE, bytes: () => source })
const half = reorder(cast(base, 'float16'), 'byxf')

const KINDS = [
  () => runWith({}),
  () => runWith({ IN_PLACE: '0' }),
  () => runWith({ IN_PLACE: '0', BUFFER_BYTES: SLICE_BYTES }),
  () => materialize(half, { device: 'opencl' }),
  () => fails('ERR_DEVICE_BUILD', () => runWith({ BUILD_OPTIONS: '-cl-no-such-option' })),
  () => fails('ERR_ABORTED', aborted),
]

if (devices().length === 0) console.log('OpenCL memory: skipped, no device was found')
else process.exitCode = await measure()

async function measure() {
  const looks = []
  for (let run = 0; run < LOST_BEFORE; run++) await lost()
  for (let run = 0; run < runs; run++) {
    await (run % LOST_EVERY === 0 ? lost() : KINDS[run % KINDS.length]())
    if (run % Math.ceil(runs / SAMPLES) === 0) looks.push(look(run))
  }
  looks.push(look(runs))
  const lowest = (from) => {
    const counted = looks.filter(({ run }) => run >= runs * from && run <= runs * (from + COUNTED_SHARE))
    return {
      resident: Math.min(...counted.map(({ resident }) => resident)),
      descriptors: Math.min(...counted.map(({ descriptors }) => descriptors)),
    }
  }
  const settled = lowest(WARM_UP_SHARE)
  const end = lowest(1 - COUNTED_SHARE)
  const growth = end.resident - settled.resident
  const descriptors = end.descriptors - settled.descriptors
  const outcome = growth <= MAX_GROWTH_BYTES && descriptors <= 0 ? 'flat' : 'GROWS'
  const from = (settled.resident / MIB).toFixed(1)
  const to = (end.resident / MIB).toFixed(1)
  console.log(
    `OpenCL memory: ${outcome}; ${runs} runs, resident ${from} MiB after the warm-up, ${to} MiB at the end, ${descriptors} descriptors more`,
  )
  return outcome === 'flat' ? 0 : 1
}

function look(run) {
  collectGarbage()
  const descriptors = process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0
  return { run, resident: residentBytes(), descriptors }
}

function residentBytes() {
  if (process.platform !== 'linux') return process.memoryUsage.rss()
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) * 1024
}

async function runWith(settings) {
  for (const [name, value] of Object.entries(settings)) process.env[`TILEWORK_OPENCL_${name}`] = value
  try {
    target.fill(1)
    await plan.run(source, target, { device: 'opencl' })
  } finally {
    for (const name of Object.keys(settings)) delete process.env[`TILEWORK_OPENCL_${name}`]
  }
  if (Buffer.compare(target, wanted) !== 0) throw new Error('The device wrote something else than the CPU.')
}

function lost() {
  const settings = { IN_PLACE: '0', BUFFER_BYTES: SLICE_BYTES, LOSE_AFTER: '1' }
  return fails('ERR_DEVICE_LOST', () => runWith(settings))
}

async function aborted() {
  const abort = new AbortController()
  const run = plan.run(source, target, { device: 'opencl', signal: abort.signal })
  abort.abort()
  await run
}

async function fails(code, call) {
  const error = await call().then(
    () => undefined,
    (reason) => reason,
  )
  if (error?.code !== code) throw new Error(`expected ${code}`, { cause: error })
}
