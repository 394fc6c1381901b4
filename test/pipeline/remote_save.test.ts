/** `save('scheme://…')`: parts in order of their numbers, whole objects or none, what refers to others last. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { convert, open, save, serialize, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { registerScheme } from '../../lib/remote.js'
import { busy, MemoryStore } from '../bytes/remote/memory_store.js'

let store: MemoryStore
beforeEach(() => {
  store = new MemoryStore()
  registerScheme('store', store)
})
afterEach(() => {
  // An interrupted upload is always removed.
  const begun = new Set(
    store.events.filter((event) => !event.startsWith('part')).map((event) => event.split(' ')[1]),
  )
  for (const event of store.events) if (event.startsWith('part')) expect(begun).toContain(event.split(' ')[1])
})

const numbers = tensor(
  Float32Array.from({ length: 10_000 }, (_, at) => at),
  { name: 'w' },
)

describe('an object', () => {
  it('has the bytes of a file, in parts of which some are on their way at one time', async () => {
    await save('store://host/a%20b.npy', numbers, { remote: { connections: 3 } })
    expect(store.objects.get('/a%20b.npy')).toEqual(await serialize(numbers, { format: 'npy' }))
    expect(store.mostInFlight).toBe(3)
    const file = await open('store://host/a%20b.npy')
    expect(file.dense(0).shape).toEqual([10_000])
    file.close()
  })

  it('is written although each request fails twice', async () => {
    store.fault = busy('', 2)
    await save('store://host/m.safetensors', numbers)
    expect(store.objects.get('/m.safetensors')).toEqual(await serialize(numbers, { format: 'safetensors' }))
  })

  it.each([
    ['a part', busy('part /m.npy 7', 99)],
    ['the commit', busy('commit', 99)],
    [
      'for good',
      (event: string) => {
        if (event.startsWith('part /m.npy 3')) throw new Error('no permission')
      },
    ],
  ])('is not there after a failure: %s', async (_, fault) => {
    store.fault = fault
    const saving = save('store://host/m.npy', numbers, { remote: { retries: 1 } })
    await expect(saving).rejects.toMatchObject({ code: 'ERR_IO', path: 'store://host/m.npy' })
    expect([...store.objects.keys()]).toEqual([])
    expect(store.events.at(-1)).toBe('abort /m.npy')
  })

  it('is not there after an abort', async () => {
    const controller = new AbortController()
    store.fault = (event) => {
      if (event === 'part /m.npy 5') controller.abort()
    }
    const saving = save('store://host/m.npy', numbers, { signal: controller.signal })
    await expect(saving).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect([...store.objects.keys()]).toEqual([])
    expect(store.events.at(-1)).toBe('abort /m.npy')
  })
})

describe('files of several parts', () => {
  it('shards are there before their index', async () => {
    const two = [numbers, tensor(new Float32Array(10_000), { name: 'v' })]
    await save('store://host/dir/m.safetensors.index.json', two, { maxShardBytes: 41_000 })
    expect(store.events.at(-1)).toBe('commit /dir/m.safetensors.index.json')
    const file = await open('store://host/dir/m.safetensors.index.json')
    expect(file.parts).toHaveLength(2)
    expect(Buffer.compare(await file.dense('w').bytes(), await numbers.bytes())).toBe(0)
    file.close()
  })

  it('external data of a model is there before the model', async () => {
    const model = OnnxModel.create({ opset: 20 })
    model.graph.setInitializer('w', numbers)
    await save('store://host/m.onnx', model, { external: { threshold: 0 } })
    expect(store.events.at(-1)).toBe('commit /m.onnx')
    expect(store.objects.size).toBe(2)
    const file = await open('store://host/m.onnx')
    expect(Buffer.compare(await file.dense('w').bytes(), await numbers.bytes())).toBe(0)
    file.close()
  })

  it('none is there after a failure of one', async () => {
    store.fault = busy('part /m.safetensors.index.json', 99)
    const two = [numbers, tensor(new Float32Array(10_000), { name: 'v' })]
    const saving = save('store://host/m.safetensors.index.json', two, {
      maxShardBytes: 41_000,
      remote: { retries: 0 },
    })
    await expect(saving).rejects.toMatchObject({ code: 'ERR_IO' })
    expect(store.objects.size).toBe(0)
    expect(store.events.filter((event) => event.startsWith('abort'))).toHaveLength(3)
  })
})

it('convert reads and writes URLs', async () => {
  await save('store://host/in.npy', numbers)
  const { byteLength } = await convert('store://host/in.npy', 'store://host/out.safetensors', {
    dtype: 'float16',
  })
  expect(store.objects.get('/out.safetensors')!.byteLength).toBe(byteLength)
  const file = await open(new URL('store://host/out.safetensors'))
  expect(file.dense(0).dtype).toBe('float16')
  file.close()
})

it.each([
  ['https://127.0.0.1:1/x.npy', 'ERR_UNSUPPORTED', /objects of https: are read-only/],
  ['gopher://host/x.npy', 'ERR_ARGUMENT', /Unknown URL scheme gopher:; known are file:, http:/],
  ['store://host/x', 'ERR_ARGUMENT', /format/],
])('%s is refused', async (target, code, message) => {
  await expect(save(target, numbers)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
})

it.each([
  ['file', {}],
  ['x', { open: () => undefined }],
  ['UP', { open: () => undefined }],
  ['none', {}],
  ['none', { open: 1 }],
  ['none', null],
])('registerScheme refuses %j', (name, scheme) => {
  expect(() => registerScheme(name, scheme as never)).toThrow(
    expect.objectContaining({ code: 'ERR_ARGUMENT' }),
  )
})
