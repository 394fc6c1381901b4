import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import type { Dtype } from '../../../lib/dtype/dtypes.js'
import type { Level } from '../../../lib/errors.js'
import { FileHead } from '../../../lib/formats/file_head.js'
import type { Limits } from '../../../lib/formats/format.js'
import { npyEntry } from '../../../lib/formats/npy/entry.js'
import { npy, npz } from '../../../lib/formats/npy/index.js'
import { asLayout } from '../../../lib/tensor/as_layout.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import { tensor as makeTensor } from '../../../lib/tensor/from_values.js'
import { reorder } from '../../../lib/tensor/reorder.js'
import { sparseFromDense } from '../../../lib/tensor/sparse.js'
import type { DenseTensor, StringTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { bytesOf, bytesOfPlan, npyBytes, readOptions } from './npy_bytes.js'

async function readTensor(bytes: Uint8Array, level: Level = 'strict', limits: Limits = {}): Promise<Tensor> {
  const { tensors, findings } = await npy.read(new MemorySource(bytes), readOptions(level, limits))
  expect(tensors.length).toBe(1)
  if (level === 'strict') expect(findings).toEqual([])
  return tensors.at(0)!
}

const readDense = async (bytes: Uint8Array): Promise<DenseTensor> => (await readTensor(bytes)) as DenseTensor
const readStrings = async (bytes: Uint8Array): Promise<StringTensor> =>
  (await readTensor(bytes)) as StringTensor
const checkBytes = (bytes: Uint8Array, level: Level = 'strict') =>
  npy.check(new MemorySource(bytes), readOptions(level))
const write = async (tensor: Tensor): Promise<Uint8Array> => bytesOfPlan(await npy.plan([tensor]))
const headerOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.subarray(10)).toString('latin1').split('}')[0]!

function stored(dtype: Dtype, shape: number[], bytes: Uint8Array, more: object = {}): StoredTensor {
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, ...more })
}

/** `bytes` with each group of `unit` bytes reversed. */
function swapped(array: ArrayBufferView, unit: number): Uint8Array {
  const bytes = bytesOf(array).slice()
  for (let at = 0; at < bytes.length; at += unit) bytes.subarray(at, at + unit).reverse()
  return bytes
}

