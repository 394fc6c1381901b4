/** Tensors whose values are loaded on the first read, and string tensors in memory. */
import { describe, expect, it } from 'vitest'
import {
  asTensor,
  type DenseTensor,
  lazyTensor,
  open,
  reorder,
  serialize,
  stringTensor,
  tensor,
} from '../../lib/index.js'

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

describe('a lazy tensor', () => {
  it('loads once for all reads, and again after a failure', async () => {
    let loads = 0
    const lazy = lazyTensor(
      async () => {
        loads += 1
        if (loads === 1) throw new Error('not yet')
        return tensor([1, 2, 3], { dtype: 'int16' })
      },
      { dtype: 'int16', shape: [3], name: 'l' },
    )
    expect([loads, lazy.shape, lazy.name, lazy.hasData]).toEqual([0, [3], 'l', true])
    await expect(lazy.bytes()).rejects.toThrow('not yet')
    const all = await Promise.all([lazy.bytes(), lazy.toTypedArray(), lazy.bytes({ start: 2, end: 4 })])
    expect([loads, [...all[1]], all[2]]).toEqual([2, [1, 2, 3], Uint8Array.of(2, 0)])
    await lazy.bytes()
    expect(loads).toBe(2)
    expect(() => lazy.bytesSync()).toThrow(code('ERR_ASYNC_ONLY'))
  })

  it('with keep: false, loads once for concurrent reads and again for later ones', async () => {
    let loads = 0
    const load = async (): Promise<Uint8Array> => {
      loads += 1
      return Uint8Array.of(7, 8)
    }
    const lazy = lazyTensor(load, { dtype: 'uint8', shape: [2], keep: false })
    await Promise.all([lazy.bytes(), lazy.bytes()])
    await lazy.bytes()
    expect(loads).toBe(2)
  })

  it.each<[string, DenseTensor]>([
    ['shape', tensor([1, 2], { dtype: 'int8' })],
    ['type', tensor([1, 2, 3], { dtype: 'uint8' })],
  ])('rejects another %s than the declared one', async (_, loaded) => {
    const lazy = lazyTensor(() => loaded, { dtype: 'int8', shape: [3] })
    await expect(lazy.bytes()).rejects.toThrow(code('ERR_ARGUMENT'))
  })

  it('converts a blocked tensor to row-major order, and can be saved', async () => {
    const values = tensor(
      new Float32Array(2 * 3 * 2 * 2).map((_, at) => at),
      { shape: [2, 3, 2, 2], name: 'w' },
    )
    const lazy = lazyTensor(() => reorder(values, 'b_fs_yx_fsv4'), {
      dtype: 'float32',
      shape: [2, 3, 2, 2],
      name: 'w',
    })
    for (const format of ['npy', 'onnx', 'safetensors'] as const) {
      const bytes = await serialize(lazy, { format })
      expect(bytes).toEqual(await serialize(values, { format }))
      using file = await open(bytes)
      expect(await file.dense(0).toTypedArray()).toEqual(await values.toTypedArray())
    }
  })

  it('rejects invalid arguments at once', () => {
    const load = () => Uint8Array.of(1)
    expect(() => lazyTensor(1 as never, { dtype: 'int8', shape: [] })).toThrow(code('ERR_ARGUMENT'))
    expect(() => lazyTensor(load, { dtype: 'string', shape: [] })).toThrow(code('ERR_DTYPE'))
    expect(() => lazyTensor(load, { dtype: 'int8', shape: [-1] })).toThrow(code('ERR_ARGUMENT'))
    expect(() => lazyTensor(load, { dtype: 'int8', shape: [1], name: 5 as never })).toThrow(
      code('ERR_ARGUMENT'),
    )
  })
})

describe('a tensor of strings', () => {
  it('keeps its bytes and can be saved', async () => {
    const texts = stringTensor(['ä', Uint8Array.of(0xff), '', 'd'], { shape: [2, 2], name: 's' })
    expect([texts.size, texts.shape]).toEqual([4, [2, 2]])
    await expect(texts.strings()).rejects.toThrow(code('ERR_DTYPE'))
    expect((await texts.rawStrings())[1]).toEqual(Uint8Array.of(0xff))
    using file = await open(await serialize([texts], { format: 'onnx' }))
    const read = file.tensors.get('s')!
    expect(read.kind === 'string' && (await read.rawStrings())).toEqual(await texts.rawStrings())
  })

  it('adapts string tensors of onnxruntime', async () => {
    const texts = asTensor({ type: 'string', dims: [1, 2], data: ['a', 'b'] }, { name: 'n' })
    expect([texts.kind, texts.shape, texts.name, await texts.strings()]).toEqual([
      'string',
      [1, 2],
      'n',
      ['a', 'b'],
    ])
  })

  it('rejects other values and a shape of another size', () => {
    expect(() => stringTensor([1] as never)).toThrow(code('ERR_ARGUMENT'))
    expect(() => stringTensor('ab' as never)).toThrow(code('ERR_ARGUMENT'))
    expect(() => stringTensor(['a'], { shape: [2] })).toThrow(code('ERR_ARGUMENT'))
  })
})
