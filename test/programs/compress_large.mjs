/**
 * Compresses a transformer of more than 2 GiB in every way, and runs each result in onnxruntime:
 * `node test/programs/compress_large.mjs --python PYTHON`. PYTHON has numpy and onnxruntime; without them the program prints the
 * reason and exits with 0.
 *
 * Prints, for each `--to`, the CPU seconds and the peak memory of the command, the size of the result, and the error of its output
 * against float32. A command with more than `--most` MiB, and a result that onnxruntime does not load or run, or that is further from
 * float32 than the bits explain, is a failure.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { writeTransformer } from '../../bench/compress_model.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const pathOf = (name) => fileURLToPath(new URL(name, import.meta.url))
const SCRIPT = pathOf('interop/run_large.py')
const COMMAND = pathOf('../../dist/cli/main.js')
const USAGE = new URL('../../bench/usage_at_exit.mjs', import.meta.url).href

/** Largest error that the bits of each target explain in this net, whose weights are random and whose products follow each other. */
const TARGETS = { fp16: 0.02, q8: 0.3, int8: 0.3, uint8: 0.3, q4: 0.9, q4f16: 0.9, bnb4: 0.9, qdq: 0.9 }

const { python, layers, most, to } = new Command('node test/programs/compress_large.mjs')
  .option('--python <path>', 'Python with numpy and onnxruntime', 'python3')
  .option('--layers <n>', 'layers of 50 MB, beside a table of 82 MB', Number, 48)
  .option('--most <mib>', 'peak memory of a command', Number, 300)
  .option('--to <name...>', `any of ${Object.keys(TARGETS).join(', ')}`, Object.keys(TARGETS))
  .parse()
  .opts()

const folder = makeWorkFolder('compress-large')
const model = join(folder, 'model.onnx')
const expected = join(folder, 'expected.npy')

/** @returns what onnxruntime gives for a model, or why it does not */
function run(path, ...against) {
  const output = against.length > 0 ? join(folder, 'found.npy') : expected
  const { status, stdout, stderr, error } = spawnSync(python, [SCRIPT, path, output, ...against], {
    encoding: 'utf8',
  })
  if (error) return { missing: `${python} cannot be run (${error.code})` }
  if (status === 0) return JSON.parse(stdout)
  const reason = stderr.trim().split('\n').at(-1)
  return stderr.includes('ModuleNotFoundError') ? { missing: reason } : { failure: reason }
}

function compress(target) {
  const result = join(folder, `${target}.onnx`)
  const usage = join(folder, 'usage.json')
  const args = ['--import', USAGE, COMMAND, 'compress', model, '--to', target, '-o', result]
  const env = { ...process.env, TILEWORK_USAGE: usage }
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
  if (status !== 0) return { target, failure: stderr.trim() }
  const { cpuSeconds, peakMib } = JSON.parse(readFileSync(usage, 'utf8'))
  const files = [result, `${result}_data`]
  const sizes = files.map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0)
  const found = run(result, expected)
  for (const path of files) rmSync(path, { force: true })
  return {
    target,
    cpuSeconds,
    peakMib,
    files: sizes.filter((size) => size > 0).length,
    bytes: sizes[0] + sizes[1],
    ...found,
  }
}

function failureOf({ target, failure, finite, error, peakMib }) {
  if (failure) return failure
  if (!finite) return 'an output is not finite'
  if (error > TARGETS[target]) return `error ${error}`
  return peakMib > most ? `peak memory of ${Math.round(peakMib)} MiB` : undefined
}

await writeTransformer(model, { layers, external: true })
const { missing, failure } = run(model)
if (missing) {
  console.log(`left out: ${missing}`)
  process.exit(0)
}
if (failure) throw new Error(failure)
const megabytes = (bytes) => Math.round(bytes / 1e6)
console.log(`${layers} layers, ${megabytes(statSync(`${model}_data`).size)} MB`)
const results = to.map(compress)
console.table(
  results.map(({ target, cpuSeconds, peakMib, files, bytes, error }) => ({
    to: target,
    'CPU s': cpuSeconds?.toFixed(2),
    'peak MiB': Math.round(peakMib),
    files,
    MB: megabytes(bytes),
    error: error?.toPrecision(2),
  })),
)
for (const each of results) {
  const reason = failureOf(each)
  if (reason === undefined) continue
  console.error(`failed: ${each.target}: ${reason}`)
  process.exitCode = 1
}
