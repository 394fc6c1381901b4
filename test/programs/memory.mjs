/**
 * Shows that memory does not grow: `npm run test:memory`. Opens a small file, reorders a tensor, reads it and closes
 * the file, a hundred thousand times in one process. Resident memory, descriptors and mappings must be flat after a
 * warm-up; collections are forced before each look, so that what is seen is what is held.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { open, reorder } from '../../dist/index.js'
import { writeBtf } from '../../scripts/btf_file.mjs'
import { native } from '../../scripts/internals.mjs'
import { seededBytes } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const KIB = 1024
const SHAPE = [2, 19, 5, 7]
/** Part of the cycles in which caches, pools and compiled code may still come up. */
const WARM_UP_PART = 0.1
/** How many looks are taken in all. */
const LOOKS = 100
/**
 * How much more may be resident at the end than after the warm-up, by the line through all looks: over the default
 * number of cycles some 45 bytes a cycle. A page, a descriptor or an object that is forgotten takes more.
 */
const MAX_GROWTH_KIB = 4 * KIB
/** How much a single look may lie above the first: the heap of V8 breathes by a part of this. */
const MAX_RISE_KIB = 12 * KIB
/**
 * V8 doubles its young generation when it likes, up to 48 MiB and after tens of thousands of cycles. Held small, it
 * cannot be taken for a leak, nor hide one.
 */
const NODE_FLAGS = ['--expose-gc', '--max-semi-space-size=1']

const { cycles, mode } = new Command('npm run test:memory --')
  .description('Open, reorder and close in a loop; resident memory must stay flat.')
  .option('--cycles <n>', 'cycles', Number, 100_000)
  .option('--mode <mode>', 'how the file is opened: map, guard or read; each in turn by default')
  .parse()
  .opts()

if (process.platform !== 'linux') console.log('memory: skipped, it needs the /proc of Linux')
else if (globalThis.gc === undefined) process.exitCode = runWithFlags()
else process.exitCode = await run()

function runWithFlags() {
  const script = fileURLToPath(import.meta.url)
  const { status } = spawnSync(process.execPath, [...NODE_FLAGS, script, ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  return status ?? 1
}

async function run() {
  const path = join(makeWorkFolder('memory'), 'small.btf')
  const elements = SHAPE.reduce((product, extent) => product * extent, 1)
  writeBtf(path, [{ dtype: 'float32', shape: SHAPE, bytes: seededBytes(4 * elements, 1) }])
  const failures = await measure(path)
  for (const failure of failures) console.log(`FAILED  ${failure}`)
  console.log(`memory: ${failures.length === 0 ? 'flat' : 'grows'} over ${cycles} cycles`)
  return failures.length === 0 ? 0 : 1
}

/** @returns {Promise<string[]>} what is wrong */
async function measure(path) {
  const looks = []
  const every = Math.max(1, Math.floor(cycles / LOOKS))
  const started = performance.now()
  for (let cycle = 1; cycle <= cycles; cycle++) {
    await openReorderClose(path, optionsOf(cycle))
    if (cycle % every === 0) looks.push(await look(cycle))
  }
  const seconds = (performance.now() - started) / 1000
  const steady = looks.filter(({ cycle }) => cycle >= cycles * WARM_UP_PART)
  report(steady, seconds)
  return judge(steady)
}

function optionsOf(cycle) {
  const modes = mode === undefined ? ['map', 'guard', 'read'] : [mode]
  const chosen = modes[cycle % modes.length]
  return chosen === 'guard' ? { mode: 'map', guard: true } : { mode: chosen }
}

async function openReorderClose(path, options) {
  const file = await open(path, options)
  const stored = file.tensors.at(0)
  const blocked = reorder(stored, 'b_fs_yx_fsv16')
  const [before, after] = [await stored.bytes(), await blocked.bytes()]
  // The first element of either layout is the same one.
  if (before[0] !== after[0]) throw new Error('The reordered tensor has another first element.')
  file.close()
}

async function look(cycle) {
  // Twice, with a turn between: finalizers of native objects run after the collection that found them.
  for (let i = 0; i < 2; i++) {
    globalThis.gc()
    await new Promise((resume) => setImmediate(resume))
  }
  const status = readFileSync('/proc/self/status', 'utf8')
  return {
    cycle,
    residentKib: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]),
    descriptors: readdirSync('/proc/self/fd').length,
    mappings: native().liveMappings(),
  }
}

function report(steady, seconds) {
  const resident = steady.map(({ residentKib }) => residentKib)
  const mib = (kib) => `${(kib / KIB).toFixed(1)} MiB`
  console.log(`${cycles} cycles in ${seconds.toFixed(1)} s, ${Math.round(cycles / seconds)} a second`)
  console.log(
    `resident after the warm-up: first ${mib(resident[0])}, last ${mib(resident.at(-1))}, ` +
      `least ${mib(Math.min(...resident))}, most ${mib(Math.max(...resident))}`,
  )
  console.log(`line of least squares: ${bytesACycle(steady).toFixed(1)} bytes a cycle`)
  const { descriptors, mappings } = steady.at(-1)
  console.log(`at the end: ${descriptors} descriptors, ${mappings} mappings`)
}

function judge(steady) {
  const failures = []
  const [first] = steady
  const grownKib = (bytesACycle(steady) * (steady.at(-1).cycle - first.cycle)) / KIB
  if (grownKib > MAX_GROWTH_KIB) {
    failures.push(
      `resident memory grew by ${Math.round(grownKib)} KiB; at most ${MAX_GROWTH_KIB} are allowed`,
    )
  }
  const most = Math.max(...steady.map(({ residentKib }) => residentKib))
  if (most - first.residentKib > MAX_RISE_KIB) {
    failures.push(
      `resident memory rose to ${most} KiB from ${first.residentKib}; at most ${MAX_RISE_KIB} more are allowed`,
    )
  }
  for (const what of ['descriptors', 'mappings']) {
    const most = Math.max(...steady.map((at) => at[what]))
    if (most > first[what]) failures.push(`${what}: up to ${most}, ${first[what]} after the warm-up`)
  }
  return failures
}

/** Slope of the line of least squares through the looks. */
function bytesACycle(steady) {
  const mean = (of) => steady.reduce((sum, at) => sum + of(at), 0) / steady.length
  const [x, y] = [mean(({ cycle }) => cycle), mean(({ residentKib }) => residentKib)]
  const covariance = mean(({ cycle, residentKib }) => (cycle - x) * (residentKib - y))
  const variance = mean(({ cycle }) => (cycle - x) ** 2)
  return variance === 0 ? 0 : (covariance / variance) * KIB
}