describe('numbers', () => {
  const cases: [string, Dtype, ArrayBufferView, number][] = [
    ['b1', 'bool', Uint8Array.of(1, 0), 1],
    ['i1', 'int8', Int8Array.of(-1, 2), 1],
    ['i2', 'int16', Int16Array.of(-1, 258), 2],
    ['i4', 'int32', Int32Array.of(-1, 66051), 4],
    ['i8', 'int64', BigInt64Array.of(-1n, 2n ** 60n + 3n), 8],
    ['u1', 'uint8', Uint8Array.of(255, 2), 1],
    ['u2', 'uint16', Uint16Array.of(65535, 258), 2],
    ['u4', 'uint32', Uint32Array.of(2 ** 32 - 1, 66051), 4],
    ['u8', 'uint64', BigUint64Array.of(2n ** 64n - 1n, 5n), 8],
    ['f2', 'float16', Uint16Array.of(0x3c00, 0xc000), 2],
    ['f4', 'float32', Float32Array.of(1.5, -2), 4],
    ['f8', 'float64', Float64Array.of(1.5, -2), 8],
    ['c8', 'complex64', Float32Array.of(1, 2, 3, 4), 4],
    ['c16', 'complex128', Float64Array.of(1, 2, 3, 4), 8],
  ]

  it.each(cases)('%s little-endian, big-endian and written again', async (code, dtype, data, unit) => {
    const order = code.endsWith('1') && unit === 1 ? '|' : '<'
    const little = npyBytes({ descr: `${order}${code}`, data })
    const tensor = await readDense(little)
    expect(tensor).toMatchObject({ kind: 'dense', name: 'arr_0', dtype, shape: [2] })
    expect(tensor.storage.layout).toBe('row_major')
    expect(await tensor.bytes()).toEqual(bytesOf(data))
    expect(await checkBytes(little)).toEqual([])
    const big = await readDense(npyBytes({ descr: `>${code}`, data: swapped(data, unit) }))
    expect(await big.bytes()).toEqual(bytesOf(data))
    expect(big.bytesSync()).toEqual(bytesOf(data))
    const again = await write(big)
    expect(headerOf(again)).toContain(`'descr': '${order}${code}'`)
    expect(await (await readDense(again)).bytes()).toEqual(bytesOf(data))
  })

  it('any range of big-endian data is correct', async () => {
    const data = Float64Array.from({ length: 9 }, (_, i) => i + 0.5)
    const tensor = await readDense(npyBytes({ descr: '>f8', shape: [9], data: swapped(data, 8) }))
    const expected = bytesOf(data)
    for (let start = 0; start <= 72; start += 5) {
      for (let end = start; end <= 72; end += 3) {
        expect(await tensor.bytes({ start, end })).toEqual(expected.slice(start, end))
      }
    }
    expect(tensor.at(8)).toBe(8.5)
    await expect(tensor.bytes({ start: 8, end: 73 })).rejects.toMatchObject({ code: 'ERR_RANGE' })
  })

  it('a range of big-endian data reads only its bytes', async () => {
    const bytes = npyBytes({ descr: '>i4', shape: [1000], data: new Int32Array(1000) })
    const below = new MemorySource(bytes)
    const reads: number[] = []
    const source: ByteSource = {
      byteLength: bytes.length,
      read: async (start, end) => {
        reads.push(end - start)
        return below.readSync(start, end)
      },
    }
    const { tensors } = await npy.read(source, readOptions('strict'))
    reads.length = 0
    await (tensors.at(0) as DenseTensor).bytes({ start: 5, end: 10 })
    expect(reads).toEqual([8])
    expect(() => (tensors.at(0) as DenseTensor).bytesSync()).toThrow(
      expect.objectContaining({ code: 'ERR_ASYNC_ONLY' }),
    )
  })

  it('types without a byte order are read as little-endian, with a finding', async () => {
    for (const descr of ['=i4', '|i4', 'i4']) {
      const { tensors, findings } = await npy.read(
        new MemorySource(npyBytes({ descr })),
        readOptions('strict'),
      )
      expect(await (tensors.at(0) as DenseTensor).toTypedArray()).toEqual(Int32Array.of(1, 2))
      expect(findings).toMatchObject([{ code: 'ERR_DTYPE', severity: 'warning', path: 'descr' }])
    }
    for (const descr of ['?', '|b1', '<b1', '>u1']) {
      await readTensor(npyBytes({ descr, data: Uint8Array.of(1, 0) }))
    }
  })

  it.each(['<M8[ns]', '<m8[25s]', '<M8', '<M8[generic]'])('%s is int64 and keeps its name', async (descr) => {
    const data = BigInt64Array.of(1n, -(2n ** 63n))
    const tensor = await readDense(npyBytes({ descr: descr.replace('<', '>'), data: swapped(data, 8) }))
    expect(tensor.dtype).toBe('int64')
    expect(tensor.metadata.get('numpy.descr')).toBe(descr)
    expect(await tensor.toTypedArray()).toEqual(data)
    expect(headerOf(await write(tensor))).toContain(`'${descr}'`)
  })

  it('raw items of 1, 2, 4 and 8 bytes are unsigned numbers and keep their name', async () => {
    for (const [size, dtype] of [
      [1, 'uint8'],
      [2, 'uint16'],
      [4, 'uint32'],
      [8, 'uint64'],
    ] as const) {
      const data = Uint8Array.from({ length: 2 * size }, (_, i) => i)
      for (const order of ['|', '<', '>']) {
        const tensor = await readDense(npyBytes({ descr: `${order}V${size}`, data }))
        expect(tensor.dtype).toBe(dtype)
        expect(await tensor.bytes()).toEqual(data)
        expect(headerOf(await write(tensor))).toContain(`'|V${size}'`)
      }
    }
  })

  it('metadata that do not fit the type are ignored on writing', async () => {
    const metadata = new Map([['numpy.descr', '<M8[ns]']])
    const tensor = stored('float32', [1], new Uint8Array(4), { metadata })
    expect(headerOf(await write(tensor))).toContain("'<f4'")
    const nonsense = stored('int64', [1], new Uint8Array(8), { metadata: new Map([['numpy.descr', "', 1"]]) })
    expect(headerOf(await write(nonsense))).toContain("'<i8'")
  })
})

