/**
 * Checks that tilework and numpy read each other's npy and npz files bit for bit, and write the same npy bytes:
 * `node test/programs/interop_npy.mjs`. Requires `dist`, the addon, and Python 3 with numpy (2.0 or newer); without them
 * it prints the reason and exits with 0.
 *
 * numpy saves arrays of every type, byte order, memory order and shape, and a list of their contents; tilework reads,
 * compares and writes them again; numpy reads those files.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { check, open, reorder, save, serialize } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/npy.py', import.meta.url))

const PROBE = 'import numpy; assert numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0", "numpy is too old"'

const missing = missingPython(PROBE)
if (missing === undefined) await run()
else console.log(`interop with numpy: skipped, ${missing}`)

async function run() {
  const folder = makeWorkFolder('interop-npy')
  runPython([SCRIPT, 'write', folder])
  const listed = JSON.parse(readFileSync(join(folder, 'arrays.json'), 'utf8'))
  const written = []
  for (const { file, arrays } of listed) written.push(...(await readAndWrite(folder, file, arrays)))
  writeFileSync(join(folder, 'written.json'), JSON.stringify(written))
  runPython([SCRIPT, 'read', folder])
  const count = listed.reduce((sum, { arrays }) => sum + arrays.length, 0)
  console.log(
    `interop with numpy: ${listed.length} files, ${count} arrays read; ${written.length} files written; all equal`,
  )
}

/** Compares a file with numpy's list of its contents, and writes it again in every supported way. */
async function readAndWrite(folder, name, arrays) {
  const path = join(folder, name)
  assert.deepEqual(await check(path, { level: 'strict' }), [], path)
  const file = await open(path, { level: 'strict' })
  assert.deepEqual(
    [...file.tensors].map((tensor) => tensor.name),
    arrays.map((array) => array.name),
    path,
  )
  for (const array of arrays) await compare(`${name} ${array.name}`, file.tensors.get(array.name), array)
  const written = name.endsWith('.npz')
    ? await writeArchives(folder, name, file, arrays)
    : await writeArrays(folder, name, file, arrays)
  file.close()
  return written
}

async function writeArchives(folder, name, file, arrays) {
  const written = []
  for (const zip64 of ['auto', 'always']) {
    const own = `own-${zip64}-${name}`
    await save(join(folder, own), [...file.tensors], { zip64 })
    assert.deepEqual(await check(join(folder, own), { level: 'strict' }), [], own)
    written.push({ file: own, arrays })
  }
  return written
}

async function writeArrays(folder, name, file, arrays) {
  const [tensor] = file.tensors
  const own = `own-${name}`
  await save(join(folder, own), [tensor])
  // String arrays in Fortran order are written in C order.
  const written = [{ file: own, arrays, sameBytes: tensor.kind === 'dense' || !arrays[0].fortran }]
  assert.deepEqual(Buffer.from(await serialize(file)), readFileSync(join(folder, name)), `${name}: unchanged`)
  if (tensor.kind === 'dense' && tensor.shape.length > 1) {
    const reordered = `reordered-${name}`
    const layout = tensor.storage.layout === 'row_major' ? 'column_major' : 'row_major'
    await save(join(folder, reordered), [reorder(tensor, layout)])
    written.push({ file: reordered, arrays, sameBytes: true })
  }
  return written
}

async function compare(what, tensor, array) {
  assert.deepEqual(tensor.shape, array.shape, what)
  if (tensor.kind === 'string') {
    assert.equal(tensor.metadata.get('numpy.descr'), array.descr, what)
    assert.equal(await stringsAsHex(tensor, array), array.hex, what)
    return
  }
  assert.equal(tensor.storage.layout, array.fortran ? 'column_major' : 'row_major', what)
  const rowMajor = array.fortran ? reorder(tensor, 'row_major') : tensor
  assert.equal(Buffer.from(await rowMajor.bytes()).toString('hex'), array.hex, what)
}

/** The items as numpy stores them, padded with zeros. */
async function stringsAsHex(tensor, { kind, descr }) {
  const length = Number(descr.slice(2))
  const items =
    kind === 'U'
      ? (await tensor.strings()).map((text) => utf32(text, length))
      : (await tensor.rawStrings()).map((raw) => Buffer.concat([raw, Buffer.alloc(length - raw.length)]))
  return Buffer.concat(items).toString('hex')
}

function utf32(text, length) {
  const bytes = Buffer.alloc(4 * length)
  for (const [at, character] of [...text].entries()) bytes.writeUInt32LE(character.codePointAt(0), 4 * at)
  return bytes
}
