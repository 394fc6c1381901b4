/**
 * What only Windows can show about a package; the argument is its folder. Runs in Node for Windows, also in Wine: names,
 * long paths, files that others have open, saves that are killed or meet on one file, and ends of processes.
 *
 * Prints one line per part. `--wine` leaves out what Wine cannot do, with the reason.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join, relative, resolve, win32 } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { wine: { type: 'boolean' }, files: { type: 'string', default: '500' } },
})
const root = resolve(positionals[0] ?? '.')
const { asTensor, open, save, TileworkError } = await import(
  pathToFileURL(join(root, 'dist', 'index.js')).href
)
const addon = createRequire(import.meta.url)(join(root, 'build', 'Release', 'tilework.node'))

const work = join(root, `work-${process.pid}`)
mkdirSync(work)
let failed = 0
try {
  await part('names in UTF-16, separators, long paths', names)
  await part('names that Windows gives another meaning', forbiddenNames)
  await part('a target that others have open is replaced', replaceOpen)
  await part('a target that is mapped is replaced, or kept with an error', replaceMapped)
  await part('a failed save leaves the old file and no other', keepOld)
  await part('a killed save leaves the old file and no other', killSave)
  await part('two processes save one file', saveTogether)
  await part(`conversion of ${options.files} files, killed and started again`, convertMany)
  await part('a process ends while jobs run', endEarly)
} finally {
  rmSync(work, { recursive: true, force: true, maxRetries: 5 })
}
console.log(failed === 0 ? 'windows: passed' : `windows: ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function part(name, run) {
  const folder = join(work, name.replaceAll(/\W+/g, '-').slice(0, 40))
  mkdirSync(folder)
  try {
    const note = await run(folder)
    console.log(`passed: ${name}${note ? ` (${note})` : ''}`)
  } catch (error) {
    failed++
    console.log(`FAILED: ${name}\n${error.stack}`)
  }
}

/** A tensor whose elements are all this number. */
function tensorOf(value, length = 1000) {
  return asTensor(new Uint8Array(length).fill(value), { name: 'x', shape: [length] })
}

async function valueIn(path, mode) {
  const file = await open(path, mode && { mode })
  try {
    const bytes = await file.tensors.at(0).bytes()
    assert.ok(bytes.every((byte) => byte === bytes[0]))
    return bytes[0]
  } finally {
    file.close()
  }
}

async function names(folder) {
  for (const name of ['plain.npy', 'Grüße 模型 🦊.npy', `${'long'.repeat(50)}.npy`, 'two..dots.npy']) {
    for (const path of [
      join(folder, name),
      `${folder.replaceAll('\\', '/')}/${name}`,
      `\\\\?\\${join(folder, name)}`,
    ]) {
      await save(path, [tensorOf(1)])
      assert.equal(await valueIn(path), 1)
      assert.equal(await valueIn(path, 'map'), 1)
    }
    assert.ok(existsSync(join(folder, name)))
  }
  const deep = join(folder, ...Array.from({ length: 30 }, (_, index) => `folder-${index}`))
  mkdirSync(deep, { recursive: true })
  const long = win32.join(deep, 'x.npy')
  assert.ok(long.length > 260)
  await save(long, [tensorOf(2)])
  assert.equal(await valueIn(long), 2)
  await assert.rejects(open(folder), { code: 'ERR_IO' })
  await assert.rejects(open(join(folder, 'missing.npy')), { code: 'ERR_IO' })
  return `longest ${long.length} characters`
}

