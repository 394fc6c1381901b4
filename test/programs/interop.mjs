/**
 * `npm run test:interop`: every program that compares tilework with other writers and readers of its formats, two at a time. The
 * output of each is printed when it ends. A failure hides no other: all run, and the last line names those that failed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { fail } from '../../scripts/toolchain.mjs'

// The longest first, so that the two ends come at about the same time.
const PROGRAMS = [
  'onnx_text.mjs',
  'onnx_opsets.mjs',
  'onnx_shapes.mjs',
  'onnx_values.mjs',
  'onnx_check.mjs',
  'onnx_random.mjs --count 400 --seed 5',
  'interop_images.mjs --count 1500',
  'interop_quantize.mjs',
  'interop_onnx.mjs',
  'interop_npy.mjs',
  'interop_casts.mjs',
  'onnx_encodings.mjs',
  'onnx_simplify.mjs',
  'onnx_simplify.mjs --fuse',
  'interop_gguf.mjs --count 5000',
  'interop_safetensors.mjs',
]
const AT_ONCE = 2

const waiting = [...PROGRAMS]
const failed = []
await Promise.all(Array.from({ length: AT_ONCE }, runNext))
if (failed.length > 0) fail(`test:interop failed: ${failed.join('; ')}`)
console.log(`interop: ${PROGRAMS.length} programs passed`)

async function runNext() {
  for (let program = waiting.shift(); program !== undefined; program = waiting.shift()) await run(program)
}

async function run(program) {
  const started = performance.now()
  const [file, ...args] = program.split(' ')
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(bytes))
  const [status, signal] = await once(child, 'close')
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  console.log(`${program}, ${seconds} s\n${Buffer.concat(output)}`)
  if (status !== 0) failed.push(`${program} (${signal ?? `exit ${status}`})`)
}
