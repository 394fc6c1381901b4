/**
 * Checks that a file larger than memory is converted in bounded memory and restored bit for bit: `npm run test:large`. A
 * sparse BTF file with 1,000 seeded elements, an odd number of channels and a partial last block is converted to a blocked
 * layout and back, with BTF and with safetensors as the blocked file.
 *
 * The restored file is compared by SHA-256, and the blocked file at the offsets that a formula of this program predicts.
 * Memory is the anonymous memory of the command's process, sampled every few milliseconds.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { open, threads } from '../../dist/index.js'
import { headOfOne, lengthOfOne } from '../../scripts/btf_file.mjs'
import { generator } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const GIB = 2 ** 30
const MIB = 2 ** 20
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const LAYOUT = 'b_fs_yx_fsv16'
const BLOCK = 16
/** Odd, and 13 more than a multiple of 16. */
const CHANNELS = 61
const BATCH = 2
const SEEDED_ELEMENTS = 1000
const DTYPES = { float32: 4, uint16: 2 }
/** Maximum anonymous memory of the process, including Node's own 40 MiB. */
const MAX_ANONYMOUS_BYTES = 64 * MIB
const MAX_ANONYMOUS_BYTES_PER_THREAD = 2 * MIB
const SAMPLE_INTERVAL_MS = 5
/** The blocked and the restored file exist in full at the same time; the input file is sparse. */
const DISK_IN_FILES = 3

const options = new Command('npm run test:large --')
  .description('Converts a file larger than memory to a blocked layout and back in bounded memory.')
  .option('--gib <n>', 'size of the file in GiB', Number, 6)
  .option('--dtype <name...>', 'element types', Object.keys(DTYPES))
  .option('--by <format...>', 'file formats of the blocked file', ['btf', 'safetensors'])
  .option('--seed <n>', 'seed of the data', Number, 1)
  .option('--folder <path>', 'folder for the files')
  .parse()
  .opts()

const failures = []
if (process.platform !== 'linux') console.log('large: skipped, it needs the /proc of Linux')
else await run()

async function run() {
  const folder = makeWorkFolder('large', options.folder)
  const { bavail, bsize } = statfsSync(folder)
  const needed = DISK_IN_FILES * options.gib * GIB
  if (bavail * bsize < needed) {
    console.log(`large: skipped, ${folder} has ${gib(bavail * bsize)} free and ${gib(needed)} are needed`)
    return
  }
  for (const dtype of options.dtype) await testDtype(folder, dtype)
  for (const failure of failures) console.log(`FAILED  ${failure}`)
  console.log(`large: ${failures.length === 0 ? 'passed' : `${failures.length} failed`}`)
  process.exitCode = failures.length === 0 ? 0 : 1
}

async function testDtype(folder, dtype) {
  const original = makeOriginal(join(folder, `${dtype}.btf`), dtype)
  console.log(
    `\n${dtype} [${original.shape}], ${gib(original.byteLength)}, ${original.seeded.length} elements with data`,
  )
  const before = await sha256(original.path)
  for (const format of options.by) {
    const blocked = join(folder, `blocked.${format}`)
    const back = join(folder, 'back.btf')
    const printed = await convert(folder, ['convert', original.path, blocked, '--layout', LAYOUT])
    await compareSeededElements(original, blocked)
    await convert(folder, undoArguments(printed, back))
    rmSync(blocked)
    const after = await sha256(back)
    verdict(
      after === before,
      `by ${format}: SHA-256 ${after === before ? before : `${after}, not ${before}`}`,
    )
    rmSync(back)
  }
  rmSync(original.path)
}

/** A sparse file of one tensor with a few elements that are not 0. */
function makeOriginal(path, dtype) {
  const elementBytes = DTYPES[dtype]
  const plane = (options.gib * GIB) / elementBytes / BATCH / CHANNELS
  const height = Math.max(1, Math.floor(Math.sqrt(plane)))
  const shape = [BATCH, CHANNELS, height, Math.max(1, Math.ceil(plane / height))]
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const random = generator(options.seed)
  const head = headOfOne(dtype, shape)
  const byteLength = lengthOfOne(shape, elements * elementBytes)
  const descriptor = openSync(path, 'w')
  ftruncateSync(descriptor, byteLength)
  writeSync(descriptor, head)
  const seeded = []
  for (let i = 0; i < SEEDED_ELEMENTS; i++) {
    // Always includes the first and the last element.
    const element = i === 0 ? 0 : i === 1 ? elements - 1 : Math.floor(random() * elements)
    const value = Buffer.from(Array.from({ length: elementBytes }, () => 1 + Math.floor(random() * 255)))
    writeSync(descriptor, value, 0, elementBytes, head.length + element * elementBytes)
    seeded.push(element)
  }
  closeSync(descriptor)
  return { path, dtype, shape, elements, byteLength, seeded, dataStart: head.length }
}

