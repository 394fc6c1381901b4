/** ONNX on the command line: conversions there and back, and data with a second name. */
import { linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { open } from '../../lib/index.js'
import { field, int, join as joinBytes, modelProto, raw, tensorProto } from '../formats/onnx/onnx_bytes.js'
import { runCli } from './run_cli.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-cli-onnx-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it('converts an initializer to npy and back to a bare tensor', async () => {
  const [model, npy, bare] = ['m.onnx', 'w.npy', 'w.pb'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(
    model,
    modelProto({ initializers: [tensorProto({ dims: [3], type: 2, name: 'w', values: raw(1, 2, 3) })] }),
  )
  expect((await runCli(['convert', model, npy])).code).toBe(0)
  expect((await runCli(['convert', npy, bare])).code).toBe(0)
  using file = await open(bare, { level: 'strict' })
  expect([...(await file.dense(0).toTypedArray())]).toEqual([1, 2, 3])
  expect([...readFileSync(bare).subarray(0, 4)]).toEqual([8, 3, 16, 2])
})

it('refuses external data with a second name, and says which option takes it', async () => {
  mkdirSync(join(folder, 'model'))
  writeFileSync(join(folder, 'data'), Uint8Array.of(1, 2))
  linkSync(join(folder, 'data'), join(folder, 'model', 'w.bin'))
  const model = join(folder, 'model', 'm.onnx')
  const outside = tensorProto({ dims: [2], type: 2, name: 'w', external: { location: 'w.bin' } })
  writeFileSync(model, modelProto({ initializers: [outside] }))
  const { code, stderr } = await runCli(['inspect', model])
  expect(code).not.toBe(0)
  expect(stderr).toContain('; --hard-links allow takes it.')
  expect((await runCli(['inspect', model, '--hard-links', 'allow'])).code).toBe(0)
})

it('puts values outside and back', async () => {
  const [model, out, back] = ['m.onnx', 'out.onnx', 'back.onnx'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  const values = joinBytes(int(1, 3), int(2, 2), field(8, 'w'), raw(1, 2, 3))
  writeFileSync(model, modelProto({ initializers: [values] }))
  const options = ['--threshold', '3', '--location', 'w.bin', '--alignment', '16', '--checksum', '--json']
  const { code, stdout } = await runCli(['externalize', model, '-o', out, ...options])
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { input: model, output: out }])
  expect(readFileSync(join(folder, 'w.bin'))).toEqual(Buffer.from([1, 2, 3]))
  expect((await runCli(['internalize', out, '-o', back])).code).toBe(0)
  expect(readFileSync(back)).toEqual(readFileSync(model))
  expect((await runCli(['externalize', model, '-o', out, '--threshold', '-1'])).code).toBe(64)
  expect(
    (await runCli(['externalize', model, '-o', out, '--threshold', '1', '--location', '../w'])).code,
  ).not.toBe(0)
  expect((await runCli(['internalize', join(folder, 'w.bin'), '-o', back])).code).not.toBe(0)
})
