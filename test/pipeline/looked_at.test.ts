/** What a user reads: `console.log`, `JSON.stringify` and a failed clone of public objects, and advice of errors. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { convertMany, open, planReorder, save, serialize, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { TmfileModel } from '../../lib/tmfile.js'

const weight = tensor(Float32Array.of(1, 2), { name: 'w' })

describe('an open file', () => {
  const opened = async (count = 1) =>
    open(
      await serialize(
        Array.from({ length: count }, (_, i) => tensor(Float32Array.of(i), { name: `t${i}` })),
        { format: 'safetensors' },
      ),
    )

  it('shows its format and tensors', async () => {
    const text = "TensorList(1) [\n  DenseTensor 't0' float32 [1] row_major\n]"
    const file = await opened()
    expect(inspect(file.tensors)).toBe(text)
    expect(inspect(file)).toBe(`OpenFile safetensors, ${file.byteLength} bytes, ${text}`)
    expect(inspect((await opened(30)).tensors)).toMatch(/ … 10 more\n\]$/)
  })

  it('is its format and tensors as JSON', async () => {
    const json = JSON.parse(JSON.stringify(await opened()))
    expect(json).toMatchObject({ format: 'safetensors', tensors: [{ name: 't0', dtype: 'float32' }] })
  })

  it('has a tmfile when its format is tmfile', async () => {
    const file = await opened()
    // A type test: each branch compiles only where `format` tells which model there is.
    if (file.format === 'tmfile') expect(file.tmfile.graph).toBeDefined()
    else if (file.format !== 'onnx') {
      const none: undefined = file.onnx
      expect(none).toBeUndefined()
    }
  })
})

it('a tensor is one line of text', () => {
  expect(String(weight)).toBe("DenseTensor 'w' float32 [2] row_major")
})

it('errors name what is missing, and what to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-looked-at-'))
  await expect(save(join(folder, 'no/w.npy'), [weight])).rejects.toThrow(
    `; the folder ${join(folder, 'no')} does not exist`,
  )
  await expect(save(join(folder, 'w.pb'), [weight, weight])).rejects.toThrow('a name that ends in .onnx')
  await expect(open(new URL('ftp://example.org/a.npy'))).rejects.toThrow(
    'known are file:, http:, https:, s3:',
  )
  await save(join(folder, 'w.npy'), [weight])
  await expect(convertMany([folder], { outDir: join(folder, 'out') })).rejects.toThrow(join('**', '*.npy'))
  rmSync(folder, { recursive: true })
})

it('models are one line', () => {
  expect(inspect(new TmfileModel())).toBe('TmfileModel (0 nodes, 0 tensors)')
  expect(inspect(OnnxModel.create())).toBe('OnnxModel (0 nodes)')
})

it('a plan that cannot be cloned says what to do', () => {
  const plan = planReorder({ dtype: 'uint8', shape: [1, 2, 1, 2], from: 'nhwc', to: 'nchw' })
  expect(() => structuredClone(plan)).toThrow('a plan; call planReorder in each thread')
})
