/**
 * Checks for memory leaks: `npm run test:memory`. Opens a small file, reorders a tensor, reads it and closes the file,
 * 100,000 times in one process; `--mixed` takes files of every format instead, those of `../shared` included. Resident memory, descriptors and mappings must stay flat after a warm-up. A garbage
 * collection before each sample excludes memory that is merely not collected yet.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { open, reorder, save, slice, tensor } from '../../dist/index.js'
import { writeBtf } from '../../scripts/btf_file.mjs'
import { native } from '../../scripts/internals.mjs'
import { seededBytes } from '../../scripts/seeded.mjs'
import { ROOT } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const KIB = 1024
const SHAPE = [2, 19, 5, 7]
/** Fraction of the cycles in which caches, pools and compiled code may still grow. */
const WARM_UP_SHARE = 0.1
/** Number of samples. */
const SAMPLES = 100
/**
 * Allowed growth of resident memory after the warm-up, by linear regression over all samples: 45 bytes per cycle with the
 * default number of cycles. A leaked page, descriptor or object takes more.
 */
const MAX_GROWTH_KIB = 4 * KIB
/** Allowed rise of a single sample above the first. V8's heap fluctuates by less. */
const MAX_RISE_KIB = 12 * KIB
/**
 * V8 may double its young generation after tens of thousands of cycles, up to 48 MiB. A small fixed size keeps that from
 * looking like a leak, and from hiding one.
 */
const NODE_FLAGS = ['--expose-gc', '--max-semi-space-size=1']

/** Larger files would only make the cycles slower. */
const MAX_FILE_BYTES = 100 * KIB
const EXTENSIONS = ['.btf', '.npy', '.npz', '.safetensors', '.onnx', '.tmfile']
const REAL_FILES = join(ROOT, '..', 'shared', 'fixtures')

const { cycles, mode, mixed } = new Command('npm run test:memory --')
  .description('Opens, reorders and closes a file in a loop; resident memory must stay flat.')
  .option('--cycles <n>', 'number of cycles', Number, 100_000)
  .option('--mixed', 'files of every format')
  .option('--mode <mode>', 'open mode: map, guard or read (default: alternates)')
  .parse()
  .opts()

if (process.platform !== 'linux') console.log('memory: skipped, it requires /proc of Linux')
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
  const folder = makeWorkFolder('memory')
  const files = mixed ? await filesOfEveryFormat(folder) : [smallFile(folder)]
  if (mixed) console.log(`${files.length} files`)
  const failures = await measure(files)
  for (const failure of failures) console.log(`FAILED  ${failure}`)
  console.log(`memory: ${failures.length === 0 ? 'flat' : 'grows'} over ${cycles} cycles`)
  return failures.length === 0 ? 0 : 1
}

function smallFile(folder) {
  const path = join(folder, 'small.btf')
  const elements = SHAPE.reduce((product, extent) => product * extent, 1)
  writeBtf(path, [{ dtype: 'float32', shape: SHAPE, bytes: seededBytes(4 * elements, 1) }])
  return path
}

/** Written ones, models of several files included, and third-party files where they lie beside the checkout. */
async function filesOfEveryFormat(folder) {
  const elements = SHAPE.reduce((product, extent) => product * extent, 1)
  const tensors = ['a', 'b'].map((name) => tensor(new Float32Array(elements).fill(1), { shape: SHAPE, name }))
  const files = [smallFile(folder)]
  const write = async (name, content, options) => {
    files.push(join(folder, name))
    await save(join(folder, name), content, options)
  }
  await write('one.npy', tensors.slice(0, 1))
  for (const extension of EXTENSIONS.slice(2)) await write(`two${extension}`, tensors)
  await write('external.onnx', tensors, { external: { threshold: 0 } })
  await write('shards.safetensors.index.json', tensors, { maxShardBytes: 5 * KIB })
  const real = existsSync(REAL_FILES) ? readdirSync(REAL_FILES, { recursive: true }) : []
  for (const name of real) {
    const path = join(REAL_FILES, name)
    if (EXTENSIONS.includes(extname(name)) && statSync(path).size <= MAX_FILE_BYTES) files.push(path)
  }
  return files
}

/** @returns {Promise<string[]>} failures */
async function measure(files) {
  const looks = []
  const every = Math.max(1, Math.floor(cycles / SAMPLES))
  const started = performance.now()
  for (let cycle = 1; cycle <= cycles; cycle++) {
    await openReorderClose(files[cycle % files.length], optionsOf(cycle), cycle)
    if (cycle % every === 0) looks.push(await look(cycle))
  }
  const seconds = (performance.now() - started) / 1000
  const steady = looks.filter(({ cycle }) => cycle >= cycles * WARM_UP_SHARE)
  report(steady, seconds)
  return judge(steady)
}

function optionsOf(cycle) {
  const modes = mode === undefined ? ['map', 'guard', 'read'] : [mode]
  const chosen = modes[cycle % modes.length]
  return chosen === 'guard' ? { mode: 'map', guard: true } : { mode: chosen }
}

async function openReorderClose(path, options, cycle) {
  const file = await open(path, options)
  const stored = file.tensors.length === 0 ? undefined : file.tensors.at(cycle % file.tensors.length)
  if (stored?.kind === 'dense' && stored.hasData && stored.size > 0) {
    const reversed = () => slice(stored, [{ step: -1 }, ...stored.shape.slice(1).map(() => null)])
    const lazy =
      stored.shape.length === 4
        ? reorder(stored, 'b_fs_yx_fsv16')
        : stored.shape.length === 0
          ? stored
          : reversed()
    const [before, after] = [await stored.bytes(), await lazy.bytes()]
    // The blocked layout stores the same first element.
    if (stored.shape.length === 4 && before[0] !== after[0])
      throw new Error(`The first element of ${path}, reordered, is another one.`)
  }
  file.close()
}

async function look(cycle) {
  // Twice, with a yield to the event loop between: finalizers of native objects run after the collection.
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
  console.log(`linear regression: ${bytesPerCycle(steady).toFixed(1)} bytes per cycle`)
  const { descriptors, mappings } = steady.at(-1)
  console.log(`at the end: ${descriptors} descriptors, ${mappings} mappings`)
}

function judge(steady) {
  const failures = []
  const [first] = steady
  const grownKib = (bytesPerCycle(steady) * (steady.at(-1).cycle - first.cycle)) / KIB
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

/** Slope of the linear regression over the samples. */
function bytesPerCycle(steady) {
  const mean = (of) => steady.reduce((sum, at) => sum + of(at), 0) / steady.length
  const [x, y] = [mean(({ cycle }) => cycle), mean(({ residentKib }) => residentKib)]
  const covariance = mean(({ cycle, residentKib }) => (cycle - x) * (residentKib - y))
  const variance = mean(({ cycle }) => (cycle - x) ** 2)
  return variance === 0 ? 0 : (covariance / variance) * KIB
}