async function forbiddenNames(folder) {
  writeFileSync(join(folder, 'a.bin'), 'content')
  const leading = ['../a.bin', '..\\a.bin', 'x/../../a.bin', '\\a.bin', '/a.bin']
  const special = [
    'CON',
    'nul',
    'com1.bin',
    'LPT9',
    'x/aux.txt',
    'a.bin:b',
    'a.bin::$DATA',
    'a.bin.',
    'a.bin ',
    'C:a.bin',
  ]
  for (const name of [...leading, ...special]) {
    assert.throws(
      () => addon.openInputBelow(folder, name, { mapped: false, guard: false, isSole: true }),
      name,
    )
    assert.throws(() => addon.createOutputBelow(folder, name, 1, 'any'), name)
  }
  await assert.rejects(save(join(folder, 'b.npy:stream'), [tensorOf(1)]), TileworkError)
  assert.deepEqual(readdirSync(folder), ['a.bin'])
  return `${leading.length + special.length} names`
}

async function replaceOpen(folder) {
  const path = join(folder, 'x.npy')
  await save(path, [tensorOf(1)])
  const before = readFileSync(path)
  const descriptor = openSync(path, 'r')
  const file = await open(path, { mode: 'read' })
  await save(path, [tensorOf(2)])
  assert.equal(await valueIn(path), 2)
  const old = Buffer.alloc(before.length)
  readSync(descriptor, old, 0, old.length, 0)
  assert.ok(old.equals(before), 'a reader keeps the old file')
  assert.equal((await file.tensors.at(0).bytes())[0], 1)
  const second = await open(path, { mode: 'read' })
  await save(path, [tensorOf(3)])
  assert.equal(await valueIn(path), 3)
  for (const each of [file, second]) each.close()
  closeSync(descriptor)
  await setTimeout(10)
  assert.deepEqual(readdirSync(folder), ['x.npy'])
}

async function replaceMapped(folder) {
  const path = join(folder, 'x.npy')
  await save(path, [tensorOf(1)])
  const file = await open(path, { mode: 'map' })
  const bytes = await file.tensors.at(0).bytes()
  let outcome = 'replaced'
  try {
    await save(path, [tensorOf(2)])
  } catch (error) {
    assert.equal(error.code, 'ERR_IO')
    outcome = error.message.slice(0, 40)
  }
  assert.equal(bytes[0], 1)
  file.close({ revoke: true })
  assert.equal(await valueIn(path), outcome === 'replaced' ? 2 : 1)
  return outcome
}

async function keepOld(folder) {
  const path = join(folder, 'x.npy')
  const source = join(folder, 'source.npy')
  await save(path, [tensorOf(1)])
  await save(source, [tensorOf(2)])
  const file = await open(source, { mode: 'read' })
  truncateSync(source, 500)
  await assert.rejects(save(path, [file.tensors.at(0)]), TileworkError)
  file.close()
  assert.equal(await valueIn(path), 1)
  assert.deepEqual(readdirSync(folder).sort(), ['source.npy', 'x.npy'])
}

/** A script that imports the package as `tilework`. */
function start(folder, name, script, ...args) {
  const path = join(folder, '..', `${name}.mjs`)
  const head = `import * as tilework from ${JSON.stringify(pathToFileURL(join(root, 'dist', 'index.js')).href)}\n`
  writeFileSync(path, head + script)
  return spawn(process.execPath, [path, ...args], { stdio: 'ignore' })
}

async function killSave(folder) {
  const path = join(folder, 'x.npy')
  await save(path, [tensorOf(1)])
  // Large enough that it is not on disk before the next look at the folder.
  const script = `
    const array = new Uint8Array(2 ** 29).fill(2)
    await tilework.save(process.argv[2], [tilework.asTensor(array, { name: 'x', shape: [array.length] })])`
  const child = start(folder, 'kill-save', script, path)
  for (let waits = 0; readdirSync(folder).length < 2; waits++) {
    assert.ok(waits < 20_000 && child.exitCode === null, 'no temporary file appeared')
    await setTimeout(1)
  }
  child.kill()
  await once(child, 'close')
  await setTimeout(100)
  const left = readdirSync(folder)
  assert.equal(await valueIn(path), 1)
  await save(path, [tensorOf(3)])
  assert.deepEqual(readdirSync(folder), ['x.npy'])
  assert.deepEqual(left, ['x.npy'], 'the system removes the temporary file')
}

