/**
 * Compares blocks of GGUF with gguf-py, bit for bit but for payloads of NaN: numbers of blocks of random bits, blocks that numbers are
 * quantized to, and a file with metadata that tilework writes. `node test/programs/interop_gguf.mjs [--count 1000000] [--seed 1]`: blocks
 * of each type. Requires `dist`, the addon, and Python 3 with gguf 0.19; without it prints the reason and exits with 0.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { dequantize, open, quantize, save, tensor } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/gguf_files.py', import.meta.url))
const QUIET_NAN = 0x7fc00000
/** Elements of a row; a whole number of blocks of every type. */
const ROW = 256
/** Blocks in a file: their numbers take 100 MiB at most. */
const MOST_BLOCKS = 100_000

const { values } = parseArgs({
  options: { count: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
})

const missing = missingPython(
  'import numpy; from gguf.constants import GGMLQuantizationType; GGMLQuantizationType.Q1_0',
)
if (missing === undefined) await run(Number(values.count), Number(values.seed))
else console.log(`interop with GGUF: skipped, ${missing}`)

async function run(count, seed) {
  const total = { blocks: 0, quantized: 0, keys: 0 }
  let types = []
  const work = makeWorkFolder('interop-gguf')
  for (let done = 0; done < count; done += MOST_BLOCKS) {
    const folder = join(work, String(done))
    mkdirSync(folder)
    const blocks = Math.min(MOST_BLOCKS, count - done)
    const made = JSON.parse(
      runPython([SCRIPT, 'make', folder, String(blocks), String(seed + done / MOST_BLOCKS)]),
    )
    for (const type of made.types) total.blocks += await compareNumbers(folder, type)
    total.quantized += await compareQuantized(folder, made.quantized)
    total.keys = JSON.parse(runPython([SCRIPT, 'read', folder])).keys
    types = made.types
    rmSync(folder, { recursive: true })
  }
  console.log(
    `interop with GGUF: ${types.length} types, ${total.blocks} blocks to numbers, ${total.quantized} numbers to blocks of 8 types, ${total.keys} keys: all equal`,
  )
}

/** @returns the number of blocks */
async function compareNumbers(folder, type) {
  const file = await open(join(folder, `${type}.gguf`))
  const blocks = file.blocks('blocks')
  const found = new Uint32Array((await dequantize(blocks).toTypedArray()).buffer)
  const { buffer, byteOffset, byteLength } = readFileSync(join(folder, `${type}.numbers`))
  const expected = new Uint32Array(buffer, byteOffset, byteLength / 4)
  assert.equal(found.length, expected.length, type)
  const bad = found.findIndex(
    (bits, at) => bits !== expected[at] && !(expected[at] === QUIET_NAN && isNan(bits)),
  )
  assert.equal(
    bad,
    -1,
    `${type}: number ${bad} is ${found[bad]?.toString(16)}, not ${expected[bad]?.toString(16)}`,
  )
  file.close()
  return blocks.shape[0]
}

function isNan(bits) {
  return (bits & 0x7fffffff) > 0x7f800000
}

/** Quantizes what Python did, and writes it all to a file that Python reads. */
async function compareQuantized(folder, types) {
  const bytes = readFileSync(join(folder, 'finite'))
  const numbers = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4)
  const dense = tensor(numbers, { shape: [numbers.length / ROW, ROW] })
  const tensors = []
  for (const type of types) {
    const made = quantize(tensor(numbers, { shape: dense.shape, name: `${type}.weight` }), type.toLowerCase())
    const found = await made.bytes()
    const expected = readFileSync(join(folder, `${type}.blocks`))
    const bad = found.findIndex((byte, at) => byte !== expected[at])
    assert.equal(bad, -1, `${type}: byte ${bad} of the blocks`)
    assert.equal(found.byteLength, expected.byteLength, type)
    tensors.push(made)
  }
  const metadata = {
    'general.architecture': 'llama',
    'general.name': 'Tiny ünï 🎲',
    'general.file_type': 7,
    'a.negative': -3,
    'a.large': 2 ** 40,
    'a.flag': true,
    'a.texts': ['', 'a', 'ünï'],
  }
  const path = join(folder, 'written.gguf')
  await save(path, tensors, { gguf: { metadata: { ...metadata, 'a.numbers': Int32Array.of(1, -2, 3) } } })
  const expected = {
    metadata: { ...metadata, 'a.numbers': [1, -2, 3] },
    tensors: tensors.map(({ name }) => name),
  }
  writeFileSync(join(folder, 'written.json'), JSON.stringify(expected))
  return numbers.length * types.length
}
