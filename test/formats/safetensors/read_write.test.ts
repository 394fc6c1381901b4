import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { DTYPES, type Dtype } from '../../../lib/dtype/dtypes.js'
import type { Level } from '../../../lib/errors.js'
import { FileHead } from '../../../lib/formats/file_head.js'
import { compareCodePoints } from '../../../lib/formats/safetensors/code_points.js'
import { safetensorsEntry } from '../../../lib/formats/safetensors/entry.js'
import { safetensors } from '../../../lib/formats/safetensors/index.js'
import { TENSOR_CODES } from '../../../lib/formats/safetensors/schema.js'
import type { SafetensorsWriteOptions } from '../../../lib/formats/safetensors/write.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import type { DenseTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { bytesOfPlan, headerText, readOptions, safetensorsFile } from './safetensors_bytes.js'

const readBytes = (bytes: Uint8Array, level: Level = 'strict') =>
  safetensors.read(new MemorySource(bytes), readOptions(level))

const checkBytes = (bytes: Uint8Array, level: Level = 'strict') =>
  safetensors.check(new MemorySource(bytes), readOptions(level))

const write = async (tensors: readonly Tensor[], options?: SafetensorsWriteOptions) =>
  bytesOfPlan(await safetensors.plan(tensors, options))

const headerOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.subarray(8, 8 + Number(Buffer.from(bytes).readBigUInt64LE()))).toString()

interface Made {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly bytes: Uint8Array
  readonly metadata?: Record<string, string>
  readonly layout?: string
}

function make({ bytes, metadata, ...about }: Made): StoredTensor {
  const map = metadata && new Map(Object.entries(metadata))
  return new StoredTensor({
    source: new MemorySource(bytes),
    start: 0,
    ...about,
    ...(map && { metadata: map }),
  })
}

const counting = (length: number): Uint8Array => Uint8Array.from({ length }, (_, at) => at % 251)

const float32 = (name: string, ...values: number[]): StoredTensor =>
  make({
    name,
    dtype: 'float32',
    shape: [values.length],
    bytes: new Uint8Array(Float32Array.from(values).buffer),
  })

describe('reading', () => {
  it('gives the tensors of the header in the order of their bytes', async () => {
    const header = headerText([
      { name: 'second', dtype: 'U8', shape: [3], offsets: [8, 11] },
      { name: 'first', dtype: 'F32', shape: [2, 1], offsets: [0, 8] },
      { name: 'empty', dtype: 'I64', shape: [0, 4], offsets: [8, 8] },
      { name: 'scalar', dtype: 'I8', shape: [], offsets: [11, 12] },
    ])
    const floats = new Uint8Array(Float32Array.of(1.5, -2).buffer)
    const bytes = safetensorsFile(header, [...floats, 7, 8, 9, 255])
    const { tensors, findings } = await readBytes(bytes)
    expect(findings).toEqual([])
    expect([...tensors].map(({ name, dtype, shape }) => ({ name, dtype, shape }))).toEqual([
      { name: 'first', dtype: 'float32', shape: [2, 1] },
      { name: 'empty', dtype: 'int64', shape: [0, 4] },
      { name: 'second', dtype: 'uint8', shape: [3] },
      { name: 'scalar', dtype: 'int8', shape: [] },
    ])
    expect(tensors.length).toBe(4)
    expect(tensors.at(-1)?.name).toBe('scalar')
    expect(tensors.at(4)).toBeUndefined()
    expect(tensors.get('nothing')).toBeUndefined()
    expect(await (tensors.get('first') as DenseTensor).toTypedArray()).toEqual(Float32Array.of(1.5, -2))
    expect((tensors.get('scalar') as DenseTensor).at()).toBe(-1)
    expect(await checkBytes(bytes)).toEqual([])
  })

  it('does not copy: the bytes of a tensor are those of the source', async () => {
    const header = headerText([{ name: 'a', dtype: 'U8', shape: [4], offsets: [0, 4] }])
    const bytes = safetensorsFile(header, [1, 2, 3, 4])
    const { tensors } = await readBytes(bytes)
    const view = await (tensors.at(0) as DenseTensor).bytes()
    expect(view.buffer).toBe(bytes.buffer)
    expect(view.byteOffset).toBe(bytes.length - 4)
  })

  it('gives every tensor the metadata of the file', async () => {
    const entries = [
      { name: 'a', dtype: 'U8', shape: [1], offsets: [0, 1] },
      { name: 'b', dtype: 'U8', shape: [1], offsets: [1, 2] },
    ]
    const { tensors } = await readBytes(safetensorsFile(headerText(entries, { format: 'pt' }), [1, 2]))
    for (const tensor of tensors) expect([...tensor.metadata]).toEqual([['format', 'pt']])
  })

  it.each(['__proto__', 'constructor', 'toString', '', '0', 'ünï/cödé 🎲'])(
    '%j is a name like others',
    async (name) => {
      const bytes = safetensorsFile(headerText([{ name, dtype: 'U8', shape: [1], offsets: [0, 1] }]), [5])
      const { tensors } = await readBytes(bytes)
      expect((tensors.get(name) as DenseTensor).at(0)).toBe(5)
      expect(Buffer.from(await write([...tensors])).subarray(-1)).toEqual(Buffer.of(5))
    },
  )

  it('an empty header is an empty file', async () => {
    const bytes = safetensorsFile('{}')
    expect((await readBytes(bytes)).tensors.length).toBe(0)
    expect(await checkBytes(bytes)).toEqual([])
  })

  it('names the types of the format where one is unknown', async () => {
    const messageOf = async (dtype: string) => {
      const header = headerText([{ name: 'a', dtype, shape: [1], offsets: [0, 4] }])
      return (await checkBytes(safetensorsFile(header, [1, 2, 3, 4]))).map(({ message }) => message)
    }
    expect(await messageOf('f32')).toEqual(['tensors["a"] has the unknown dtype "f32"; did you mean "F32"?'])
    const [unknown, ...others] = await messageOf('quaternion')
    expect(others).toEqual([])
    expect(unknown).toMatch(/unknown dtype "quaternion"; safetensors has BOOL, .*F32/)
  })

  it('lists 6-bit floats, four of which are three bytes', async () => {
    const header = headerText([
      { name: 'six', dtype: 'F6_E2M3', shape: [4], offsets: [0, 3] },
      { name: 'byte', dtype: 'U8', shape: [1], offsets: [3, 4] },
    ])
    const { tensors, findings } = await readBytes(safetensorsFile(header, [1, 2, 3, 4]))
    expect([...tensors].map(({ name, dtype }) => [name, dtype])).toEqual([
      ['six', 'float6_e2m3fn'],
      ['byte', 'uint8'],
    ])
    expect([...(await (tensors.get('six') as DenseTensor).bits())]).toEqual([1, 8, 48, 0])
    expect(findings).toEqual([])
  })
})