async function saveTogether(folder) {
  const path = join(folder, 'x.npy')
  const script = `
    const value = Number(process.argv[3])
    for (let i = 0; i < 20; i++) {
      const array = new Uint8Array(100_000).fill(value)
      await tilework.save(process.argv[2], [tilework.asTensor(array, { name: 'x', shape: [array.length] })])
    }`
  const children = [1, 2].map((value) => start(folder, 'save-together', script, path, String(value)))
  const codes = await Promise.all(children.map(async (child) => (await once(child, 'close'))[0]))
  assert.deepEqual(codes, [0, 0])
  assert.ok([1, 2].includes(await valueIn(path)))
  assert.deepEqual(readdirSync(folder), ['x.npy'])
}

async function convertMany(folder) {
  const count = Number(options.files)
  const from = join(folder, 'in')
  const to = join(folder, 'out')
  for (let i = 0; i < 4; i++) mkdirSync(join(from, `${i}`), { recursive: true })
  for (let i = 0; i < count; i++) await save(join(from, `${i % 4}`, `${i}.npy`), [tensorOf(i % 256)])
  const args = [
    join(root, 'dist', 'cli', 'main.js'),
    'convert',
    `${from}\\**\\*.npy`,
    '--out-dir',
    to,
    '--format',
    'safetensors',
  ]
  const finished = () => filesBelow(to).filter((name) => name.endsWith('.safetensors'))
  const killed = spawn(process.execPath, args, { stdio: 'ignore' })
  while (finished().length < count / 5) {
    assert.equal(killed.exitCode, null, 'the conversion ended before it was killed')
    await setTimeout(5)
  }
  killed.kill()
  await once(killed, 'close')
  const times = new Map(finished().map((name) => [name, statSync(join(to, name)).mtimeMs]))
  const [code] = await once(spawn(process.execPath, args, { stdio: 'ignore' }), 'close')
  assert.equal(code, 0)
  const outputs = finished()
  assert.equal(outputs.length, count)
  for (const name of outputs)
    assert.equal(await valueIn(join(to, name)), Number.parseInt(basename(name), 10) % 256, name)
  const others = filesBelow(to).filter((name) => !outputs.includes(name))
  assert.equal(others.length, 1, `a manifest alone lies beside the outputs: ${others}`)
  const kept = outputs.filter((name) => times.get(name) === statSync(join(to, name)).mtimeMs).length
  assert.ok(kept >= times.size - 2, `${kept} of ${times.size} finished files were skipped`)
  checkManifest(join(to, others[0]))
  return `killed after ${times.size}, then ${kept} were skipped`
}

/** Outputs are named from the folder of the manifest, which may be moved to another system. */
function checkManifest(path) {
  const lines = readFileSync(path, 'utf8').split('\n')
  const entries = lines.filter((line) => line.includes('"output"')).map((line) => JSON.parse(line))
  assert.ok(entries.length > 0)
  for (const { output } of entries) assert.match(output.path, /^[0-3]\/\d+\.safetensors$/)
}

function filesBelow(folder) {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

async function endEarly(folder) {
  const script = `
    const plan = tilework.planReorder({ dtype: 'uint8', shape: [64, 64, 128, 128], from: 'bfyx', to: 'byxf' })
    const from = new Uint8Array(64 * 64 * 128 * 128)
    for (let i = 0; i < 4; i++) plan.run(from, new Uint8Array(from.length))
    setTimeout(() => process.exit(7), Number(process.argv[2]))`
  for (const pause of ['0', '5', '30']) {
    const child = start(folder, 'end-early', script, pause)
    const [code] = await Promise.race([once(child, 'close'), setTimeout(30_000, ['no end'])])
    child.kill()
    assert.equal(code, 7)
  }
}