/** A shell runs the undo command as the convert command printed it; only the output path differs. */
function undoArguments(printed, back) {
  const [line] = printed.trim().split('\n')
  const output = /^(tilework convert \S+) \S+ (.*)$/.exec(line)
  if (!output) throw new Error(`The command that undoes the conversion was expected, not ${line}`)
  return { shell: `exec ${output[1]} ${back} ${output[2]}` }
}

/** Compares every seeded element between the file and its blocked form. */
async function compareSeededElements(original, blocked) {
  const { path, dtype, dataStart, seeded, shape } = original
  const elementBytes = DTYPES[dtype]
  const blockedStart = await dataStartOf(blocked)
  const [from, to] = [openSync(path, 'r'), openSync(blocked, 'r')]
  const wrong = seeded.filter((element) => {
    const [one, other] = [Buffer.alloc(elementBytes), Buffer.alloc(elementBytes)]
    readSync(from, one, 0, elementBytes, dataStart + element * elementBytes)
    readSync(to, other, 0, elementBytes, blockedStart + blockedElement(element, shape) * elementBytes)
    return !one.equals(other)
  })
  closeSync(from)
  closeSync(to)
  const said = wrong.length === 0 ? `all ${seeded.length} elements` : `${wrong.length} elements differ`
  verdict(wrong.length === 0, `the blocked file has the data at the expected offsets: ${said}`)
}

/** Offset of the elements: the only tensor ends the file. */
async function dataStartOf(path) {
  const file = await open(path)
  const { byteLength } = file.tensors.at(0).storage
  file.close()
  const { size } = statSync(path)
  return path.endsWith('.btf') ? 16 + 16 + 5 * 8 : size - byteLength
}

/** Offset in `b_fs_yx_fsv16` of an element with a row-major index. */
function blockedElement(element, [, channels, height, width]) {
  const x = element % width
  const y = Math.floor(element / width) % height
  const channel = Math.floor(element / (width * height)) % channels
  const batch = Math.floor(element / (width * height * channels))
  const slices = Math.ceil(channels / BLOCK)
  const slice = Math.floor(channel / BLOCK)
  return (((batch * slices + slice) * height + y) * width + x) * BLOCK + (channel % BLOCK)
}

/** Runs the command and samples its memory. Returns its output. */
async function convert(folder, command) {
  const started = performance.now()
  const child = start(folder, command)
  let [printed, peak] = ['', 0]
  child.stdout.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  const looks = setInterval(() => {
    peak = Math.max(peak, anonymousBytes(child.pid))
  }, SAMPLE_INTERVAL_MS)
  const [code, signal] = await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (...outcome) => resolve(outcome))
  })
  clearInterval(looks)
  const seconds = (performance.now() - started) / 1000
  const limit = MAX_ANONYMOUS_BYTES + MAX_ANONYMOUS_BYTES_PER_THREAD * threads()
  const said = `${seconds.toFixed(1)} s, ${(options.gib / seconds).toFixed(2)} GiB/s, anonymous memory ${mib(peak)}`
  const words = Array.isArray(command) ? `tilework ${command.join(' ')}` : command.shell.replace('exec ', '')
  console.log(`$ ${words.replaceAll(`${folder}/`, '')}`)
  verdict(code === 0, `exit code ${code ?? signal}`)
  verdict(peak > 0 && peak <= limit, `${said}; at most ${mib(limit)} with ${threads()} threads`)
  if (code !== 0) throw new Error(`The conversion failed, so there is nothing to compare.`)
  return printed
}

/** The sampled process is always Node: the shell and the script replace themselves by `exec`. */
function start(folder, command) {
  const stdio = ['ignore', 'pipe', 'inherit']
  if (Array.isArray(command)) return spawn(process.execPath, [COMMAND, ...command], { stdio })
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const script = `#!/bin/sh\nexec '${process.execPath}' '${COMMAND}' "$@"\n`
  writeFileSync(join(bin, 'tilework'), script, { mode: 0o755 })
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  return spawn('sh', ['-c', command.shell], { stdio, env })
}

/** 0 for a process that has ended. */
function anonymousBytes(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

async function sha256(path) {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: MIB })) hash.update(chunk)
  return hash.digest('hex')
}

function verdict(isRight, text) {
  console.log(`${isRight ? 'ok    ' : 'WRONG '} ${text}`)
  if (!isRight) failures.push(text)
}

function gib(bytes) {
  return `${(bytes / GIB).toFixed(2)} GiB`
}

function mib(bytes) {
  return `${(bytes / MIB).toFixed(1)} MiB`
}