describe('shapes and orders', () => {
  const data = Int32Array.from({ length: 24 }, (_, i) => i)

  it('a scalar has no axis and one element', async () => {
    const bytes = npyBytes({ shape: [], data: Int32Array.of(7) })
    const tensor = await readDense(bytes)
    expect(tensor.shape).toEqual([])
    expect(tensor.at()).toBe(7)
    expect(await readDense(await write(tensor))).toMatchObject({ shape: [], size: 1 })
  })

  it.each([[[0]], [[2, 0, 3]], [[0, 2 ** 40]]])('an empty array of shape %j', async (shape) => {
    for (const fortran of [false, true]) {
      const bytes = npyBytes({ shape, fortran, data: new Int32Array(0) })
      const tensor = await readDense(bytes)
      expect(tensor.size).toBe(0)
      expect(await tensor.toTypedArray()).toEqual(new Int32Array(0))
      expect(headerOf(await write(tensor))).toContain("'fortran_order': False")
    }
  })

  it('Fortran order is column-major, of any rank, and is written without moving a byte', async () => {
    const tensor = await readDense(npyBytes({ shape: [2, 3, 4], fortran: true, data }))
    expect(tensor.storage.layout).toBe('column_major')
    expect(await tensor.bytes()).toEqual(bytesOf(data))
    const values = await tensor.toTypedArray()
    for (let i = 0; i < 2; i++) {
      for (let j = 0; j < 3; j++) {
        for (let k = 0; k < 4; k++) {
          expect(tensor.at(i, j, k)).toBe(i + 2 * j + 6 * k)
          expect(values[12 * i + 4 * j + k]).toBe(i + 2 * j + 6 * k)
        }
      }
    }
    const again = await write(tensor)
    expect(headerOf(again)).toContain("'fortran_order': True, 'shape': (2, 3, 4)")
    expect(again.subarray(-96)).toEqual(bytesOf(data))
    const five = await readDense(npyBytes({ shape: [2, 1, 3, 2, 2], fortran: true, data }))
    expect(five.at(1, 0, 2, 1, 1)).toBe(23)
  })

  it('big-endian Fortran order', async () => {
    const bytes = npyBytes({ descr: '>i4', shape: [4, 6], fortran: true, data: swapped(data, 4) })
    const tensor = await readDense(bytes)
    expect(tensor.at(3, 1)).toBe(7)
    expect((await tensor.toTypedArray()).slice(0, 3)).toEqual(Int32Array.of(0, 4, 8))
  })

  it('fewer than two axes, and arrays that are in both orders, are in C order', async () => {
    for (const shape of [[], [1]]) {
      const tensor = await readDense(npyBytes({ shape, fortran: true, data: Int32Array.of(3) }))
      expect(tensor.storage.layout).toBe('row_major')
    }
    const column = await readDense(npyBytes({ shape: [2, 1], fortran: true, data: Int32Array.of(1, 2) }))
    expect(headerOf(await write(column))).toContain("'fortran_order': False, 'shape': (2, 1)")
  })

  it('a blocked tensor is stored under the shape of its digits, and asLayout takes it back', async () => {
    const shape = [1, 19, 2, 3]
    const plain = makeTensor(
      Float32Array.from({ length: 114 }, (_, i) => i),
      { shape },
    )
    const blocked = reorder(plain, 'b_fs_yx_fsv16')
    const tensor = await readDense(await write(blocked))
    expect(tensor.shape).toEqual([1, 2, 2, 3, 16])
    const back = reorder(asLayout(tensor, 'b_fs_yx_fsv16', shape), 'row_major')
    expect(await back.toTypedArray()).toEqual(await plain.toTypedArray())
    const padded = stored('int8', [2, 3], new Uint8Array(15), { upper: [1, 2] })
    expect((await readDense(await write(padded))).shape).toEqual([3, 5])
  })

  it('64 axes are the maximum', async () => {
    const shape = Array<number>(64).fill(1)
    const tensor = await readDense(npyBytes({ shape, data: Int32Array.of(1) }))
    expect((await write(tensor)).length % 64).toBe(4)
    const more = stored('int32', [...shape, 1], new Uint8Array(4))
    await expect(npy.plan([more])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })

  it('refuses an empty tensor whose other axes numpy finds too large', async () => {
    const shapeOf = (last: number): number[] => [0, 2 ** 30, 2 ** 30, last]
    // 2^63 bytes are refused, half of them not.
    const written = await write(stored('int32', shapeOf(1), new Uint8Array(0)))
    expect((await readDense(written)).shape).toEqual(shapeOf(1))
    await expect(npy.plan([stored('int32', shapeOf(2), new Uint8Array(0))])).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining(String(2n ** 63n)),
    })
  })
})

