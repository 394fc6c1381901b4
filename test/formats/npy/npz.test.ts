import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { crc32, deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import type { Level } from '../../../lib/errors.js'
import { FileHead } from '../../../lib/formats/file_head.js'
import type { ReadResult } from '../../../lib/formats/format.js'
import { npzEntry } from '../../../lib/formats/npy/entry.js'
import { npz } from '../../../lib/formats/npy/index.js'
import { asTensor, lazyTensor, open, serialize } from '../../../lib/index.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import { tensor as makeTensor } from '../../../lib/tensor/from_values.js'
import { reorder } from '../../../lib/tensor/reorder.js'
import type { DenseTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { bytesOf, bytesOfPlan, npyBytes, readOptions } from './npy_bytes.js'
import { extra, join, type MemberFields, u32, u64, zipBytes } from './zip_bytes.js'

const readBytes = (bytes: Uint8Array, level: Level = 'strict'): Promise<ReadResult> =>
  npz.read(new MemorySource(bytes), readOptions(level))
const checkBytes = (bytes: Uint8Array, level: Level = 'strict') =>
  npz.check(new MemorySource(bytes), readOptions(level))
const write = async (tensors: Tensor[], options = {}): Promise<Uint8Array> =>
  bytesOfPlan(await npz.plan(tensors, options))
const dense = (result: ReadResult, name: string): DenseTensor => result.tensors.get(name) as DenseTensor
const member = (name: string, content = npyBytes(), more: Partial<MemberFields> = {}): MemberFields => ({
  name,
  content,
  ...more,
})

/** A source that records its reads. */
function recording(bytes: Uint8Array): ByteSource & { ranges: [number, number][] } {
  const below = new MemorySource(bytes)
  const ranges: [number, number][] = []
  return {
    byteLength: bytes.length,
    ranges,
    read: async (start, end) => {
      ranges.push([start, end])
      return below.readSync(start, end)
    },
  }
}

const floats = npyBytes({ descr: '<f4', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) })
/** Incompressible, and larger than a few windows. */
const noise = ((): Uint8Array => {
  let state = 1
  return Uint8Array.from({ length: 400_000 }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state & 0xff
  })
})()
/** Compares without computing a diff. */
const isSame = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0
const noisy = npyBytes({ descr: '|u1', shape: [noise.length], data: noise })

describe.each([0, 8])('members of method %i', (method) => {
  const bytes = zipBytes([
    member('b.npy', npyBytes(), { method }),
    member('layer/0/weight.npy', floats, { method }),
    member('noise.npy', noisy, { method }),
    member('empty.npy', npyBytes({ shape: [0], data: new Int32Array(0) }), { method }),
  ])

  it('are tensors in the order of the directory', async () => {
    const result = await readBytes(bytes)
    expect(result.findings).toEqual([])
    expect([...result.tensors].map(({ name }) => name)).toEqual(['b', 'layer/0/weight', 'noise', 'empty'])
    expect(await dense(result, 'layer/0/weight').toTypedArray()).toEqual(Float32Array.of(1, 2, 3, 4))
    expect(isSame(await dense(result, 'noise').bytes(), noise)).toBe(true)
    expect(result.tensors.at(-1)?.size).toBe(0)
    expect(result.tensors.get('nothing')).toBeUndefined()
    expect(await checkBytes(bytes)).toEqual([])
  })

  it('with a wrong checksum are refused by a check, not by opening', async () => {
    const crc = 1
    const wrong = zipBytes([member('a.npy', npyBytes(), { method, local: { crc }, entry: { crc } })])
    await readBytes(wrong)
    expect(await checkBytes(wrong)).toMatchObject([{ code: 'ERR_CHECKSUM', path: 'members[0]' }])
  })

  it('may have sizes after the data, in four forms', async () => {
    for (const content of [npyBytes(), floats]) {
      const stored = method === 8 ? new Uint8Array(deflateRawSync(content)) : content
      const crc = crc32(content)
      const short = join(u32(crc, stored.length, content.length))
      const long = join(u32(crc), u64(stored.length, content.length))
      const signature = u32(0x08074b50)
      for (const descriptor of [short, join(signature, short), long, join(signature, long)]) {
        const fields = { method, flags: 8, descriptor, local: { crc: 0, compressedBytes: 0, bytes: 0 } }
        const archive = zipBytes([member('a.npy', content, fields), member('b.npy', content, fields)])
        expect(await checkBytes(archive)).toEqual([])
        expect((await readBytes(archive)).tensors.length).toBe(2)
      }
    }
  })

  it('may have zip64 sizes in either header', async () => {
    const content = npyBytes()
    const stored = method === 8 ? new Uint8Array(deflateRawSync(content)) : content
    const sizes = extra(1, u64(content.length, stored.length))
    const escaped = { compressedBytes: 0xffffffff, bytes: 0xffffffff, extra: sizes }
    for (const fields of [{ local: escaped }, { local: escaped, entry: escaped }, { entry: escaped }]) {
      const archive = zipBytes([member('a.npy', content, { method, ...fields })], { zip64: {} })
      expect(await checkBytes(archive)).toEqual([])
    }
    const offset = extra(1, u64(0))
    const far = { entry: { offset: 0xffffffff, extra: offset } }
    expect(await checkBytes(zipBytes([member('a.npy', content, { method, ...far })]))).toEqual([])
  })
})