it('detects files by their first bytes', async () => {
  const detect = async (bytes: Uint8Array) =>
    safetensorsEntry.detect(await FileHead.read(new MemorySource(bytes)))
  expect(await detect(safetensorsFile('{}'))).toBe(true)
  expect(await detect(safetensorsFile('[]'))).toBe(false)
  expect(await detect(safetensorsFile('{}').subarray(0, 9))).toBe(false)
  expect(await detect(new Uint8Array(0))).toBe(false)
  expect(await detect(Buffer.from('{"weight_map": {}}'))).toBe(true)
  expect(await detect(Buffer.from('{"other": "json"}'))).toBe(false)
})

describe('writing', () => {
  it('sorts by element type, then name, and pads the header with spaces', async () => {
    const bytes = await write([
      make({ name: 'u8', dtype: 'uint8', shape: [3], bytes: counting(3) }),
      float32('b', 1),
      float32('a', 2, 3),
      make({ name: 'i64', dtype: 'int64', shape: [], bytes: counting(8) }),
    ])
    expect(headerOf(bytes).trimEnd()).toBe(
      headerText([
        { name: 'i64', dtype: 'I64', shape: [], offsets: [0, 8] },
        { name: 'a', dtype: 'F32', shape: [2], offsets: [8, 16] },
        { name: 'b', dtype: 'F32', shape: [1], offsets: [16, 20] },
        { name: 'u8', dtype: 'U8', shape: [3], offsets: [20, 23] },
      ]),
    )
    expect(headerOf(bytes).length % 8).toBe(0)
    expect(await checkBytes(bytes)).toEqual([])
  })

  it.each(TENSOR_CODES)('$code survives a round trip', async ({ dtype }) => {
    const shape = [2, 4]
    const bytes =
      dtype === 'bool' ? Uint8Array.of(0, 1, 1, 0, 1, 0, 1, 1) : counting((8 * DTYPES[dtype].bits) / 8)
    const file = await write([make({ name: 'x', dtype, shape, bytes })])
    const { tensors } = await readBytes(file)
    expect(tensors.at(0)).toMatchObject({ name: 'x', dtype, shape })
    expect(await (tensors.at(0) as DenseTensor).bytes()).toEqual(bytes)
    expect(await checkBytes(file)).toEqual([])
  })

  it('writes again what it has read, byte for byte', async () => {
    const files = fc.array(
      fc.record({
        name: fc.string({ unit: 'grapheme', maxLength: 8 }).filter((name) => name !== '__metadata__'),
        code: fc.constantFrom(...TENSOR_CODES.filter(({ dtype }) => dtype !== 'bool')),
        shape: fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }).map((shape) => [...shape, 4]),
      }),
      { maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(files, async (made) => {
        const named = [...new Map(made.map((tensor) => [tensor.name, tensor])).values()]
        const tensors = named.map(({ name, code, shape }) => {
          const bits = shape.reduce((size, extent) => size * extent, code.bits)
          return make({ name, dtype: code.dtype, shape, bytes: counting(bits / 8) })
        })
        const first = await write(tensors)
        expect(await checkBytes(first)).toEqual([])
        expect(await write([...(await readBytes(first)).tensors])).toEqual(first)
      }),
      { numRuns: 60 },
    )
  })

  it('aligns the data as requested', async () => {
    for (const alignment of [8, 64, 4096]) {
      const file = await write([float32('a', 1)], { alignment })
      expect((file.length - 4) % alignment).toBe(0)
      expect(await checkBytes(file)).toEqual([])
    }
    for (const alignment of [0, 4, 12, 2 ** 17, Number.NaN, 8.5]) {
      await expect(write([], { alignment })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })

  it('refers to tensors in segments', async () => {
    const tensor = float32('a', 1)
    const { segments } = await safetensors.plan([tensor, float32('none')])
    const kinds = Array.from(segments, ({ kind }) => kind)
    expect(kinds.lastIndexOf('bytes')).toBe(kinds.length - 2)
    expect([...segments].at(-1)).toEqual({ kind: 'tensor', tensor })
  })

  it('stops where a tensor has another shape than at the plan', async () => {
    const list = [float32('a', 1)]
    const { segments } = await safetensors.plan(list)
    list[0] = float32('a', ...new Array<number>(10).fill(0))
    expect(() => [...segments]).toThrow('changed its type or shape while it was saved')
  })

  it('refuses a tensor with the reason', async () => {
    const refused = async (tensor: Made) => write([make(tensor)])
    const base = { name: 'x', shape: [2] }
    await expect(refused({ ...base, dtype: 'int4', bytes: counting(1) })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('int4'),
    })
    await expect(refused({ ...base, dtype: 'complex128', bytes: counting(32) })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    })
    await expect(
      refused({ name: 'x', dtype: 'float4_e2m1fn', shape: [3], bytes: counting(2) }),
    ).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('3 elements of 4 bits; safetensors needs whole bytes'),
    })
    for (const name of ['__metadata__', 'half \ud800']) {
      await expect(refused({ name, dtype: 'uint8', shape: [2], bytes: counting(2) })).rejects.toMatchObject({
        code: 'ERR_UNSUPPORTED',
      })
    }
    await expect(write([float32('a', 1), float32('a', 2)])).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message: expect.stringContaining('both named "a"'),
    })
  })
})

