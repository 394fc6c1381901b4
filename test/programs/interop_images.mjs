/**
 * Compares random resizes, letterboxes of processors and colours with Pillow 13, OpenCV, torchvision and transformers, bit for bit:
 * `node test/programs/interop_images.mjs [--count 20000] [--seed 1] [--largest 150] [--python PATH]`. Requires `dist`, the addon,
 * and Python 3 with numpy; of the other packages, those that are missing are named and left out.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
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
    python: { type: 'string', default: process.env.TILEWORK_PYTHON ?? 'python3' },
  },
})

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
let different = 0
let shown = 0
for await (const line of createInterface({ input: python.stdout })) {
  const given = JSON.parse(line)
  if (given.missing === undefined) await compare(given)
  else console.log(`interop of images: ${given.missing} skipped, ${given.reason}`)
}
const reason = await closed
if (reason !== undefined) console.log(`interop of images: skipped, ${reason}`)
for (const [peer, { cases, refused }] of counts)
  console.log(`interop of images: ${peer}: ${cases} cases, ${refused} of them refused by both`)
console.log(`interop of images: ${different} differences`)
if (different > 0) process.exitCode = 1

async function compare(given) {
  const count = counts.get(given.peer) ?? { cases: 0, refused: 0 }
  counts.set(given.peer, count)
  count.cases++
  const { expected } = given
  let found
  try {
    const { shape, dtype, bytes } = await answerOf(tilework, given)
    found = { shape, dtype, sha256: createHash('sha256').update(bytes).digest('hex') }
  } catch (error) {
    if (!(error instanceof tilework.TileworkError)) throw error
    if (expected.error !== undefined) {
      count.refused++
      return
    }
    found = { error: error.message }
  }
  if (JSON.stringify(found) === JSON.stringify(expected)) return
  different++
  if (shown++ < SHOWN) console.log(JSON.stringify({ ...given, found }))
}
