/** Dense and sparse tensors from values and from tensors of other libraries, read element by element. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { DTYPES } from '../../lib/dtype/dtypes.js'
import { asTensor } from '../../lib/tensor/adapters.js'
import { asLayout } from '../../lib/tensor/as_layout.js'
import { asStored, StoredTensor } from '../../lib/tensor/dense.js'
import { tensor } from '../../lib/tensor/from_values.js'
import { CooTensor, sparseFromDense } from '../../lib/tensor/sparse.js'
import type { DenseTensor, SparseEntry, SparseTensor } from '../../lib/tensor/tensor.js'
import { randomNumbers } from '../attacks/random_numbers.js'

const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

describe('tensor(values)', () => {
  it('accepts numbers, nested arrays, typed arrays and flat lists with a shape', async () => {
    expect(tensor(5, { dtype: 'int8' })).toMatchObject({ shape: [], size: 1, dtype: 'int8', kind: 'dense' })
    expect(tensor(5, { dtype: 'int8' }).at()).toBe(5)
    const nested = tensor(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      { dtype: 'float32', name: 'w' },
    )
    expect(nested).toMatchObject({ name: 'w', shape: [2, 3] })
    expect(await nested.toTypedArray()).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6))
    expect(tensor(Float64Array.of(1, 2), { shape: [2, 1] })).toMatchObject({
      dtype: 'float64',
      shape: [2, 1],
    })
    expect(tensor([1, 2, 3, 4], { dtype: 'uint4', shape: [2, 2] }).at(1, 0)).toBe(3)
    expect(tensor([], { dtype: 'int64' })).toMatchObject({ shape: [0], size: 0 })
    expect(tensor([[], []], { dtype: 'int64' }).shape).toEqual([2, 0])
    expect(tensor([2n ** 64n - 1n], { dtype: 'uint64' }).at(0)).toBe(2n ** 64n - 1n)
    expect(tensor([true, false], { dtype: 'bool' }).at(0)).toBe(true)
  })

  it('converts and copies values', async () => {
    const values = Float32Array.of(1.1, 70000)
    const half = tensor(values, { dtype: 'float16' })
    values.fill(0)
    expect(await half.toTypedArray()).toEqual(Float32Array.of(1.099609375, Number.POSITIVE_INFINITY))
    expect(await half.bits()).toEqual(Uint16Array.of(0x3c66, 0x7c00))
  })

  it.each<[string, unknown, object, string]>([
    ['a ragged row', [[1, 2], [3]], { dtype: 'int8' }, 'values[1]'],
    ['a value among rows', [[1], 2], { dtype: 'int8' }, 'values[1]'],
    ['a row among values', [1, [2]], { dtype: 'int8' }, 'values[1]'],
    [
      'a value out of range',
      [
        [1, 2],
        [3, 200],
      ],
      { dtype: 'int8' },
      'values[1][1]',
    ],
    ['a missing value', [1, undefined, 3], { dtype: 'int8' }, 'values[1]'],
    ['a hole', new Array(2), { dtype: 'int8' }, 'values[0]'],
    ['a shape that is not filled', [1, 2, 3], { dtype: 'int8', shape: [2, 2] }, '3 values'],
    [
      'another shape than the nesting',
      [
        [1, 2],
        [3, 4],
      ],
      { dtype: 'int8', shape: [4] },
      '[2,2]',
    ],
    ['no dtype', [1, 2], {}, 'dtype'],
    ['a negative extent', [1], { dtype: 'int8', shape: [-1] }, 'shape[0]'],
    ['a DataView', new DataView(new ArrayBuffer(4)), { dtype: 'int8' }, 'DataView'],
  ])('rejects %s', (_, values, options, text) => {
    expect(() => tensor(values as never, options)).toThrow(code('ERR_ARGUMENT'))
    expect(() => tensor(values as never, options)).toThrow(text)
  })

  it('rejects an unknown dtype', () => {
    expect(() => tensor([1], { dtype: 'float7' as never })).toThrow(code('ERR_DTYPE'))
    expect(() => tensor([1], { dtype: 'complex64' })).toThrow(code('ERR_DTYPE'))
  })
})

describe('dense tensors', () => {
  const matrix = tensor(
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    { dtype: 'int16' },
  )

  it('return one element with checked indices', () => {
    expect(matrix.at(1, 2)).toBe(6)
    for (const index of [[0], [0, 0, 0], [-1, 0], [2, 0], [0, 3], [0.5, 0]]) {
      expect(() => matrix.at(...index)).toThrow(code('ERR_RANGE'))
    }
  })

  it('return byte ranges', async () => {
    expect([...matrix.bytesSync({ start: 2, end: 6 })]).toEqual([2, 0, 3, 0])
    expect((await matrix.bytes()).length).toBe(12)
    await expect(matrix.bytes({ start: 0, end: 13 })).rejects.toThrow(code('ERR_RANGE'))
    await expect(matrix.bytes({ start: -2, end: 4 })).rejects.toThrow(code('ERR_RANGE'))
  })

  it('throw ERR_ASYNC_ONLY where the source cannot be read synchronously', async () => {
    const source = { byteLength: 4, read: async () => new Uint8Array(4) }
    const remote = new StoredTensor({ source, start: 0, dtype: 'int32', shape: [1] })
    expect(() => remote.at(0)).toThrow(code('ERR_ASYNC_ONLY'))
    expect(await remote.toTypedArray()).toEqual(Int32Array.of(0))
  })

  it('must lie inside their source', () => {
    const source = new MemorySource(new Uint8Array(8))
    const make = (init: object) => () =>
      new StoredTensor({ source, start: 0, dtype: 'int32', shape: [2], ...init })
    expect(make({})).not.toThrow()
    expect(make({ start: 4 })).toThrow(code('ERR_RANGE'))
    expect(make({ shape: [3] })).toThrow(code('ERR_RANGE'))
    expect(make({ shape: [2 ** 40, 2 ** 40] })).toThrow(code('ERR_OVERFLOW'))
    expect(make({ dtype: 'string' })).toThrow(code('ERR_DTYPE'))
    expect(make({ shape: [2 ** 40, 2 ** 40, 0] })).not.toThrow()
  })

  it('read elements at unaligned addresses', async () => {
    const bytes = new Uint8Array(13)
    bytes.set(new Uint8Array(Float64Array.of(0.1).buffer), 5)
    const odd = new StoredTensor({ source: new MemorySource(bytes), start: 5, dtype: 'float64', shape: [1] })
    expect(await odd.toTypedArray()).toEqual(Float64Array.of(0.1))
    expect(odd.at(0)).toBe(0.1)
  })
})

describe('blocked tensors', () => {
  // b_fs_yx_fsv4 of [1, 2, 1, 3]: for each x, two features and two holes.
  const stored = tensor([1, 4, 0, 0, 2, 5, 0, 0, 3, 6, 0, 0], { dtype: 'int32' })
  const blocked = asLayout(stored, 'b_fs_yx_fsv4', [1, 2, 1, 3])

  it('return logical values', async () => {
    expect(blocked).toMatchObject({ shape: [1, 2, 1, 3], size: 6 })
    expect(blocked.storage).toMatchObject({ layout: 'b_fs_yx_fsv4', elements: 12, byteLength: 48 })
    expect(blocked.at(0, 1, 0, 2)).toBe(6)
    expect(await blocked.toTypedArray()).toEqual(Int32Array.of(1, 2, 3, 4, 5, 6))
    expect(await blocked.bytes()).toEqual(await stored.bytes())
  })

  it('report both sizes when the elements do not fit', () => {
    expect(() => asLayout(stored, 'b_fs_yx_fsv4', [1, 5, 1, 3])).toThrow(code('ERR_LAYOUT_SHAPE'))
    expect(() => asLayout(stored, 'b_fs_yx_fsv4', [1, 5, 1, 3])).toThrow(/24 .* 12/)
    expect(() => asLayout(blocked, 'bfyx', [1, 2, 1, 6])).toThrow(code('ERR_LAYOUT_SHAPE'))
    expect(() => asLayout(stored, 'no_such_layout', [12])).toThrow(code('ERR_LAYOUT_NAME'))
  })

  it('accept explicit padding', () => {
    const padded = asLayout(tensor([0, 7, 8, 0], { dtype: 'int32' }), 'bfyx', [1, 1, 1, 2], {
      lower: [0, 0, 0, 1],
      upper: [0, 0, 0, 1],
    })
    expect([padded.at(0, 0, 0, 0), padded.at(0, 0, 0, 1)]).toEqual([7, 8])
    expect(padded.storage).toMatchObject({ lower: [0, 0, 0, 1], upper: [0, 0, 0, 1] })
  })
})

describe('asTensor', () => {
  it('shares a typed array, optionally with another dtype', async () => {
    const array = Uint16Array.of(0x3f80, 0x4000)
    const weights = asTensor(array, { dtype: 'bfloat16', shape: [2, 1], name: 'w' })
    expect(weights).toMatchObject({ name: 'w', dtype: 'bfloat16', shape: [2, 1] })
    expect(await weights.toTypedArray()).toEqual(Float32Array.of(1, 2))
    array[0] = 0x4000
    expect(weights.at(0, 0)).toBe(2)
    expect(asTensor(Float32Array.of(1, 2, 3)).shape).toEqual([3])
  })

  it('accepts tensors of onnxruntime', async () => {
    const like = { dims: [2, 2], type: 'int64', data: BigInt64Array.of(1n, 2n, 3n, 4n), location: 'cpu' }
    expect(asTensor(like).at(1, 0)).toBe(3n)
    expect(() => asTensor({ dims: [2], type: 'string', data: ['a'] })).toThrow(code('ERR_ARGUMENT'))
    expect(() => asTensor({ ...like, dims: [3] })).toThrow(code('ERR_ARGUMENT'))
    expect(() => asTensor({ ...like, type: 'int5' })).toThrow(code('ERR_DTYPE'))
  })

  it('accepts tensors of TensorFlow.js, with and without dataSync', async () => {
    const data = Float32Array.of(1, 2)
    const both = asTensor({ dtype: 'float32', shape: [2], dataSync: () => data, data: async () => data })
    expect(both.at(1)).toBe(2)
    const later = asTensor({ dtype: 'float32', shape: [2], data: async () => data })
    expect(() => later.at(0)).toThrow(code('ERR_ASYNC_ONLY'))
    expect(await later.toTypedArray()).toEqual(data)
  })

  it('accepts any object with dtype, shape and bytes(), and returns a dense tensor unchanged', async () => {
    const own = { dtype: 'int16', shape: [2], bytes: async () => Uint8Array.of(1, 0, 2, 0) }
    expect(await asTensor(own).toTypedArray()).toEqual(Int16Array.of(1, 2))
    const short = asTensor({ ...own, bytes: () => Uint8Array.of(1) })
    await expect(short.bytes()).rejects.toThrow(code('ERR_ARGUMENT'))
    const ours = tensor([1], { dtype: 'int8' })
    expect(asTensor(ours)).toBe(ours)
    for (const none of [null, 5, {}, { dtype: 'int8' }, 'x']) {
      expect(() => asTensor(none as never)).toThrow(code('ERR_ARGUMENT'))
    }
  })
})

describe('sparse tensors', () => {
  const listed = async (sparse: SparseTensor): Promise<SparseEntry[]> => {
    const entries: SparseEntry[] = []
    for await (const entry of sparse.entries()) entries.push(entry)
    return entries
  }

  it('round-trip from dense tensors, with entries in lexicographic order', async () => {
    const dense = tensor(
      [
        [0, 3, 0],
        [0, 0, -5],
      ],
      { dtype: 'int32', name: 'd' },
    )
    const sparse = await sparseFromDense(dense)
    expect(sparse).toMatchObject({ kind: 'sparse', name: 'd', entryCount: 2, shape: [2, 3], size: 6 })
    expect(await listed(sparse)).toEqual([
      { index: [0, 1], value: 3 },
      { index: [1, 2], value: -5 },
    ])
    expect(await sparse.indices()).toEqual(BigInt64Array.of(0n, 1n, 1n, 2n))
    const back = await sparse.toDense({ maxBytes: 24 })
    expect(await back.bytes()).toEqual(await dense.bytes())
    await expect(sparse.toDense({ maxBytes: 23 })).rejects.toThrow(code('ERR_LIMIT'))
  })

  it('keep -0 and NaN, which do not count as zero', async () => {
    const dense = tensor([0, -0, Number.NaN, 1], { dtype: 'float32' })
    const sparse = await sparseFromDense(dense, { name: 's' })
    expect(sparse).toMatchObject({ entryCount: 3, name: 's' })
    expect((await listed(sparse)).map(({ value }) => value)).toEqual([-0, Number.NaN, 1])
    expect((await sparseFromDense(dense, { keepZeros: true })).entryCount).toBe(4)
  })

  it('are made from blocked, scalar and empty tensors', async () => {
    const stored = tensor([1, 4, 9, 9, 2, 0, 9, 9], { dtype: 'int32' })
    const sparse = await sparseFromDense(asLayout(stored, 'b_fs_yx_fsv4', [1, 2, 1, 2]))
    expect((await listed(sparse)).map(({ index, value }) => [index.join(''), value])).toEqual([
      ['0000', 1],
      ['0001', 2],
      ['0100', 4],
    ])
    expect(await listed(await sparseFromDense(tensor(7, { dtype: 'int8' })))).toEqual([
      { index: [], value: 7 },
    ])
    expect(await listed(await sparseFromDense(tensor([], { dtype: 'int8' })))).toEqual([])
  })

  it.each(['uint2', 'int4', 'float6_e3m2fn', 'int8', 'float16', 'float32', 'int64', 'complex128'] as const)(
    'of %s hold every element that has a bit, wherever it lies, and give all back',
    async (dtype) => {
      const shape = [3, 7, 60_001]
      const size = 3 * 7 * 60_001
      const bytes = new Uint8Array(Math.ceil((size * DTYPES[dtype].bits) / 8))
      const random = randomNumbers(5)
      for (let i = 0; i < 2000; i++) bytes[random(bytes.length - 1)] = 0x80
      const dense = asTensor(bytes, { dtype, shape })
      const sparse = await sparseFromDense(dense)
      const indices = await sparse.indices()
      const slots = Array.from({ length: sparse.entryCount }, (_, entry) => {
        const [z, y, x] = indices.subarray(3 * entry, 3 * entry + 3)
        return Number((z! * 7n + y!) * 60_001n + x!)
      })
      expect(slots.every((slot, entry) => entry === 0 || slot > slots[entry - 1]!)).toBe(true)
      const all = await sparseFromDense(dense, { keepZeros: true })
      expect([all.entryCount, (await all.indices()).subarray(-3)]).toEqual([
        size,
        BigInt64Array.of(2n, 6n, 60_000n),
      ])
      for (const each of [sparse, all]) {
        const back = await each.toDense({ maxBytes: bytes.length })
        expect(Buffer.compare(await back.bytes(), bytes)).toBe(0)
      }
    },
  )

  it.each(['int4', 'uint4', 'float4_e2m1fn', 'float6_e2m3fn', 'int2', 'uint2'] as const)(
    'hold %s',
    async (dtype) => {
      const dense = tensor(
        [
          [0, 1, 0],
          [1, 0, 0],
          [1, 1, 0],
        ],
        { dtype },
      )
      const sparse = await sparseFromDense(dense)
      expect([sparse.entryCount, (await sparse.values()).length]).toEqual([
        4,
        { 2: 1, 4: 2, 6: 3 }[DTYPES[dtype].bits],
      ])
      expect((await listed(sparse)).length).toBe(4)
      expect(await (await sparse.toDense({ maxBytes: 7 })).bytes()).toEqual(await dense.bytes())
      const all = await sparseFromDense(dense, { keepZeros: true })
      expect(await (await all.toDense({ maxBytes: 7 })).bytes()).toEqual(await dense.bytes())
      await expect(sparse.toDense({ maxBytes: 2 })).rejects.toThrow(code('ERR_LIMIT'))
    },
  )

  it('hold complex elements', async () => {
    const complex = asTensor(Float32Array.of(0, 1, 0, 0), { dtype: 'complex64', shape: [2] })
    const sparse = await sparseFromDense(complex)
    expect(sparse.entryCount).toBe(1)
    expect(await (await sparse.toDense({ maxBytes: 16 })).bytes()).toEqual(await complex.bytes())
    await expect(listed(sparse)).rejects.toThrow(code('ERR_DTYPE'))
  })

  it('are read in windows', async () => {
    const count = 300_000
    const values = Int32Array.from({ length: count }, (_, i) => i + 1)
    const sparse = await sparseFromDense(tensor(values))
    let sum = 0
    for await (const { index, value } of sparse.entries()) sum += (value as number) - index[0]!
    expect(sum).toBe(count)
    expect(await (await sparse.toDense({ maxBytes: 4 * count })).toTypedArray()).toEqual(values)
  })

  it('check indices on read', async () => {
    const bytes = new Uint8Array(BigInt64Array.of(0n, 5n, 1n, 2n).buffer)
    const init = { source: new MemorySource(bytes), indicesStart: 0, valuesStart: 16, entryCount: 2 }
    const bad = new CooTensor({ ...init, dtype: 'int64', shape: [3] })
    await expect(bad.indices()).rejects.toMatchObject({ code: 'ERR_COO_INDEX', offset: 8 })
    await expect(listed(bad)).rejects.toThrow(code('ERR_COO_INDEX'))
    await expect(bad.toDense({ maxBytes: 100 })).rejects.toThrow(code('ERR_COO_INDEX'))
  })
})

it('a user tensor is read through its bytes()', async () => {
  const inner = tensor([1, 2, 3], { dtype: 'int16' })
  const own: DenseTensor = {
    kind: 'dense',
    name: 'mine',
    dtype: 'int16',
    shape: [3],
    size: 3,
    sizeExact: 3n,
    hasData: true,
    metadata: new Map(),
    storage: inner.storage,
    bytes: (range) => inner.bytes(range),
    bytesSync: (range) => inner.bytesSync(range),
    copyTo: (target, options) => inner.copyTo(target, options),
    copyToSync: (target, options) => inner.copyToSync(target, options),
    toTypedArray: () => inner.toTypedArray(),
    bits: () => inner.bits(),
    at: (...index) => inner.at(...index),
  }
  const stored = asStored(own)
  expect(stored.name).toBe('mine')
  expect(stored.at(2)).toBe(3)
  expect(await stored.toTypedArray()).toEqual(Int16Array.of(1, 2, 3))
  expect(() => asStored({ ...own, hasData: false })).toThrow(code('ERR_NO_DATA'))
})
