/**
 * Compares how tilework and Python's protobuf runtime read random encodings of ONNX messages:
 * `node test/programs/onnx_encodings.mjs [--count N] [--seed N]`. Requires Python 3 with onnx; without it the program prints
 * the reason and exits with 0.
 *
 * Every encoding that Python reads must have the same fields here: through `Message`, and for tensors through the reader of
 * headers, which is another one. What Python refuses must end in a result or an error of the library. `double_data` is not
 * compared: no message but the reader of tensors knows it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { importInternal } from '../../scripts/internals.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_encodings.py', import.meta.url))
const { values: options } = parseArgs({
  options: { count: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
})
/** Encodings of a file of Python. */
const BATCH = 20_000
const SHOWN = 5

async function run(count, firstSeed) {
  const readers = await makeReaders()
  const path = join(makeWorkFolder('onnx-encodings'), 'encodings.bin')
  const totals = { same: 0, refused: 0, different: 0 }
  for (let done = 0, seed = firstSeed; done < count; done += BATCH, seed++) {
    runPython([SCRIPT, String(seed), String(Math.min(BATCH, count - done)), path])
    for (const record of recordsOf(readFileSync(path))) {
      const { outcome, text } = compare(record, readers)
      totals[outcome] += 1
      if (text !== undefined && totals.different <= SHOWN) console.log(`seed ${seed}: ${text}`)
    }
  }
  const { same, refused, different } = totals
  console.log(
    `encodings of ONNX messages: ${same} read the same, ${refused} not legal, ${different} different`,
  )
  if (different > 0) process.exitCode = 1
}

function compare({ name, encoded, expected }, { fieldsOfMessage, fieldsOfHeader }) {
  const found = attempt(() => fieldsOfMessage(name, encoded))
  const header = name === 'TensorProto' ? attempt(() => fieldsOfHeader(encoded)) : undefined
  if (expected === '') return { outcome: 'refused' }
  // Python's runtime accepts the number 0, which is not legal, inside a group that it skips.
  if (found.startsWith('ERR_HEADER: A field has the number 0')) return { outcome: 'refused' }
  const ofHeader = header && JSON.stringify(headerOf(JSON.parse(expected)))
  if (found === expected && header === ofHeader) return { outcome: 'same' }
  const hex = Buffer.from(encoded).toString('hex')
  const lines = [`${name} ${hex}`, `  Python:   ${expected}`, `  tilework: ${found}`]
  return { outcome: 'different', text: [...lines, ...(header ? [`  header:   ${header}`] : [])].join('\n') }
}

/** The fields as JSON, or the error of the library, whose class is another one in each internal module. */
function attempt(read) {
  try {
    return JSON.stringify(read())
  } catch (error) {
    if (!/^(TileworkError|FileFault)$/.test(error.constructor.name)) throw error
    return `${error.code}: ${error.message}`
  }
}

async function makeReaders() {
  const { Message } = await importInternal('formats/onnx/protobuf/message')
  const { WireCursor } = await importInternal('formats/onnx/protobuf/wire')
  const { MESSAGES } = await importInternal('formats/onnx/schema')
  const { walkTensor } = await importInternal('formats/onnx/tensor/header')
  const { MemorySource } = await importInternal('bytes/memory')

  return { fieldsOfMessage, fieldsOfHeader }

  function fieldsOfMessage(type, bytes) {
    const source = new MemorySource(bytes, 'an encoding')
    const file = { source, cursor: new WireCursor(source), files: new Map(), depthLimit: 100 }
    return fieldsOf(new Message(type, { file, start: 0, end: bytes.byteLength }))
  }

  /** Each access reads the bytes again, so the order of the accesses does not matter. */
  function fieldsOf(message) {
    return MESSAGES[message.type].flatMap((info) => {
      if (!info) return []
      const values = valuesOf(message, info)
      if (values.length === 0) return []
      return [[info.number, info.isRepeated ? values : values.at(-1)]]
    })
  }

  function valuesOf(message, { name, kind }) {
    if (kind === 'string' || kind === 'bytes')
      return message.byteValues(name).map((value) => Buffer.from(value).toString('hex'))
    if (kind === 'float') return message.floats(name).map(floatText)
    if (kind === 'double') return []
    if (/^(u?int\d+|enum)$/.test(kind)) return message.ints(name).map((value) => integerText(kind, value))
    return message.messages(name).map(fieldsOf)
  }

  function fieldsOfHeader(bytes) {
    const header = walkTensor(WireCursor.over(bytes), bytes.byteLength).next().value
    const pairs = (list) => list.map(({ key, value }) => pairOf(key, value))
    return [
      [1, header.dims.map(String)],
      [2, String(header.dtypeCode)],
      [8, hexOf(header.name)],
      [12, hexOf(header.doc ?? '')],
      [13, pairs(header.external)],
      [14, String(header.location)],
      [16, pairs(header.metadata)],
    ]
  }
}

const hexOf = (text) => Buffer.from(text).toString('hex')
const pairOf = (key, value) => [
  [1, hexOf(key)],
  [2, hexOf(value)],
]

function floatText(value) {
  return Number.isNaN(value) ? 'nan' : Buffer.from(Float32Array.of(value).buffer).toString('hex')
}

/** Numbers of `uint64` fields are kept as signed numbers of the same bits. */
function integerText(kind, value) {
  return String(kind === 'uint64' ? BigInt.asUintN(64, BigInt(value)) : value)
}

/** Fields of a TensorProto without its values and their defaults: the reader of headers does not keep which are set. */
const HEADER = [
  [1, []],
  [2, '0'],
  [8, ''],
  [12, ''],
  [13, []],
  [14, '0'],
  [16, []],
]

function headerOf(fields) {
  const found = new Map(fields)
  const pair = (entry) => pairOf(...[1, 2].map((number) => textOf(new Map(entry).get(number))))
  return HEADER.map(([number, absent]) => {
    const value = found.get(number) ?? absent
    if (number === 13 || number === 16) return [number, value.map(pair)]
    // Readers of headers keep texts, in which bytes that are not UTF-8 become U+FFFD.
    return [number, number === 8 || number === 12 ? hexOf(textOf(value)) : value]
  })
}

const textOf = (hex) => Buffer.from(hex ?? '', 'hex').toString()

function* recordsOf(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const lengths = [0, 4, 8].map((offset) => bytes.readUInt32LE(at + offset))
    at += 12
    const [name, encoded, expected] = lengths.map((length) => {
      at += length
      return bytes.subarray(at - length, at)
    })
    yield { name: name.toString(), encoded: Uint8Array.from(encoded), expected: expected.toString() }
  }
}

const missing = missingPython('import onnx')
if (missing === undefined) await run(Number(options.count), Number(options.seed))
else console.log(`encodings of ONNX messages: skipped, ${missing}`)
