/**
 * Compares random resizes, processors and colours with Pillow (13, or 12 where that is installed), OpenCV, torchvision and
 * transformers, bit for bit: `node test/programs/interop_images.mjs [--count 20000] [--seed 1] [--largest 150] [--threads N]
 * [--python PATH]`. With a largest side of more than 150, sides are log-uniform up to it.
 * Prints the number of cases and the largest difference by library and filter. Requires `dist`, the addon, and Python 3 with numpy;
 * of the other packages, those that are missing are named and left out.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import * as tilework from '../../dist/index.js'
import { answerOf } from './image_cases.mjs'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    largest: { type: 'string', default: '150' },
    threads: { type: 'string' },
    python: { type: 'string', default: process.env.TILEWORK_PYTHON ?? 'python3' },
  },
})

if (values.threads !== undefined) tilework.setThreads(Number(values.threads))

/** Differences printed. */
const SHOWN = 10

const script = fileURLToPath(new URL('interop/images.py', import.meta.url))
const python = spawn(values.python, [script, values.seed, values.count, values.largest], {
  stdio: ['ignore', 'pipe', 'pipe'],
})
let complaint = ''
python.stderr.on('data', (text) => {
  complaint += text
})
const closed = new Promise((resolve) => {
  python.on('error', (error) => resolve(error.message))
  python.on('close', (status) => resolve(status === 0 ? undefined : complaint.trim().split('\n').at(-1)))
})

const counts = new Map()
let shown = 0
for await (const line of createInterface({ input: python.stdout })) {
  const given = JSON.parse(line)
  if (given.missing === undefined) await compare(given)
  else console.log(`interop of images: ${given.missing} skipped, ${given.reason}`)
}
const reason = await closed
if (reason !== undefined) console.log(`interop of images: skipped, ${reason}`)
for (const [what, { cases, refused, different, largest }] of [...counts].sort())
  console.log(
    `interop of images: ${what}: ${cases} cases, ${refused} of them refused by both, ${different} differ, largest difference ${largest}`,
  )
if ([...counts.values()].some(({ different }) => different > 0)) process.exitCode = 1

function countOf({ peer, op, like, filter, layout, backend, name }) {
  const what = [like ?? peer, op, name, filter ?? layout ?? backend]
    .filter((word) => word !== undefined)
    .join(' ')
  const count = counts.get(what) ?? { cases: 0, refused: 0, different: 0, largest: 0 }
  counts.set(what, count)
  return count
}

async function compare(given) {
  const count = countOf(given)
  count.cases++
  const { expected, ...described } = given
  let found
  try {
    found = await answerOf(tilework, given)
  } catch (error) {
    if (!(error instanceof tilework.TileworkError)) throw error
    if (expected.error !== undefined) {
      count.refused++
      return
    }
    found = { error: error.message }
  }
  const difference = differenceOf(found, expected)
  if (difference === 0) return
  count.different++
  count.largest = Math.max(count.largest, difference)
  if (shown++ < SHOWN)
    console.log(JSON.stringify({ ...described, difference, error: found.error ?? expected.error }))
}

/** The largest difference of two elements; 0 only for equal bytes, infinite where the results cannot be compared. */
function differenceOf(found, expected) {
  if (expected.data === undefined || found.bytes === undefined) return Number.POSITIVE_INFINITY
  const wanted = Buffer.from(expected.data, 'base64')
  if (found.dtype !== expected.dtype || `${found.shape}` !== `${expected.shape}`)
    return Number.POSITIVE_INFINITY
  if (wanted.equals(found.bytes)) return 0
  const [a, b] = [wanted, found.bytes].map((bytes) => elementsOf(bytes, found.dtype))
  const largest = a.reduce((most, value, at) => Math.max(most, Math.abs(value - b[at])), 0)
  return largest || Number.MIN_VALUE
}

function elementsOf(bytes, dtype) {
  const Elements = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array }[dtype]
  return new Elements(Uint8Array.from(bytes).buffer)
}
