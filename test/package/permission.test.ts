/** Node's permission model: the addon touches only what Node's own functions may. Runs the built library in new processes. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { save, tensor } from '../../lib/index.js'

const ROOT = resolve(import.meta.dirname, '../..')
const [MAJOR] = process.versions.node.split('.').map(Number)
const PERMISSION = MAJOR! < 22 ? '--experimental-permission' : '--permission'

let folder: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tilework-permission-')))
  for (const name of ['granted', 'secret']) mkdirSync(join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const inFolder = (name: string): string => join(folder, name)

interface Outcome {
  readonly code?: string
  readonly path?: string
  readonly message?: string
  readonly value?: unknown
}

/** Runs the body of an async function in which `tilework` and `at` (a path in the folder) are defined. */
function runWith(flags: readonly string[], body: string): Outcome {
  const script = `
    import * as tilework from ${JSON.stringify(pathToFileURL(join(ROOT, 'dist/index.js')).href)}
    const at = (name) => ${JSON.stringify(`${folder}/`)} + name
    const ones = tilework.tensor(new Float32Array(1000), { shape: [1000], name: 'w' })
    const run = async () => { ${body} }
    console.log(JSON.stringify(await run().then(
      (value) => ({ value }),
      ({ code, path, message }) => ({ code, path, message }),
    )))`
  // Dependencies may be linked from elsewhere.
  const read = [ROOT, realpathSync(join(ROOT, 'node_modules'))].map((path) => `--allow-fs-read=${path}/`)
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--no-warnings', PERMISSION, ...read, ...flags, '--input-type=module', '-e', script],
    { encoding: 'utf8', cwd: ROOT },
  )
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Outcome
}

const ADDONS = '--allow-addons'
const readFolder = (name: string): string => `--allow-fs-read=${inFolder(name)}/`
const writeFolder = (name: string): string => `--allow-fs-write=${inFolder(name)}/`
const values = (): ReturnType<typeof tensor> => tensor(new Float32Array(1000), { shape: [1000], name: 'w' })

test('without permission for addons the error names the flag', () => {
  const { code, message } = runWith([], `tilework.threads()`)
  expect(code).toBe('ERR_NATIVE_LOAD')
  expect(message).toContain('--allow-addons')
})

test.each(['map', 'read'])('opens only what may be read: mode %s', async (mode) => {
  for (const name of ['granted', 'secret']) await save(inFolder(`${name}/a.npy`), [values()])
  const flags = [ADDONS, readFolder('granted')]
  const opened = (path: string, call = 'open'): Outcome =>
    runWith(flags, `await tilework.${call}(at('${path}'), { mode: '${mode}' }); return 'opened'`)
  expect(opened('granted/a.npy')).toEqual({ value: 'opened' })
  const refused = { code: 'ERR_PERMISSION', path: inFolder('secret/a.npy') }
  expect(opened('secret/a.npy')).toMatchObject(refused)
  expect(opened('granted/../secret/a.npy')).toMatchObject(refused)
  expect(opened('secret/a.npy', 'check')).toMatchObject(refused)
  expect(opened('secret/none.npy')).toMatchObject({ code: 'ERR_PERMISSION' })
})

test('opens no data file that may not be read', async () => {
  await save(inFolder('granted/m.onnx'), [values()], { external: { threshold: 0 } })
  await save(inFolder('granted/m.safetensors.index.json'), [values()], { maxShardBytes: 2 ** 20 })
  for (const [model, data] of [
    ['m.onnx', 'm.onnx.data'],
    ['m.safetensors.index.json', 'm-00001-of-00001.safetensors'],
  ]) {
    const open = `return (await tilework.open(at('granted/${model}'))).tensors.length`
    expect(runWith([ADDONS, readFolder('granted')], open)).toEqual({ value: 1 })
    const flags = [ADDONS, `--allow-fs-read=${inFolder(`granted/${model}`)}`]
    const path = inFolder(`granted/${data}`)
    expect(runWith(flags, open)).toMatchObject({ code: 'ERR_PERMISSION', path })
  }
})

test('writes only where it may, temporary files included', async () => {
  const saved = (flags: readonly string[], path: string, options = '{}'): Outcome =>
    runWith([ADDONS, ...flags], `await tilework.save(at('${path}'), [ones], ${options}); return 'saved'`)
  const whole = [readFolder('granted'), writeFolder('granted')]
  expect(saved(whole, 'granted/a.npy')).toEqual({ value: 'saved' })
  expect(saved(whole, 'granted/m.onnx', '{ external: { threshold: 0 } }')).toEqual({ value: 'saved' })
  expect(saved(whole, 'granted/m.safetensors.index.json', '{ maxShardBytes: 5000 }')).toEqual({
    value: 'saved',
  })
  expect(saved([writeFolder('granted')], 'granted/b.npy')).toEqual({ value: 'saved' })

  const names = readdirSync(inFolder('granted')).sort()
  expect(saved(whole, 'secret/a.npy')).toMatchObject({
    code: 'ERR_PERMISSION',
    path: inFolder('secret/a.npy'),
  })
  expect(saved([readFolder('granted')], 'granted/c.npy')).toMatchObject({
    code: 'ERR_PERMISSION',
    path: inFolder('granted/c.npy'),
  })
  expect(saved([`--allow-fs-write=${inFolder('granted/c.npy')}`], 'granted/c.npy')).toMatchObject({
    code: 'ERR_PERMISSION',
    path: inFolder('granted/.c.npy.tilework-tmp'),
  })
  const sibling = [`--allow-fs-write=${inFolder('granted/n.onnx')}`, readFolder('granted')]
  expect(saved(sibling, 'granted/n.onnx', '{ external: { threshold: 0 } }')).toMatchObject({
    code: 'ERR_PERMISSION',
    path: inFolder('granted/n.onnx.data'),
  })
  expect(readdirSync(inFolder('granted')).sort()).toEqual(names)
  expect(readdirSync(inFolder('secret'))).toEqual([])
})

test('writes through a link only where it leads to a path that may be written', () => {
  symlinkSync('../secret/a.npy', inFolder('granted/link.npy'))
  const outcome = runWith(
    [ADDONS, readFolder('granted'), writeFolder('granted')],
    `await tilework.save(at('granted/link.npy'), [ones])`,
  )
  expect(outcome).toMatchObject({ code: 'ERR_PERMISSION', path: inFolder('secret/a.npy') })
  expect(readdirSync(inFolder('secret'))).toEqual([])
})

test('converts many files, whose manifest Node may not flush to disk', async () => {
  await save(inFolder('granted/a.npy'), [values()])
  const outcome = runWith(
    [ADDONS, readFolder('granted'), writeFolder('granted')],
    `const { written } = await tilework.convertMany([at('granted/a.npy')], { outDir: at('granted/out'), format: 'npz' })
     return written`,
  )
  expect(outcome).toEqual({ value: 1 })
  expect(readdirSync(inFolder('granted/out'))).toContain('a.npz')
})
