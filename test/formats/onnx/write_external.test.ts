/** Saves with the option external: file names, offsets, unchanged bytes, and the round trip. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asTensor, check, open, save, serialize, tensor } from '../../../lib/index.js'
import type { ExternalOptions } from '../../../lib/onnx.js'
import {
  type Bytes,
  entry,
  field,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  OWN_OPSET,
  raw,
  sha1,
  sparseProto,
  tensorProto,
} from './onnx_bytes.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(joinPath(tmpdir(), 'tilework-onnx-write-external-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const at = (name: string): string => joinPath(folder, name)
const bytesOf = (name: string): Uint8Array => new Uint8Array(readFileSync(at(name)))
const bytes = (length: number, first = 0): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (first + index) % 251)
const initializer = (name: string, values: Uint8Array): Bytes =>
  join(int(1, values.length), int(2, 2), field(8, name), raw(...values))
const external = (name: string, length: number, keys: Record<string, string | number>): Bytes =>
  tensorProto({
    dims: [length],
    type: 2,
    name,
    external: Object.fromEntries(Object.entries(keys).map(([key, value]) => [key, String(value)])),
  })

/** Writes a model and its external form. */
async function outside(model: Uint8Array, options: ExternalOptions = {}, name = 'out.onnx'): Promise<void> {
  writeFileSync(at('m.onnx'), model)
  using file = await open(at('m.onnx'))
  await save(at(name), file, { external: options })
}