describe('deflated members', () => {
  const bytes = zipBytes([member('noise.npy', noisy, { method: 8 })])

  async function open(): Promise<{ tensor: DenseTensor; source: ReturnType<typeof recording> }> {
    const source = recording(bytes)
    const { tensors } = await npz.read(source, readOptions('strict'))
    source.ranges.length = 0
    return { tensor: tensors.at(0) as DenseTensor, source }
  }
  const compressedRead = (source: ReturnType<typeof recording>): number =>
    source.ranges.reduce((sum, [start, end]) => sum + end - start, 0)

  it('are inflated once by forward reads', async () => {
    const { tensor, source } = await open()
    for (let at = 0; at < noise.length; at += 7_000) {
      const end = Math.min(noise.length, at + 7_000)
      expect(isSame(await tensor.bytes({ start: at, end }), noise.subarray(at, end))).toBe(true)
    }
    expect(compressedRead(source)).toBeLessThanOrEqual(bytes.length)
  })

  it('release the memory of data that was read once', async () => {
    const content = npyBytes({ descr: '|u1', shape: [1_000_000], data: new Uint8Array(1_000_000) })
    const names = Array.from({ length: 40 }, (_, at) => `${at}.npy`)
    const archive = zipBytes(names.map((name) => member(name, content, { method: 8 })))
    setFlagsFromString('--expose-gc')
    const collect: () => void = runInNewContext('gc')
    const { tensors } = await readBytes(archive)
    const before = process.memoryUsage().arrayBuffers
    for (const tensor of tensors) await (tensor as DenseTensor).bytes()
    // Destroyed streams release their memory some iterations of the event loop later.
    for (let iteration = 0; iteration < 5; iteration++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      collect()
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10_000_000)
    expect(tensors.length).toBe(40)
  })

  it('are cached after a backward read', async () => {
    const { tensor, source } = await open()
    for (let end = noise.length; end > 0; end -= 7_000) {
      const start = Math.max(0, end - 7_000)
      expect(isSame(await tensor.bytes({ start, end }), noise.subarray(start, end))).toBe(true)
    }
    expect(compressedRead(source)).toBeLessThanOrEqual(3 * bytes.length)
  })

  it('serve concurrent readers', async () => {
    const { tensor } = await open()
    const starts = [300_000, 0, 150_000, 299_999, 1]
    const read = await Promise.all(starts.map((start) => tensor.bytes({ start, end: start + 1000 })))
    expect(read).toEqual(starts.map((start) => noise.slice(start, start + 1000)))
  })

  it('can only be read asynchronously', async () => {
    const { tensor } = await open()
    expect(() => tensor.bytesSync()).toThrow(expect.objectContaining({ code: 'ERR_ASYNC_ONLY' }))
  })

  it('read only what opening needs', async () => {
    const source = recording(bytes)
    await npz.read(source, readOptions('strict'))
    expect(compressedRead(source)).toBeLessThan(bytes.length / 2)
  })

  it('are closed with their file, also when cached', async () => {
    const source = new MemorySource(bytes)
    const { tensors } = await npz.read(source, readOptions('strict'))
    const tensor = tensors.at(0) as DenseTensor
    await tensor.bytes()
    await tensor.bytes({ start: 0, end: 10 })
    source.close()
    await expect(tensor.bytes({ start: 0, end: 10 })).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('may be many: some streams are released and resume at their position', async () => {
    const many = Array.from({ length: 30 }, (_, i) => member(`${i}.npy`, noisy, { method: 8 }))
    const { tensors } = await readBytes(zipBytes(many))
    for (const [start, end] of [
      [0, 1000],
      [200_000, 200_100],
      [399_000, 400_000],
    ] as const) {
      for (const tensor of tensors) {
        expect(isSame(await (tensor as DenseTensor).bytes({ start, end }), noise.subarray(start, end))).toBe(
          true,
        )
      }
    }
  })

  it('may be many that are read at once', async () => {
    const many = Array.from({ length: 20 }, (_, i) => member(`${i}.npy`, noisy, { method: 8 }))
    const { tensors } = await readBytes(zipBytes(many))
    for (const [start, end] of [
      [0, 150_000],
      [150_000, 300_000],
    ] as const) {
      const read = await Promise.all(
        [...tensors].map((tensor) => (tensor as DenseTensor).bytes({ start, end })),
      )
      expect(read.every((bytes) => isSame(bytes, noise.subarray(start, end)))).toBe(true)
    }
  })

  it('in big-endian and in Fortran order are correct', async () => {
    const data = Uint8Array.of(0, 1, 0, 2, 0, 3, 0, 4)
    const content = npyBytes({ descr: '>i2', shape: [2, 2], fortran: true, data })
    const result = await readBytes(zipBytes([member('a.npy', content, { method: 8 })]))
    expect(await dense(result, 'a').toTypedArray()).toEqual(Int16Array.of(1, 3, 2, 4))
  })
})

describe('members that are not arrays', () => {
  it('are findings and no tensors', async () => {
    const bytes = zipBytes([
      member('readme.txt', Buffer.from('hello')),
      member('a.npy'),
      member('folder/', new Uint8Array(0)),
    ])
    for (const level of ['lenient', 'strict'] as const) {
      const { tensors, findings } = await readBytes(bytes, level)
      expect([...tensors].map(({ name }) => name)).toEqual(['a'])
      expect(findings).toMatchObject([
        { code: 'ERR_UNSUPPORTED', severity: 'warning', path: 'members[0]' },
        { code: 'ERR_UNSUPPORTED', severity: 'warning', path: 'members[2]' },
      ])
    }
  })

  it('arrays of unsupported types are omitted in lenient, refused in strict', async () => {
    const bytes = zipBytes([member('o.npy', npyBytes({ descr: '|O' })), member('a.npy')])
    const { tensors, findings } = await readBytes(bytes, 'lenient')
    expect([...tensors].map(({ name }) => name)).toEqual(['a'])
    expect(findings).toMatchObject([
      {
        code: 'ERR_UNSUPPORTED',
        severity: 'warning',
        path: 'members[0].descr',
        message: expect.stringContaining('o.npy'),
      },
    ])
    await expect(readBytes(bytes)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', format: 'npz' })
  })

  it('an empty archive has no tensors', async () => {
    const bytes = zipBytes([])
    expect((await readBytes(bytes)).tensors.length).toBe(0)
    expect(await checkBytes(bytes)).toEqual([])
    expect(await write([])).toEqual(bytes)
  })

  it('detection looks at the first member', async () => {
    const detect = async (bytes: Uint8Array) => npzEntry.detect(await FileHead.read(new MemorySource(bytes)))
    expect(await detect(zipBytes([member('a.npy')]))).toBe(true)
    expect(await detect(zipBytes([]))).toBe(true)
    expect(await detect(zipBytes([member('data.pkl')]))).toBe(false)
    expect(await detect(new Uint8Array(100))).toBe(false)
    expect(await detect(new Uint8Array(3))).toBe(false)
  })
})

describe('writing', () => {
  const plain = makeTensor(
    Float32Array.from({ length: 6 }, (_, i) => i),
    { shape: [2, 3], name: 'w' },
  )
  const named = (name: string): DenseTensor => makeTensor(Int8Array.of(1, 2), { name })

  it('gives the same bytes each time, aligned to 64, and reads back', async () => {
    const tensors = [named('a'), plain, named('ä/bß'), reorder(plain, 'column_major')].map((tensor, i) =>
      i === 3 ? new StoredTensor({ ...storedOf(tensor as DenseTensor), name: 'fortran' }) : tensor,
    )
    for (const zip64 of ['auto', 'always']) {
      const bytes = await write(tensors, { zip64 })
      expect(await write(tensors, { zip64 })).toEqual(bytes)
      expect(await checkBytes(bytes)).toEqual([])
      const result = await readBytes(bytes)
      expect([...result.tensors].map(({ name }) => name)).toEqual(['a', 'w', 'ä/bß', 'fortran'])
      for (const tensor of result.tensors) expect((tensor as StoredTensor).start % 64).toBe(0)
      expect(dense(result, 'fortran').storage.layout).toBe('column_major')
      expect(await dense(result, 'fortran').toTypedArray()).toEqual(await plain.toTypedArray())
    }
  })

  it('has sizes and checksum in the local header, for streaming readers', async () => {
    const bytes = await write([plain])
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    const content = bytes.subarray(64, 64 + 128 + 24)
    expect(view.getUint32(0, true)).toBe(0x04034b50)
    expect([view.getUint32(14, true), view.getUint32(18, true), view.getUint32(22, true)]).toEqual([
      crc32(content),
      152,
      152,
    ])
    expect(content.subarray(128)).toEqual(bytesOf(Float32Array.of(0, 1, 2, 3, 4, 5)))
  })

  it('writes 64-bit fields on request, and for too many members', async () => {
    const view = (bytes: Uint8Array): DataView =>
      new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const long = await write([plain], { zip64: 'always' })
    expect(view(long).getUint32(18, true)).toBe(0xffffffff)
    expect(view(long).getUint32(long.length - 6, true)).toBe(0xffffffff)
    const source = new MemorySource(new Uint8Array(1))
    const scalar = (name: string) => new StoredTensor({ source, start: 0, dtype: 'int8', shape: [], name })
    const many = await npz.plan(Array.from({ length: 65_535 }, (_, i) => scalar(String(i))))
    const last = [...many.segments].at(-1)
    const ends = last?.kind === 'bytes' ? last.bytes : new Uint8Array(0)
    expect(Buffer.from(ends.subarray(-42, -38)).toString('latin1')).toBe('PK\x06\x07')
    await expect(npz.plan([plain], { zip64: 'never' as 'auto' })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })

  it('plans sizes beyond 4 GiB in 64 bits, without reading a byte', async () => {
    const huge: ByteSource = { byteLength: 5 * 2 ** 30, read: async () => new Uint8Array(0) }
    const tensor = new StoredTensor({
      source: huge,
      start: 0,
      dtype: 'uint8',
      shape: [5 * 2 ** 30],
      name: 'huge',
    })
    const one = await npz.plan([tensor])
    const two = await npz.plan([tensor, named('small')])
    // 20 bytes of zip64 in the local header and in the directory, and two end records of 76 bytes.
    expect(one.byteLength).toBeGreaterThan(5 * 2 ** 30 + 128 + 20 + 24 + 76)
    const directory = two.byteLength - one.byteLength
    expect(directory).toBeGreaterThan(64 + 128 + 2 + 46 + 9)
  })

  it.each([
    [1000, 1],
    [3 * 1024 * 1024, 4],
  ])('a lazy tensor of %i bytes is loaded %i times', async (count, times) => {
    let loads = 0
    const values = Uint8Array.from({ length: count }, (_, i) => i)
    const load = () => {
      loads += 1
      return asTensor(values, { dtype: 'uint8', shape: [count] })
    }
    const lazy = lazyTensor(load, { dtype: 'uint8', shape: [count], name: 'x', keep: false })
    const file = await open(await serialize(lazy, { format: 'npz' }), { format: 'npz' })
    expect(loads).toBe(times)
    expect(Buffer.compare(await file.dense('x').bytes(), values)).toBe(0)
  })

  it('a tensor whose first read fails is read again', async () => {
    let loads = 0
    const load = () => {
      loads += 1
      if (loads === 1) throw new Error('not yet')
      return asTensor(Uint8Array.of(1, 2), { dtype: 'uint8', shape: [2] })
    }
    const lazy = lazyTensor(load, { dtype: 'uint8', shape: [2], name: 'x', keep: false })
    const { segments } = await npz.plan([lazy])
    const [header] = segments
    if (header?.kind !== 'computed') throw new Error('the first segment is not computed')
    await expect(header.compute(undefined)).rejects.toThrow('not yet')
    expect((await header.compute(undefined)).byteLength).toBe(header.byteLength)
  })

  it('stops where a tensor has another shape than at the plan', async () => {
    const list = [named('a')]
    const { segments } = await npz.plan(list)
    list[0] = asTensor(new Uint8Array(1000), { dtype: 'uint8', shape: [1000], name: 'a' })
    expect(() => [...segments]).toThrow('Tensor 0 ("a") changed its type or shape while it was saved.')
  })

  it('stops computing a checksum when it is cancelled', async () => {
    const { segments } = await npz.plan([plain])
    const [header] = segments
    const reason = AbortSignal.abort()
    if (header?.kind !== 'computed') throw new Error('the first segment is not computed')
    await expect(header.compute(reason)).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    expect((await header.compute(undefined)).byteLength).toBe(header.byteLength)
  })

  it('takes names that no file can have, and reads them without a finding', async () => {
    const names = [
      '/model.10/Conv_output_0',
      '/',
      'a\\b',
      'C:\\x',
      'con',
      'a?b*c',
      'x\ny',
      'Größe',
      'a//b',
      './q',
      '...',
      ' ',
    ]
    const bytes = await write(names.map((name) => named(name)))
    const result = await readBytes(bytes)
    expect([...result.tensors].map(({ name }) => name)).toEqual(names)
    expect([result.findings, await checkBytes(bytes)]).toEqual([[], []])
  })

  it.each(['../x', 'a/../../x', 'a\\..\\b', 'a\0b', '\ud800', 'x'.repeat(65_533)])(
    'refuses the name %j',
    async (name) => {
      await expect(npz.plan([named(name)])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', format: 'npz' })
    },
  )

  it('refuses two tensors of one name, and types that numpy lacks', async () => {
    await expect(npz.plan([named('a'), named('a')])).rejects.toMatchObject({ code: 'ERR_DUPLICATE' })
    const packed = new StoredTensor({
      source: new MemorySource(new Uint8Array(1)),
      start: 0,
      dtype: 'int4',
      shape: [2],
      name: 'q',
    })
    await expect(npz.plan([packed])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', format: 'npz' })
  })

  function storedOf(tensor: DenseTensor): ConstructorParameters<typeof StoredTensor>[0] {
    const { source, start, dtype, shape } = tensor as StoredTensor
    return { source, start, dtype, shape, layout: tensor.storage.layout }
  }
})

it('names beyond ASCII need the UTF-8 flag', async () => {
  const flagged = zipBytes([member('é.npy', npyBytes(), { flags: 0x800 })])
  expect((await readBytes(flagged)).tensors.at(0)?.name).toBe('é')
  const bare = zipBytes([member('é.npy')])
  expect((await readBytes(bare, 'lenient')).findings).toMatchObject([
    { code: 'ERR_HEADER', severity: 'warning' },
  ])
  await expect(readBytes(bare)).rejects.toMatchObject({ code: 'ERR_HEADER' })
})

it('limits of the caller', async () => {
  const bytes = zipBytes([member('a.npy'), member('b.npy')])
  const open = (limits: object) => npz.read(new MemorySource(bytes), readOptions('lenient', limits))
  await expect(open({ tensors: 1 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'end' })
  await expect(open({ headerBytes: 101 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'end' })
  await expect(open({ headerBytes: 300 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'members[1]' })
  await expect(open({ totalBytes: 15 })).rejects.toMatchObject({ code: 'ERR_LIMIT', path: 'members[1]' })
  expect((await open({ tensors: 2, totalBytes: 16, headerBytes: 500 })).tensors.length).toBe(2)
})
