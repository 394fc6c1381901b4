/**
 * Checks that tilework and the Python packages onnx and onnx_ir read each other's models bit for bit:
 * `node test/programs/interop_onnx.mjs`. Requires `dist`, the addon, and Python 3 with onnx, onnx_ir, ml_dtypes and safetensors; without
 * them it prints the reason and exits with 0.
 *
 * Python saves tensors of every element type and shape, alone and in models, as raw bytes, in typed fields and as external
 * data. tilework reads and compares them, and saves them both unchanged and rewritten; Python checks and reads those. Data
 * files in the format safetensors are read by the package safetensors, too.
 */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { check, DTYPES, open, save } from '../../dist/index.js'
import { encodeTensorProto } from '../../dist/onnx.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_files.py', import.meta.url))

const missing = missingPython('import onnx, onnx_ir, ml_dtypes, safetensors')
if (missing === undefined) await run()
else console.log(`interop with onnx: skipped, ${missing}`)

async function run() {
  const folder = makeWorkFolder('interop-onnx')
  runPython([SCRIPT, 'write', folder])
  const listed = JSON.parse(readFileSync(join(folder, 'files.json'), 'utf8'))
  mkdirSync(join(folder, 'copies'))
  const written = []
  for (const { file, tensors } of listed) written.push(...(await readAndWrite(folder, file, tensors)))
  await compareTexts(join(folder, 'texts.pb'))
  await writeNamedData(folder, listed)
  writeFileSync(join(folder, 'written.json'), JSON.stringify(written))
  runPython([SCRIPT, 'read', folder])
  console.log(`interop with onnx: ${listed.length} files read; ${written.length} written; all equal`)
}

/** Compares a file with Python's list of its contents, and writes it again in every supported way. */
async function readAndWrite(folder, name, tensors) {
  const path = join(folder, name)
  const errors = (await check(path, { level: 'strict' })).filter(({ severity }) => severity === 'error')
  assert.deepEqual(errors, [], path)
  const file = await open(path, { level: 'strict' })
  for (const expected of tensors)
    await compare(`${name} ${expected.name}`, file.tensors.get(expected.name), expected)
  const copy = join('copies', name)
  await save(join(folder, copy), file)
  assert.ok(readFileSync(join(folder, copy)).equals(readFileSync(path)), copy)
  const own = name.replace(/\.(onnx|pb)$/, '-own.$1')
  await save(join(folder, own), [...file.tensors])
  const written = [copy, own]
  if (name.endsWith('.onnx')) written.push(...(await moveValues(folder, name, file)))
  if (name.endsWith('.pb')) {
    const typed = name.replace('.pb', '-typed.pb')
    writeFileSync(join(folder, typed), await encodeTensorProto(file.tensors.at(0), { raw: false }))
    written.push(typed)
  }
  file.close()
  return written.map((each) => ({ file: each, tensors }))
}

/** The model with external data in several files with checksums, and that model with its data inside again. */
async function moveValues(folder, name, file) {
  const [outside, inside] = ['moved', 'whole'].map((kind) => name.replace('.onnx', `-${kind}.onnx`))
  await save(join(folder, outside), file, { external: { threshold: 1, shardBytes: 1000, checksum: true } })
  const moved = await open(join(folder, outside), { level: 'strict' })
  await save(join(folder, inside), moved, { external: false })
  moved.close()
  assert.deepEqual(await check(join(folder, outside), { level: 'strict' }), [], outside)
  return [outside, inside]
}

/** The model of all tensors, with those of attributes, with its values in safetensors files. */
async function writeNamedData(folder, listed) {
  const file = await open(join(folder, 'raw.onnx'))
  const { graph } = file.onnx
  for (const [index, each] of [...file.tensors].entries())
    if (!each.shape.includes(0))
      graph.addNode({
        opType: 'Constant',
        outputs: [`constant_${index}`],
        attributes: { value: { type: 'TENSOR', value: each } },
      })
  const external = { format: 'safetensors', attributes: true, threshold: 1, shardBytes: 4000 }
  await save(join(folder, 'named.onnx'), file, { external })
  const { tensors } = listed.find((each) => each.file === 'raw.onnx')
  writeFileSync(join(folder, 'named.json'), JSON.stringify(tensors))
  file.close()
}

async function compare(what, tensor, { name, dtype, shape, bytes }) {
  assert.equal(DTYPES[tensor.dtype].onnx, dtype, what)
  assert.deepEqual([tensor.name, tensor.shape], [name, shape], what)
  assert.equal(Buffer.from(await tensor.bytes()).toString('hex'), bytes, what)
}

async function compareTexts(path) {
  const file = await open(path, { level: 'strict' })
  assert.deepEqual(await file.tensors.at(0).strings(), ['ä', ''])
  file.close()
}
