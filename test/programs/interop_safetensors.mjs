/**
 * Checks that tilework and the Python package safetensors read each other's files bit for bit, and write the same bytes:
 * `node test/programs/interop_safetensors.mjs`. Requires `dist`, the addon, and Python 3 with safetensors (0.8 or newer)
 * and numpy; without them it prints the reason and exits with 0.
 *
 * tilework writes files and a list of their tensors; Python reads and compares them, and writes the same tensors; tilework
 * reads those files.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { asTensor, check, DTYPES, open, reorder, save, serialize } from '../../dist/index.js'
import { generator, seededBytes } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

/** Element types: name in tilework, name in the Python package, code in a file. */
const TYPES = [
  ['bool', 'bool', 'BOOL'],
  ['float4_e2m1fn', 'float4_e2m1fn_x2', 'F4'],
  ['uint8', 'uint8', 'U8'],
  ['int8', 'int8', 'I8'],
  ['float8_e5m2', 'float8_e5m2', 'F8_E5M2'],
  ['float8_e4m3fn', 'float8_e4m3fn', 'F8_E4M3'],
  ['float8_e8m0fnu', 'float8_e8m0fnu', 'F8_E8M0'],
  ['float8_e4m3fnuz', 'float8_e4m3fnuz', 'F8_E4M3FNUZ'],
  ['float8_e5m2fnuz', 'float8_e5m2fnuz', 'F8_E5M2FNUZ'],
  ['int16', 'int16', 'I16'],
  ['uint16', 'uint16', 'U16'],
  ['float16', 'float16', 'F16'],
  ['bfloat16', 'bfloat16', 'BF16'],
  ['int32', 'int32', 'I32'],
  ['uint32', 'uint32', 'U32'],
  ['float32', 'float32', 'F32'],
  ['complex64', 'complex64', 'C64'],
  ['float64', 'float64', 'F64'],
  ['int64', 'int64', 'I64'],
  ['uint64', 'uint64', 'U64'],
].map(([dtype, python, code]) => ({ dtype, python, code }))

const SHAPES = [[3, 4], [2], [5, 0, 4], [], [1, 2, 3, 1, 2]]
const NAMES = [
  'weight',
  'a',
  'Z',
  'ünï/cödé',
  '\u{1f3b2}',
  '\uff21',
  '',
  '__proto__',
  'quote " \\ \n \u0001 \u007f',
  '10',
  '9',
]

/** Header fragments that readers of JSON, numbers or names may misinterpret. */
const FRAGMENTS = [
  '0',
  '-0',
  '1.0',
  '1e400',
  '18446744073709551616',
  '""',
  'null',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '\\',
]
const LONGER_FRAGMENTS = [
  '\\u0061',
  '\\ud800',
  ' ',
  '\n',
  '\0',
  '/**/',
  '"shape"',
  '"x":1,',
  '"F4"',
  '"__metadata__"',
  '\ufeff',
]
const CHANGES = 3000

const SCRIPT = fileURLToPath(new URL('interop/safetensors_files.py', import.meta.url))

const missing = missingPython('import numpy, safetensors; safetensors.TensorSpec')
if (missing === undefined) await run()
else console.log(`interop with safetensors: skipped, ${missing}`)

async function run() {
  const folder = makeWorkFolder('interop-safetensors')
  const random = generator(20_260)
  const cases = await writeCases(folder, random)
  writeFileSync(join(folder, 'cases.json'), JSON.stringify(cases))
  const changed = changedFiles(folder, random)
  writeFileSync(join(folder, 'changed.json'), JSON.stringify(changed.map((bytes) => bytes.toString('hex'))))
  const { version, unknown, accepted } = JSON.parse(runPython([SCRIPT, folder]).trim().split('\n').at(-1))
  for (const { name, tensors, metadata, layouts } of cases.files) {
    if (!layouts) await compare(join(folder, `python-${name}`), tensors, folder, metadata)
  }
  await compare(join(folder, 'python-numpy.safetensors'), cases.numpy.tensors, folder, { format: 'np' })
  const index = join(folder, 'python-shards', 'model.safetensors.index.json')
  await compare(index, cases.numpy.tensors, folder, { format: 'np' })
  assert.deepEqual(unknown, [], 'the package does not know a type')
  const strictly = await compareVerdicts(changed, accepted)
  const count = cases.files.reduce((sum, { tensors }) => sum + tensors.length, 0)
  console.log(
    `interop with safetensors ${version}: ${cases.files.length} files, ${count} tensors, shards: all equal`,
  )
  console.log(
    `${changed.length} changed files: ${strictly} pass strict checks, and the package reads all of those`,
  )
}

/** Files with one or two changed header bytes and a corrected header length. */
function changedFiles(folder, random) {
  const fragments = [...FRAGMENTS, ...LONGER_FRAGMENTS]
  const pick = (list) => list[Math.floor(random() * list.length)]
  const seeds = ['metadata', 'names', 'empty', 'F4', 'BOOL'].map((name) =>
    readFileSync(join(folder, `${name}.safetensors`)),
  )
  return Array.from({ length: CHANGES }, () => {
    let bytes = pick(seeds)
    for (let changes = 1 + Math.floor(random() * 2); changes > 0; changes--) {
      const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE()))
      const at = Math.floor(random() * (header.length + 1))
      const removed = Math.floor(random() * 4)
      const parts = [header.subarray(0, at), Buffer.from(pick(fragments)), header.subarray(at + removed)]
      const length = Buffer.alloc(8)
      length.writeBigUInt64LE(BigInt(parts.reduce((sum, part) => sum + part.length, 0)))
      bytes = Buffer.concat([length, ...parts, bytes.subarray(8 + header.length)])
    }
    return bytes
  })
}

