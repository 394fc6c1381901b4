import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { openSource } from '../../../lib/bytes/open_source.js'
import type { Level } from '../../../lib/errors.js'
import { btfEntry } from '../../../lib/formats/btf/entry.js'
import { btf } from '../../../lib/formats/btf/index.js'
import { FileHead } from '../../../lib/formats/file_head.js'
import type { ReadResult } from '../../../lib/formats/format.js'
import type { DenseTensor, SparseTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../shared_fixtures.js'
import {
  btfFile,
  bytesOfPlan,
  cooRecord,
  data,
  denseRecord,
  joinFields,
  readOptions,
  sheetExample,
  u64,
} from './btf_bytes.js'

const readBytes = (bytes: Uint8Array, level: Level = 'strict'): Promise<ReadResult> =>
  btf.read(new MemorySource(bytes), readOptions(level))

const checkBytes = (bytes: Uint8Array, level: Level = 'strict') =>
  btf.check(new MemorySource(bytes), readOptions(level))

const dense = (result: ReadResult, index: number): DenseTensor => result.tensors.at(index) as DenseTensor
const sparse = (result: ReadResult, index: number): SparseTensor => result.tensors.at(index) as SparseTensor

async function resave(bytes: Uint8Array, options = {}): Promise<Uint8Array> {
  const { tensors } = await readBytes(bytes, 'lenient')
  return bytesOfPlan(await btf.plan([...tensors], options))
}

describe('real files', THIRD_PARTY, () => {
  it('test_tensor.btf has three known tensors', async () => {
    const source = await openSource(thirdPartyPath('btf/test_tensor.btf'), { mode: 'read' })
    const result = await btf.read(source, readOptions('strict'))
    expect(result.findings).toEqual([])
    expect([...result.tensors].map(({ name, dtype, shape }) => ({ name, dtype, shape }))).toEqual([
      { name: '0', dtype: 'int32', shape: [2, 2] },
      { name: '1', dtype: 'int32', shape: [5] },
      { name: '2', dtype: 'int32', shape: [0] },
    ])
    expect(await dense(result, 0).toTypedArray()).toEqual(Int32Array.of(1, 2, 3, 4))
    expect(await dense(result, 1).toTypedArray()).toEqual(Int32Array.of(0, 1, 2, 3, 4))
    expect(await dense(result, 2).toTypedArray()).toEqual(new Int32Array(0))
    source.close?.()
  })

  it('matmul_test_f32.btf holds A, B and A·B', async () => {
    const result = await readBytes(readFileSync(thirdPartyPath('btf/matmul_test_f32.btf')))
    const [a, b, c] = [dense(result, 0), dense(result, 1), dense(result, 2)]
    expect([a.shape, b.shape, c.shape]).toEqual([
      [6, 8],
      [8, 7],
      [6, 7],
    ])
    for (let row = 0; row < 6; row++) {
      for (let column = 0; column < 7; column++) {
        let sum = 0
        for (let k = 0; k < 8; k++) sum += (a.at(row, k) as number) * (b.at(k, column) as number)
        expect(c.at(row, column)).toBeCloseTo(sum, 5)
      }
    }
  })

  it.each(thirdPartyFiles('btf').map(({ path }) => path))(
    '%s passes every check and is written again byte for byte',
    async (name) => {
      const bytes = readFileSync(thirdPartyPath(name))
      expect(await checkBytes(bytes)).toEqual([])
      expect(Buffer.from(await resave(bytes)).equals(bytes)).toBe(true)
    },
  )

  it.each(thirdPartyFiles('btf').map(({ path }) => path))(
    '%s cut at every byte is an error, never a crash',
    async (name) => {
      const bytes = readFileSync(thirdPartyPath(name))
      for (let length = 0; length < bytes.length; length++) {
        const cut = bytes.subarray(0, length)
        await expect(readBytes(cut, 'lenient'), `cut at ${length}`).rejects.toMatchObject({
          code: expect.stringMatching(/^ERR_(TRUNCATED|OFFSET_RANGE)$/),
          format: 'btf',
        })
        expect((await checkBytes(cut)).some(({ severity }) => severity === 'error')).toBe(true)
      }
    },
  )
})

describe('the worked example of a sparse record', () => {
  const bytes = sheetExample()

  it('has 272 bytes and no finding', async () => {
    expect(bytes.byteLength).toBe(272)
    expect(await checkBytes(bytes)).toEqual([])
  })

  it('gives entries, indices, values and the dense form', async () => {
    const tensor = sparse(await readBytes(bytes), 1)
    expect(tensor).toMatchObject({ kind: 'sparse', dtype: 'int64', shape: [2, 4], entryCount: 6, size: 8 })
    const entries = []
    for await (const entry of tensor.entries()) entries.push(entry)
    expect(entries[0]).toEqual({ index: [0, 1], value: 1n })
    expect(entries[5]).toEqual({ index: [1, 3], value: 7n })
    expect(await tensor.indices()).toEqual(BigInt64Array.of(0n, 1n, 0n, 2n, 0n, 3n, 1n, 1n, 1n, 2n, 1n, 3n))
    expect((await tensor.values()).byteLength).toBe(48)
    const values = await (await tensor.toDense({ maxBytes: 64 })).toTypedArray()
    expect(values).toEqual(BigInt64Array.of(0n, 1n, 2n, 3n, 0n, 5n, 6n, 7n))
  })

  it('is written again byte for byte, or with layout code 2', async () => {
    expect(await resave(bytes)).toEqual(bytes)
    const expected = bytes.slice()
    expected[72 + 9] = 2
    expect(await resave(bytes, { cooLayoutCode: 2 })).toEqual(expected)
    await expect(btf.plan([], { cooLayoutCode: 3 as 1 })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('with layout code 2 is read leniently with a finding and refused in strict', async () => {
    const coded = await resave(bytes, { cooLayoutCode: 2 })
    const { tensors, findings } = await readBytes(coded, 'lenient')
    expect(tensors.at(1)?.kind).toBe('sparse')
    expect(findings).toMatchObject([
      { severity: 'warning', code: 'LAYOUT_CODE_2', path: 'tensors[1].layout', offset: 81 },
    ])
    await expect(readBytes(coded)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', offset: 81 })
  })

  it('cut at every byte is an error', async () => {
    for (let length = 0; length < bytes.length; length++) {
      await expect(readBytes(bytes.subarray(0, length), 'lenient')).rejects.toMatchObject({ format: 'btf' })
    }
  })
})

describe('ranks and extents', () => {
  it('reads the empty file and writes it', async () => {
    const empty = new Uint8Array(8)
    expect((await readBytes(empty)).tensors.length).toBe(0)
    expect(await bytesOfPlan(await btf.plan([]))).toEqual(empty)
  })

  it('reads and writes a scalar', async () => {
    const bytes = btfFile(denseRecord({ dtype: 9, dims: [], data: BigUint64Array.of(2n ** 64n - 1n) }))
    const result = await readBytes(bytes)
    expect(dense(result, 0).shape).toEqual([])
    expect(dense(result, 0).at()).toBe(2n ** 64n - 1n)
    expect(await resave(bytes)).toEqual(bytes)
  })

  it('reads and writes rank 255, dense and sparse', async () => {
    const dims = Array(255).fill(1)
    const bytes = btfFile(
      denseRecord({ dtype: 4, dims, data: Float32Array.of(1.5) }),
      cooRecord({ dims, indices: [Array(255).fill(0)], values: Float32Array.of(2.5) }),
    )
    const result = await readBytes(bytes)
    expect(dense(result, 0).at(...Array(255).fill(0))).toBe(1.5)
    const values = await (await sparse(result, 1).toDense({ maxBytes: 4 })).toTypedArray()
    expect(values).toEqual(Float32Array.of(2.5))
    expect(await resave(bytes)).toEqual(bytes)
  })

  it('reads a zero beside huge dimensions as an empty tensor while their product is below 2^63', async () => {
    const huge = 2 ** 40
    const empty = btfFile(denseRecord({ dims: [huge, 2 ** 22, 0] }))
    expect(dense(await readBytes(empty), 0)).toMatchObject({ size: 0, shape: [huge, 2 ** 22, 0] })
    expect(await resave(empty)).toEqual(empty)
    const beyond = btfFile(denseRecord({ dims: [huge, huge, 0] }))
    await expect(readBytes(beyond, 'lenient')).rejects.toMatchObject({
      code: 'ERR_OVERFLOW',
      path: 'tensors[0].dims',
      message: expect.stringContaining(String(2n ** 80n)),
    })
  })

  it('reads a huge sparse tensor, whose size is exact as a bigint', async () => {
    const dims = [2 ** 31, 2 ** 30]
    const bytes = btfFile(cooRecord({ dims, indices: [[2 ** 31 - 1, 7]], values: Float32Array.of(3) }))
    const tensor = sparse(await readBytes(bytes), 0)
    expect(tensor.sizeExact).toBe(2n ** 61n)
    expect(() => tensor.size).toThrow(expect.objectContaining({ code: 'ERR_OVERFLOW' }))
    for await (const entry of tensor.entries()) expect(entry).toEqual({ index: [2 ** 31 - 1, 7], value: 3 })
    await expect(tensor.toDense({ maxBytes: 1e9 })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
  })

  it('reads a sparse scalar with one entry and with none', async () => {
    const bytes = btfFile(
      cooRecord({ dims: [], indices: [[]], values: Float32Array.of(4) }),
      cooRecord({ dims: [], indices: [], values: new Float32Array(0) }),
    )
    const result = await readBytes(bytes)
    expect(await checkBytes(bytes)).toEqual([])
    const values = await Promise.all(
      [0, 1].map(async (i) => (await sparse(result, i).toDense({ maxBytes: 4 })).toTypedArray()),
    )
    expect(values).toEqual([Float32Array.of(4), Float32Array.of(0)])
    expect(await resave(bytes)).toEqual(bytes)
  })

  it('keeps NaN payloads and -0 bit for bit', async () => {
    const bits = Uint32Array.of(0x7fc00001, 0xffa00000, 0x80000000, 0x00000001)
    const bytes = btfFile(denseRecord({ dtype: 4, dims: [4], data: bits }))
    const stored = await dense(await readBytes(bytes), 0).bytes()
    expect(stored).toEqual(new Uint8Array(bits.buffer))
    expect(await resave(bytes)).toEqual(bytes)
  })

  it('reads every dtype code and writes it again', async () => {
    const arrays = [
      Int8Array.of(-1),
      Int16Array.of(-2),
      Int32Array.of(-3),
      BigInt64Array.of(-4n),
      Float32Array.of(0.5),
      Float64Array.of(0.1),
      Uint8Array.of(255),
      Uint16Array.of(65535),
      Uint32Array.of(4294967295),
      BigUint64Array.of(2n ** 63n),
    ]
    const bytes = btfFile(...arrays.map((array, dtype) => denseRecord({ dtype, dims: [1], data: array })))
    const result = await readBytes(bytes)
    for (const [index, array] of arrays.entries()) {
      expect(await dense(result, index).toTypedArray()).toEqual(array)
      expect(dense(result, index).at(0)).toBe(array[0])
    }
    expect(await resave(bytes)).toEqual(bytes)
  })
})

describe('order of records', () => {
  const first = denseRecord({ dims: [2], data: Int32Array.of(1, 2) })
  const second = denseRecord({ dims: [2], data: Int32Array.of(3, 4) })

  it('reads offsets in any order; the list keeps the order of the table', async () => {
    const bytes = joinFields(u64(2), u64(24 + 32), u64(24), data(first), data(second))
    const result = await readBytes(bytes)
    expect(await dense(result, 0).toTypedArray()).toEqual(Int32Array.of(3, 4))
    expect(await dense(result, 1).toTypedArray()).toEqual(Int32Array.of(1, 2))
    expect(await checkBytes(bytes)).toEqual([])
  })

  it('reads a last record without padding at both levels, with a finding', async () => {
    const bytes = btfFile(denseRecord({ dims: [1], data: Int32Array.of(5) })).subarray(0, 44)
    for (const level of ['lenient', 'strict'] as const) {
      const result = await readBytes(bytes, level)
      expect(result.findings).toMatchObject([
        { severity: 'warning', code: 'FILE_PADDING_MISSING', offset: 44 },
      ])
      expect(dense(result, 0).at(0)).toBe(5)
    }
  })

  it('gives tensors by position, from the end, and by name', async () => {
    const { tensors } = await readBytes(btfFile(first, second))
    expect(tensors.length).toBe(2)
    expect(tensors.at(-1)?.name).toBe('1')
    expect([tensors.at(2), tensors.at(-3), tensors.at(0.5)]).toEqual([undefined, undefined, undefined])
    expect(tensors.get('1')?.name).toBe('1')
    expect(['2', '01', '-1', '', 'x'].map((name) => tensors.get(name))).toEqual(Array(5).fill(undefined))
  })
})

describe('detection', () => {
  const detectBytes = async (bytes: Uint8Array) =>
    btfEntry.detect(await FileHead.read(new MemorySource(bytes)))

  it('accepts its own files', async () => {
    expect(await detectBytes(sheetExample())).toBe(true)
    expect(await detectBytes(new Uint8Array(8))).toBe(true)
    expect(await detectBytes(btfFile(denseRecord({ dims: [], dtype: 0, data: Int8Array.of(1) })))).toBe(true)
  })

  it('refuses other files', async () => {
    expect(await detectBytes(new Uint8Array(0))).toBe(false)
    expect(await detectBytes(new Uint8Array(4096))).toBe(false)
    expect(await detectBytes(Buffer.from('\x93NUMPY\x01\x00 and some more bytes behind it'))).toBe(false)
    expect(await detectBytes(joinFields(u64(1), u64(16), u64(300), u64(0)))).toBe(false)
  })

  it('accepts a byte-swapped file, so that the reader can report it', async () => {
    const swapped = new Uint8Array(sheetExample())
    for (let at = 0; at < 24; at += 8) swapped.subarray(at, at + 8).reverse()
    expect(await detectBytes(swapped)).toBe(true)
    await expect(readBytes(swapped, 'lenient')).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('big-endian'),
    })
  })
})

describe('what the writer refuses', () => {
  const none = () => Promise.reject(new Error('not to be read'))
  const methods = { bytes: none, bytesSync: none, strings: none }
  const like = { name: 't', shape: [1], metadata: new Map(), size: 1, sizeExact: 1n, ...methods }

  it('dtypes without a code, strings, missing data, too many axes', async () => {
    const storage = {
      layout: 'row_major',
      lower: [0],
      upper: [0],
      elements: 1,
      byteLength: 2,
      bitOrder: 'low-first',
    }
    const half = { ...like, kind: 'dense', dtype: 'float16', hasData: true, storage } as unknown as Tensor
    await expect(btf.plan([half])).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('float16'),
    })
    const text = { ...like, kind: 'string', dtype: 'string', hasData: true } as unknown as Tensor
    await expect(btf.plan([text])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const absent = { ...half, dtype: 'int16', hasData: false } as unknown as Tensor
    await expect(btf.plan([absent])).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    const deep = { ...half, dtype: 'int16', shape: Array(256).fill(1) } as unknown as Tensor
    await expect(btf.plan([deep])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })
})

it('opens a million records with bounded reads', async () => {
  const count = 1_000_000
  const record = btfFile(denseRecord({ dims: [2], data: Int32Array.of(7, 8) })).subarray(16)
  const bytes = new Uint8Array(8 + 8 * count + record.length * count)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, count, true)
  const first = 8 + 8 * count
  for (let i = 0; i < count; i++) {
    view.setUint32(8 + 8 * i, first + record.length * i, true)
    bytes.set(record, first + record.length * i)
  }
  let bytesRead = 0
  const inner = new MemorySource(bytes)
  const source = {
    byteLength: bytes.length,
    read: (start: number, end: number) => {
      bytesRead += end - start
      return inner.read(start, end)
    },
  }
  const { tensors } = await btf.read(source, readOptions('strict'))
  expect(tensors.length).toBe(count)
  expect(tensors.at(-1)?.shape).toEqual([2])
  expect(bytesRead).toBeLessThan(1.2 * bytes.length)
})