describe('strings', () => {
  const utf32 = (...texts: string[]): Uint32Array =>
    Uint32Array.from(texts.flatMap((text) => [...text].map((character) => character.codePointAt(0)!)))

  it('fixed-length bytes lose trailing zeros and no others', async () => {
    const data = Buffer.from('ab\0a\0b\0\0\0', 'latin1')
    const bytes = npyBytes({ descr: '|S3', shape: [3], data })
    const tensor = await readStrings(bytes)
    expect(tensor).toMatchObject({ kind: 'string', dtype: 'string', shape: [3], size: 3 })
    expect(await tensor.strings()).toEqual(['ab', 'a\0b', ''])
    expect((await tensor.rawStrings()).map((raw) => [...raw])).toEqual([[97, 98], [97, 0, 98], []])
    expect((await write(tensor)).subarray(-9)).toEqual(new Uint8Array(data))
  })

  it('text is read in both byte orders and in Fortran order', async () => {
    const data = utf32('a\0', 'é\0', 'b\0', '𝄞x')
    for (const [order, bytes] of [
      ['<', bytesOf(data)],
      ['>', swapped(data, 4)],
    ] as const) {
      const tensor = await readStrings(
        npyBytes({ descr: `${order}U2`, shape: [2, 2], fortran: true, data: bytes }),
      )
      expect(await tensor.strings()).toEqual(['a', 'b', 'é', '𝄞x'])
      expect((await tensor.rawStrings()).map((raw) => raw.length)).toEqual([1, 1, 2, 5])
      const again = await readStrings(await write(tensor))
      expect(again.metadata.get('numpy.descr')).toBe('<U2')
      expect(await again.strings()).toEqual(['a', 'b', 'é', '𝄞x'])
    }
  })

  it('strings of other formats are written as text where valid, else as bytes', async () => {
    const strings = (...raw: Uint8Array[]): StringTensor => ({
      name: 's',
      kind: 'string',
      dtype: 'string',
      shape: [raw.length],
      size: raw.length,
      sizeExact: BigInt(raw.length),
      hasData: true,
      metadata: new Map(),
      strings: async () => [],
      rawStrings: async () => raw,
    })
    expect(headerOf(await write(strings(Buffer.from('ä'), Buffer.from('bcd'))))).toContain("'<U3'")
    expect(headerOf(await write(strings(Uint8Array.of(0xff, 1))))).toContain("'|S2'")
    expect(headerOf(await write(strings()))).toContain("'<U1'")
    await expect(npy.plan([strings(Uint8Array.of(65, 0))])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const edges = [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xfeff, 0xffff, 0x10000, 0x10ffff]
    const text = String.fromCodePoint(...edges)
    const written = await write(strings(Buffer.from(text), Buffer.from(`\ufeff${text[0]}`)))
    expect(headerOf(written)).toContain(`'<U${edges.length}'`)
    const again = await readStrings(written)
    expect(await again.strings()).toEqual([text, `\ufeff${text[0]}`])
    const lying = { ...strings(Uint8Array.of(65)), size: 2 }
    await expect(npy.plan([lying])).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('invalid text is an error when it is read, and a finding of a check', async () => {
    const text = await readStrings(npyBytes({ descr: '<U1', shape: [2], data: Uint32Array.of(65, 0x110000) }))
    await expect(text.strings()).rejects.toMatchObject({ code: 'ERR_DTYPE' })
    const raw = await readStrings(npyBytes({ descr: '|S1', shape: [1], data: Uint8Array.of(0xff) }))
    await expect(raw.strings()).rejects.toMatchObject({ code: 'ERR_DTYPE' })
    expect(await raw.rawStrings()).toEqual([Uint8Array.of(0xff)])
  })
})

describe('the header that numpy writes', () => {
  /** Written by numpy 2.4: `np.save` of an array of that type and shape. */
  const cases: [Dtype, number[], string, number][] = [
    ['float32', [2, 3], "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 128],
    ['bool', [2], "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", 128],
    ['uint8', [], "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 128],
    [
      'int64',
      [1, 2, 3, 4, 5, 6, 7],
      "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2, 3, 4, 5, 6, 7), }",
      128,
    ],
    ['bfloat16', [2, 3], "{'descr': '<V2', 'fortran_order': False, 'shape': (2, 3), }", 128],
  ]

  it.each(cases)('%s %j', async (dtype, shape, text, headerBytes) => {
    const elements = shape.reduce((product, extent) => product * extent, 1)
    const probe = makeTensor(new Uint8Array(elements * 8), { shape: [elements * 8] })
    const bytes = await write(stored(dtype, shape, await probe.bytes()))
    expect([...bytes.subarray(0, 10)]).toEqual([0x93, 78, 85, 77, 80, 89, 1, 0, headerBytes - 10, 0])
    const header = Buffer.from(bytes.subarray(10, headerBytes)).toString('latin1')
    expect(header).toBe(`${text.padEnd(headerBytes - 11)}\n`)
  })

  it('adds 64 bytes of padding to an aligned header, as numpy does', async () => {
    for (let digits = 1; digits <= 12; digits++) {
      const shape = [1, ...Array<number>(digits).fill(1)]
      const bytes = await write(stored('int8', shape, new Uint8Array(1)))
      const literal = `{'descr': '|i1', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`
      const used = 10 + literal.length + 20 + 1
      expect(bytes.length - 1).toBe(used + 64 - (used % 64))
    }
  })
})

describe('versions and literals', () => {
  it('versions 1.0, 2.0 and 3.0', async () => {
    for (const version of [
      [1, 0],
      [2, 0],
      [3, 0],
    ] as const) {
      const tensor = await readDense(npyBytes({ version }))
      expect(await tensor.toTypedArray()).toEqual(Int32Array.of(1, 2))
    }
  })

  it('keys in any order, either quote, escapes, spaces, no last comma', async () => {
    const texts = [
      '{"shape": (2,), "descr": "<i4", "fortran_order": False}',
      "{ 'shape' :( 2 , ) ,\t'fortran_order':False,'descr':'\\x3ci\\u0034',}\n",
    ]
    for (const text of texts) await readTensor(npyBytes({ text }))
  })

  it('the suffix L of Python 2 is a finding in lenient', async () => {
    const bytes = npyBytes({ text: "{'descr': '<i4', 'fortran_order': False, 'shape': (2L,), }" })
    const { findings } = await npy.read(new MemorySource(bytes), readOptions('lenient'))
    expect(findings).toMatchObject([{ code: 'ERR_HEADER', severity: 'warning', path: 'shape' }])
    await expect(readTensor(bytes)).rejects.toMatchObject({ code: 'ERR_HEADER', format: 'npy' })
  })

  it('bytes after the data are a finding in lenient', async () => {
    const bytes = npyBytes({ data: Int32Array.of(1, 2, 3) })
    const tensor = (await readTensor(bytes, 'lenient')) as DenseTensor
    expect(await tensor.toTypedArray()).toEqual(Int32Array.of(1, 2))
    await expect(readTensor(bytes)).rejects.toMatchObject({ code: 'ERR_GAP', path: 'data', offset: 136 })
  })

  it('a check reports bools other than 0 and 1, other alignments and a missing line feed', async () => {
    const bools = npyBytes({ descr: '|b1', shape: [3], data: Uint8Array.of(1, 0, 2) })
    expect(await checkBytes(bools)).toMatchObject([
      { code: 'ERR_DTYPE', severity: 'error', path: 'data', offset: 130 },
    ])
    expect(await checkBytes(bools, 'lenient')).toMatchObject([{ code: 'ERR_DTYPE', severity: 'warning' }])
    expect(await checkBytes(npyBytes({ ending: ' ' }))).toMatchObject([
      { code: 'ERR_MISALIGNED', severity: 'warning' },
      { code: 'ERR_HEADER', severity: 'warning' },
    ])
  })

  it('a check finds a bad code point across windows, once', async () => {
    const codes = new Uint32Array(600_000).fill(65)
    codes[500_001] = 0xd7ff
    codes[500_002] = 0x110000
    codes[500_003] = 0xffffffff
    const bytes = npyBytes({ descr: '<U2', shape: [300_000], data: codes, ending: '\n' })
    const findings = await checkBytes(bytes)
    expect(findings.filter(({ code }) => code === 'ERR_DTYPE')).toMatchObject([
      { message: expect.stringContaining('Item 250001 ') },
    ])
  })

  it('limits of the caller', async () => {
    const bytes = npyBytes()
    await expect(readTensor(bytes, 'lenient', { tensors: 0 })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await expect(readTensor(bytes, 'lenient', { headerBytes: 100 })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
    })
    await expect(readTensor(bytes, 'lenient', { totalBytes: 7 })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    const long = npyBytes({ ending: `${' '.repeat(20_000)}\n` })
    await expect(readTensor(long)).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await readTensor(long, 'strict', { headerBytes: 30_000, totalBytes: 8, tensors: 1 })
  })
})

describe('npy refuses', () => {
  it('none or several tensors', async () => {
    const one = stored('int8', [1], new Uint8Array(1))
    for (const tensors of [[], [one, one]]) {
      await expect(npy.plan(tensors)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED', format: 'npy' })
    }
  })

  it.each(['int4', 'uint4', 'int2', 'uint2', 'float4_e2m1fn'] as const)('%s', async (dtype) => {
    await expect(
      npy.plan([stored(dtype, [8], new Uint8Array(4).slice(0, dtype.endsWith('2') ? 2 : 4))]),
    ).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringContaining('bits'),
    })
  })

  it('small floats are written as raw items', async () => {
    for (const dtype of ['float8_e4m3fn', 'float8_e5m2', 'float8_e8m0fnu'] as const) {
      expect(headerOf(await write(stored(dtype, [2], new Uint8Array(2))))).toContain("'|V1'")
    }
  })

  it('sparse tensors, tensors without data, and objects that are not tensors', async () => {
    const sparse = sparseFromDense(makeTensor(Float32Array.of(0, 1)))
    await expect(npy.plan([await sparse])).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const dense = makeTensor(Float32Array.of(1))
    const { storage, shape } = dense
    const methods = { bytes: dense.bytes, bytesSync: dense.bytesSync }
    const absent = { name: 'x', kind: 'dense', dtype: 'float32', shape, storage, hasData: false, ...methods }
    await expect(npy.plan([absent as unknown as Tensor])).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    for (const nothing of [undefined, 7, {}]) {
      await expect(npy.plan([nothing as unknown as Tensor])).rejects.toMatchObject({
        code: expect.stringMatching(/^ERR_(ARGUMENT|UNSUPPORTED)$/),
      })
      await expect(npz.plan([nothing as unknown as Tensor])).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    }
  })
})

it('is detected by its magic number', async () => {
  const detect = async (bytes: Uint8Array) => npyEntry.detect(await FileHead.read(new MemorySource(bytes)))
  expect(await detect(npyBytes())).toBe(true)
  expect(await detect(new Uint8Array(5))).toBe(false)
  expect(await detect(new Uint8Array(64))).toBe(false)
})