/** Checks that the reference reads every file that passes the strict check. Returns the number of such files. */
async function compareVerdicts(changed, accepted) {
  let clean = 0
  for (const [at, bytes] of changed.entries()) {
    const findings = await check(bytes, { level: 'strict', format: 'safetensors' })
    if (findings.some(({ severity }) => severity === 'error')) continue
    clean += 1
    assert.ok(accepted[at], `the reference refuses ${JSON.stringify(bytes.toString('latin1').slice(0, 400))}`)
  }
  assert.ok(clean > CHANGES / 50, 'too few changed files are good to compare')
  return clean
}

/** Files with one type, with all types in random order, with metadata, with blocked tensors; and shards. */
async function writeCases(folder, random) {
  const files = []
  let made = 0
  const make = (type, name, shape) => {
    const data = `data-${made++}.bin`
    const bytes = bytesFor(type.dtype, shape, made)
    writeFileSync(join(folder, data), bytes)
    return { ...type, name, shape, data }
  }
  const write = async (name, tensors, metadata = {}) => {
    await save(
      join(folder, name),
      tensors.map((one) => tensorOf(one, folder)),
      { metadata },
    )
    files.push({ name, tensors, metadata, layouts: false })
  }
  for (const type of TYPES) {
    const shapes = SHAPES.filter((shape) => type.code !== 'F4' || (shape.at(-1) ?? 1) % 2 === 0)
    const tensors = shapes.map((shape, at) => make(type, `t${at}`, shape))
    await write(`${type.code}.safetensors`, tensors)
  }
  const mixed = Array.from({ length: 60 }, (_, at) =>
    make(TYPES[Math.floor(random() * TYPES.length)], `layer.${Math.floor(random() * 1e6)}.${at}`, [2, 2]),
  )
  await write('mixed.safetensors', mixed, { format: 'pt' })
  await write(
    'names.safetensors',
    NAMES.map((name) => make(TYPES[15], name, [2])),
    { 'ü"\\\n': '\u{1f3b2}' },
  )
  await write('metadata.safetensors', mixed.slice(0, 2), { format: 'pt', '': '', 10: 'x', nested: '{"a":1}' })
  await write('empty.safetensors', [])
  files.push(await writeBlocked(folder))
  const byNumpy = TYPES.filter(({ code }) => code !== 'F4' && code !== 'BF16' && !code.startsWith('F8'))
  const plain = byNumpy.flatMap((type) => SHAPES.map((shape, at) => make(type, `${type.code}.${at}`, shape)))
  await save(
    join(folder, 'numpy.safetensors'),
    plain.map((one) => tensorOf(one, folder)),
  )
  mkdirSync(join(folder, 'shards'))
  const index = join('shards', 'model.safetensors.index.json')
  await save(
    join(folder, index),
    plain.map((one) => tensorOf(one, folder)),
    { maxShardBytes: 400 },
  )
  await compare(join(folder, index), plain, folder, {})
  return { files, numpy: { name: 'numpy.safetensors', tensors: plain }, index }
}

/** A blocked tensor: Python reads the array of its digits, and tilework the tensor. */
async function writeBlocked(folder) {
  const shape = [2, 19, 5, 7]
  const bytes = seededBytes(2 * 19 * 5 * 7 * 4, 7)
  const plain = storedTensor('conv', 'float32', shape, bytes)
  const blocked = reorder(plain, 'b_fs_yx_fsv16')
  const name = 'blocked.safetensors'
  await save(join(folder, name), [blocked])
  writeFileSync(join(folder, 'blocked.bin'), await blocked.bytes())
  const file = await open(join(folder, name))
  assert.deepEqual(file.tensors.at(0).shape, shape)
  assert.equal(file.tensors.at(0).storage.layout, 'b_fs_yx_fsv16')
  assert.deepEqual(await reorder(file.tensors.at(0), 'row_major').bytes(), bytes)
  file.close()
  const stored = { ...TYPES[15], name: 'conv', shape: [2, 2, 5, 7, 16], data: 'blocked.bin' }
  return { name, tensors: [stored], metadata: {}, layouts: true }
}

function bytesFor(dtype, shape, seed) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const bytes = seededBytes((elements * DTYPES[dtype].bits) / 8, seed)
  return dtype === 'bool' ? bytes.map((byte) => (byte >> 3) & 1) : bytes
}

function tensorOf({ name, dtype, shape, data }, folder) {
  return storedTensor(name, dtype, shape, new Uint8Array(readFileSync(join(folder, data))))
}

function storedTensor(name, dtype, shape, bytes) {
  return asTensor({ dtype, shape, bytes: () => bytes }, { name })
}

/** Opens a file in strict mode, compares all its contents, and writes it again. */
async function compare(path, tensors, folder, metadata) {
  assert.deepEqual(await check(path, { level: 'strict' }), [], path)
  const file = await open(path, { level: 'strict' })
  assert.equal(file.format, 'safetensors')
  assert.equal(file.tensors.length, tensors.length, path)
  for (const { name, dtype, shape, data } of tensors) {
    const found = file.tensors.get(name)
    assert.deepEqual({ dtype: found?.dtype, shape: found?.shape }, { dtype, shape }, `${path}: ${name}`)
    assert.deepEqual(Buffer.from(await found.bytes()), readFileSync(join(folder, data)), `${path}: ${name}`)
    assert.deepEqual(Object.fromEntries(found.metadata), metadata, `${path}: ${name}`)
  }
  const isPlain = path.endsWith('.safetensors')
  if (isPlain && tensors.length > 0 && Object.keys(metadata).length < 2) {
    const again = await serialize([...file.tensors], { format: 'safetensors' })
    assert.deepEqual(Buffer.from(again), readFileSync(path), `${path}: written again`)
  }
  file.close()
}