describe('external data', () => {
  it('moves large initializers and keeps all other bytes', async () => {
    const [small, large, last] = [bytes(3), bytes(100, 7), bytes(70, 9)]
    // Of an own domain: the types of its values do not follow.
    const nodes = [nodeProto({ inputs: ['large'], outputs: ['o'], domain: 'own' })]
    const unknown = field(900, 'future')
    const model = (a: Bytes, b: Bytes): Bytes =>
      modelProto(
        { nodes, initializers: [initializer('small', small), join(a, unknown), b], outputs: ['o'] },
        OWN_OPSET,
        unknown,
      )
    await outside(model(initializer('large', large), initializer('last', last)), { threshold: 64 })
    const place = { location: 'out.onnx.data' }
    expect(bytesOf('out.onnx')).toEqual(
      model(
        external('large', 100, { ...place, offset: 0, length: 100 }),
        external('last', 70, { ...place, offset: 128, length: 70 }),
      ),
    )
    expect(bytesOf('out.onnx.data')).toEqual(join(large, new Uint8Array(28), last))
    expect(await check(at('out.onnx'), { level: 'strict' })).toEqual([])
  })

  it('aligns tensors of 1 MiB to pages, and all tensors to the option', async () => {
    const big = asTensor(bytes(1024 * 1024), { name: 'big' })
    const list = [asTensor(bytes(5), { name: 'a' }), big, asTensor(bytes(5), { name: 'b' })]
    await save(at('m.onnx'), list, { external: { threshold: 1 } })
    expect(readFileSync(at('m.onnx.data')).byteLength).toBe(4096 + 1024 * 1024 + 5)
    expect(bytesOf('m.onnx.data').subarray(4096, 4096 + 5)).toEqual(bytes(5))
    await save(at('n.onnx'), list, { external: { threshold: 1, alignment: 1 } })
    const packed = Buffer.concat([bytes(5), bytes(1024 * 1024), bytes(5)])
    expect(readFileSync(at('n.onnx.data')).equals(packed)).toBe(true)
  })

  it('starts a new file where the next tensor would exceed the limit', async () => {
    const list = ['a', 'b', 'c'].map((name) => asTensor(bytes(80), { name }))
    await save(at('m.onnx'), list, { external: { threshold: 1, shardBytes: 208, location: 'w.bin' } })
    const names = ['w-00001-of-00002.bin', 'w-00002-of-00002.bin']
    expect(readdirSync(folder).sort()).toEqual(['m.onnx', ...names])
    expect(names.map((name) => bytesOf(name).byteLength)).toEqual([208, 80])
    using file = await open(at('m.onnx'), { level: 'strict' })
    for (const each of file.tensors) expect(await (each as (typeof list)[0])!.bytes()).toEqual(bytes(80))
  })

  it('writes correct checksums', async () => {
    await outside(modelProto({ initializers: [initializer('w', bytes(90)), initializer('v', bytes(80))] }), {
      threshold: 1,
      checksum: true,
    })
    const digest = sha1(bytesOf('out.onnx.data'))
    expect(readFileSync(at('out.onnx'), 'latin1').split(digest).length - 1).toBe(2)
    expect(await check(at('out.onnx'), { level: 'strict' })).toEqual([])
  })

  it('overwrites no existing file, and removes the data of the replaced model in the end', async () => {
    const model = modelProto({ initializers: [initializer('w', bytes(90))] })
    await outside(model, { threshold: 1 })
    using file = await open(at('out.onnx'))
    file.onnx!.graph.setInitializer('w', asTensor(bytes(90, 50)))
    await save(at('out.onnx'), file, { external: { threshold: 1 } })
    expect(await file.dense('w').bytes()).toEqual(bytes(90))
    // Windows without POSIX semantics keeps the names of removed files while they are open, and replaced ones under other names.
    file.close()
    const names = readdirSync(folder).filter((name) => !name.endsWith('.tilework-old'))
    expect(names.sort()).toEqual(['m.onnx', 'out.onnx', 'out.onnx-1.data'])
    using again = await open(at('out.onnx'), { level: 'strict' })
    expect(await again.dense('w').bytes()).toEqual(bytes(90, 50))
  })

  it('keeps unknown keys and drops keys about the old file', async () => {
    writeFileSync(at('w.bin'), bytes(100))
    const keys = {
      offset: 10,
      length: 80,
      checksum: 'old',
      basepath: '/x',
      prepacked_0: 'k|0;1;0',
      mine: 'kept',
    }
    await outside(modelProto({ initializers: [external('w', 80, { location: 'w.bin', ...keys })] }), {
      threshold: 1,
    })
    const expected = { location: 'out.onnx.data', offset: 0, length: 80, mine: 'kept' }
    expect(bytesOf('out.onnx')).toEqual(modelProto({ initializers: [external('w', 80, expected)] }))
    expect(bytesOf('out.onnx.data')).toEqual(bytes(80, 10))
  })

  it('moves tensors below the threshold back into the model', async () => {
    writeFileSync(at('w.bin'), bytes(100))
    await outside(modelProto({ initializers: [external('w', 80, { location: 'w.bin' })] }), { threshold: 81 })
    expect(bytesOf('out.onnx')).toEqual(modelProto({ initializers: [initializer('w', bytes(80))] }))
    expect(existsSync(at('out.onnx.data'))).toBe(false)
  })

  it('moves initializers of subgraphs, and values of typed fields as bytes', async () => {
    const inner = graphProto({ initializers: [initializer('own', bytes(64))] })
    const attribute = join(field(1, 'body'), field(6, inner), int(20, 5))
    const typed = tensorProto({ dims: [64], type: 2, name: 't', values: field(5, new Array(64).fill(3)) })
    await outside(modelProto({ nodes: [nodeProto({ attributes: [attribute] })], initializers: [typed] }), {
      threshold: 1,
    })
    expect(bytesOf('out.onnx.data')).toEqual(join(bytes(64), new Uint8Array(64).fill(3)))
    using file = await open(at('out.onnx'))
    expect(await file.dense('t').bytes()).toEqual(new Uint8Array(64).fill(3))
  })

  it('leaves strings, sparse tensors, empty ones and unknown types in the model', async () => {
    const strings = tensorProto({
      dims: [1],
      type: 8,
      name: 's',
      values: field(6, 'long enough for any threshold'),
    })
    const sparse = sparseProto(
      initializer('c', Uint8Array.of(1)),
      tensorProto({ dims: [1], type: 7, values: raw(2, 0, 0, 0, 0, 0, 0, 0) }),
      [4],
    )
    const model = modelProto({
      initializers: [
        strings,
        initializer('e', new Uint8Array(0)),
        tensorProto({ dims: [1], type: 99, name: 'u' }),
      ],
      sparse: [sparse],
    })
    await outside(model, { threshold: 0 })
    expect(bytesOf('out.onnx')).toEqual(model)
    expect(readdirSync(folder).sort()).toEqual(['m.onnx', 'out.onnx'])
  })

  it.each([
    ['../w.bin', 'ERR_PATH_ESCAPE'],
    ['/tmp/w.bin', 'ERR_PATH_ESCAPE'],
    ['data/../../w.bin', 'ERR_PATH_ESCAPE'],
    ['way/w.bin', 'ERR_PATH_ESCAPE'],
    ['*/_ORT_MEM_ADDR_/*', 'ERR_PATH_ESCAPE'],
    ['a\\b', 'ERR_PATH_ESCAPE'],
    ['w\0.bin', 'ERR_PATH_ESCAPE'],
    ['gone/w.bin', 'ERR_IO'],
    ['OUT.onnx', 'ERR_ARGUMENT'],
    ['', 'ERR_ARGUMENT'],
  ])('refuses the location %j', async (location, code) => {
    mkdirSync(at('model'))
    symlinkSync(folder, joinPath(at('model'), 'way'))
    const target = joinPath(at('model'), 'out.onnx')
    const saving = save(target, [tensor([1], { dtype: 'uint8', name: 'w' })], {
      external: { threshold: 1, location },
    })
    await expect(saving).rejects.toMatchObject({ code })
    expect(readdirSync(at('model'))).toEqual(['way'])
    expect(readdirSync(folder)).toEqual(['model'])
  })

  it('writes data to a subfolder', async () => {
    mkdirSync(at('data'))
    await save(at('m.onnx'), [asTensor(bytes(9), { name: 'w' })], {
      external: { threshold: 1, location: 'data/w.bin' },
    })
    using file = await open(at('m.onnx'), { level: 'strict' })
    expect(await file.dense('w').bytes()).toEqual(bytes(9))
  })

  it.each([
    [{ threshold: -1 }],
    [{ threshold: 1.5 }],
    [{ shardBytes: 0 }],
    [{ alignment: 3 }],
    [{ alignment: 2 ** 22 }],
    [{ checksum: 1 }],
    [{ treshold: 1 }],
  ])('refuses the options %j', async (options) => {
    const saving = save(at('m.onnx'), [asTensor(bytes(1), { name: 'w' })], { external: options as never })
    await expect(saving).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('needs a path, and a model', async () => {
    const list = [asTensor(bytes(9), { name: 'w' })]
    const options = { format: 'onnx', external: { threshold: 1 } } as const
    await expect(serialize(list, options)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    await expect(save(at('w.pb'), list, options)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })
})

describe('external: false', () => {
  it('restores the model whose values were moved', async () => {
    const model = modelProto(
      { initializers: [initializer('w', bytes(90)), initializer('v', bytes(80))] },
      field(900, 'x'),
    )
    await outside(model, { threshold: 1, checksum: true, shardBytes: 90 })
    using file = await open(at('out.onnx'))
    await save(at('back.onnx'), file, { external: false })
    expect(bytesOf('back.onnx')).toEqual(model)
    expect(await serialize(file, { external: false })).toEqual(model)
    expect(file.onnx!.isChanged).toBe(false)
  })

  it('includes parts of sparse tensors and metadata', async () => {
    writeFileSync(at('w.bin'), bytes(100))
    const values = external('c', 2, { location: 'w.bin', offset: 5 })
    const indices = tensorProto({
      dims: [2],
      type: 7,
      values: raw(1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0),
    })
    const about = field(16, entry('k', 'v'))
    const model = (part: Bytes): Bytes =>
      modelProto({ sparse: [sparseProto(join(part, about), indices, [4])] })
    writeFileSync(at('m.onnx'), model(values))
    using file = await open(at('m.onnx'))
    await save(at('back.onnx'), file, { external: false })
    const inside = join(int(1, 2), int(2, 2), field(8, 'c'), raw(5, 6))
    expect(bytesOf('back.onnx')).toEqual(model(inside))
  })
})

it('stores external data of an edited model as the option says, new tensors included', async () => {
  await outside(modelProto({ initializers: [initializer('w', bytes(90)), initializer('v', bytes(80))] }), {
    threshold: 1,
  })
  using file = await open(at('out.onnx'))
  file.onnx!.graph.setInitializer('v', asTensor(bytes(33, 3), { name: 'other' }))
  mkdirSync(at('next'))
  await save(joinPath(at('next'), 'm.onnx'), file, { external: { threshold: 1, location: 'd.bin' } })
  expect(readdirSync(at('next')).sort()).toEqual(['d.bin', 'm.onnx'])
  using next = await open(joinPath(at('next'), 'm.onnx'), { level: 'strict' })
  expect(await next.dense('w').bytes()).toEqual(bytes(90))
  expect(await next.dense('v').bytes()).toEqual(bytes(33, 3))
})
