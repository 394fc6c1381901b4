/** The work of examples/electron, in Node with the limits of Electron; Electron itself is not a dependency. */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { asTensor, save } from '../../lib/index.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-electron-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('inspects a file without external buffers', async () => {
  const path = join(folder, 'x.safetensors')
  await save(path, [asTensor(Float32Array.of(1, 2, 3, 4, 5, 6), { name: 'x', shape: [2, 3] })])
  // The example imports the package by its name.
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(process.cwd(), join(folder, 'node_modules', 'tilework'), 'junction')
  for (const name of ['inspect.mjs', 'without_electron.mjs'])
    copyFileSync(join('examples', 'electron', name), join(folder, name))
  const env = { ...process.env, TILEWORK_NO_EXTERNAL_BUFFERS: '1' }
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(folder, 'without_electron.mjs'), path],
    { env },
  )
  expect(JSON.parse(stdout)).toEqual({
    path,
    format: 'safetensors',
    tensors: [{ name: 'x', dtype: 'float32', shape: [2, 3], first: ['1', '2', '3'] }],
  })
})