describe('metadata', () => {
  const withMetadata = (name: string, metadata: Record<string, string>) =>
    make({ name, dtype: 'uint8', shape: [1], bytes: counting(1), metadata })

  it('follow the tensors from file to file', async () => {
    const entries = [{ name: 'a', dtype: 'U8', shape: [1], offsets: [0, 1] }]
    const metadata = { format: 'pt', quoted: '"\\\n\u0001ü🎲', '10': 'ten', __proto__x: '' }
    const { tensors } = await readBytes(safetensorsFile(headerText(entries, metadata), [1]))
    const again = await readBytes(await write([...tensors]))
    expect(Object.fromEntries(again.tensors.at(0)!.metadata)).toEqual(metadata)
  })

  it('of several files are merged, and refused where they conflict', async () => {
    const agreeing = [withMetadata('a', { x: '1', y: '2' }), withMetadata('b', { y: '2', z: '3' })]
    const joined = await readBytes(await write(agreeing))
    expect(Object.fromEntries(joined.tensors.at(0)!.metadata)).toEqual({ x: '1', y: '2', z: '3' })
    const disagreeing = [withMetadata('a', { x: '1' }), withMetadata('b', { x: '2' })]
    await expect(write(disagreeing)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message: expect.stringContaining('"x"'),
    })
    const chosen = await readBytes(await write(disagreeing, { metadata: { x: '3' } }))
    expect(Object.fromEntries(chosen.tensors.at(0)!.metadata)).toEqual({ x: '3' })
  })

  it('are absent where there are none, and texts where there are some', async () => {
    expect(headerOf(await write([float32('a', 1)]))).not.toContain('__metadata__')
    expect(headerOf(await write([withMetadata('a', { x: '1' })], { metadata: {} }))).not.toContain('x')
    for (const metadata of [{ x: 1 }, null, 'text', { 'tilework.layout.a': '{}' }]) {
      await expect(write([], { metadata: metadata as never })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })
})

describe('blocked tensors', () => {
  const shape = [2, 19, 5, 7]
  const blocked = make({
    name: 'conv',
    dtype: 'float16',
    shape,
    layout: 'b_fs_yx_fsv16',
    bytes: counting(2 * 2 * 2 * 5 * 7 * 16),
    metadata: { format: 'pt' },
  })

  it('are stored under the shape of their digits and restored', async () => {
    const file = await write([blocked])
    expect(JSON.parse(headerOf(file)).conv.shape).toEqual([2, 2, 5, 7, 16])
    const { tensors, findings } = await readBytes(file)
    expect(findings).toEqual([])
    expect(tensors.at(0)).toMatchObject({ shape, storage: { layout: 'b_fs_yx_fsv16' } })
    expect(await (tensors.at(0) as DenseTensor).bytes()).toEqual(await blocked.bytes())
    expect([...tensors.at(0)!.metadata]).toEqual([['format', 'pt']])
    expect(await write([...tensors])).toEqual(file)
  })

  // Catches a shape that claims an order which the last column does not have.
  it('are stored as one axis where the layout has no digits, and restored', async () => {
    const layout = 'iy_xs_os_xsv2_osv8__ao32'
    const odd = make({ name: 'odd', dtype: 'uint8', shape: [5, 1, 1, 3], layout, bytes: counting(128) })
    const file = await write([odd])
    expect(JSON.parse(headerOf(file)).odd.shape).toEqual([128])
    const { tensors, findings } = await readBytes(file)
    expect(findings).toEqual([])
    expect(tensors.at(0)).toMatchObject({ shape: [5, 1, 1, 3], storage: { layout } })
    expect(await (tensors.at(0) as DenseTensor).bytes()).toEqual(await odd.bytes())
  })

  it('keep their explicit padding', async () => {
    const padded = new StoredTensor({
      source: new MemorySource(counting(4 * 6 * 4)),
      start: 0,
      dtype: 'float32',
      shape: [2, 3],
      name: 'padded',
      lower: [1, 0],
      upper: [1, 3],
    })
    const { tensors } = await readBytes(await write([padded]))
    expect(tensors.at(0)).toMatchObject({ shape: [2, 3], storage: { lower: [1, 0], upper: [1, 3] } })
  })

  it.each([
    ['another tensor', 'other', '{"layout":"b_fs_yx_fsv16","shape":[2,19,5,7]}'],
    ['another shape', 'conv', '{"layout":"b_fs_yx_fsv16","shape":[2,33,5,7]}'],
    ['no layout', 'conv', '{"layout":"b_fs_yx_fsv","shape":[2,19,5,7]}'],
    ['no JSON', 'conv', 'layout'],
    ['a list', 'conv', '[]'],
    ['an unknown key', 'conv', '{"layout":"bfyx","shape":[2,2,5,7],"__proto__":{}}'],
    ['a shape of texts', 'conv', '{"layout":"b_fs_yx_fsv16","shape":["2","19","5","7"]}'],
    ['a shape with a hole', 'conv', '{"layout":"b_fs_yx_fsv16","shape":[2,19,5,null]}'],
    ['padding of another rank', 'conv', '{"layout":"b_fs_yx_fsv16","shape":[2,19,5,7],"lower":[1]}'],
    ['padding that is null', 'conv', '{"layout":"b_fs_yx_fsv16","shape":[2,19,5,7],"lower":null}'],
    ['overflow', 'conv', '{"layout":"b_fs_yx_fsv16","shape":[9007199254740991,9007199254740991,5,7]}'],
    ['length', 'conv', `{"layout":"${'b'.repeat(20_000)}","shape":[2,19,5,7]}`],
  ])('an entry with %s is a finding and the tensor stays plain', async (_, name, entry) => {
    const header = headerText([{ name: 'conv', dtype: 'U8', shape: [2, 2, 5, 7, 16], offsets: [0, 2240] }], {
      [`tilework.layout.${name}`]: entry,
    })
    const file = safetensorsFile(header, counting(2240))
    for (const level of ['strict', 'lenient'] as const) {
      const { tensors, findings } = await readBytes(file, level)
      expect(findings).toMatchObject([{ severity: 'warning', code: 'ERR_LAYOUT_SHAPE' }])
      expect(tensors.at(0)).toMatchObject({ shape: [2, 2, 5, 7, 16], storage: { layout: 'row_major' } })
      expect(await checkBytes(file, level)).toEqual(findings)
    }
  })
})

it('names are ordered by code points, as bytes of UTF-8 compare', () => {
  const names = fc.array(fc.string({ unit: 'binary', maxLength: 4 }), { maxLength: 8 })
  fc.assert(
    fc.property(names, (some) => {
      const byBytes = some.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
      expect(some.toSorted(compareCodePoints)).toEqual(byBytes)
    }),
  )
  expect(['\u{1f3b2}', '\uff00', 'a', ''].toSorted(compareCodePoints)).toEqual([
    '',
    'a',
    '\uff00',
    '\u{1f3b2}',
  ])
})
