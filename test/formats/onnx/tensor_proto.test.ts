/** encodeTensorProto and decodeTensorProto, for every storage. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { DTYPES, type Dtype } from '../../../lib/dtype/dtypes.js'
import { packedByteLength } from '../../../lib/dtype/packed_codes.js'
import { asTensor, reorder, sparseFromDense, tensor } from '../../../lib/index.js'
import { decodeTensorProto, encodeTensorProto } from '../../../lib/onnx.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import type { DenseTensor, StringTensor } from '../../../lib/tensor/tensor.js'
import { field, int, join, raw, tensorProto, varint } from './onnx_bytes.js'

const dtypes = Object.keys(DTYPES).filter((name) => name !== 'string') as Exclude<Dtype, 'string'>[]

describe.each(dtypes)('%s', (dtype) => {
  it.each([[[]], [[0, 3]], [[3, 5]]])(
    'of shape %j round-trips through raw_data and through its typed field',
    async (shape) => {
      const count = shape.reduce((size, extent) => size * extent, 1)
      const isBool = dtype === 'bool'
      const bytes = Uint8Array.from({ length: packedByteLength(dtype, count) }, (_, at) =>
        isBool ? at % 2 : 37 * at + 200,
      )
      const { bits } = DTYPES[dtype]
      if (bits < 8 && (count * bits) % 8 > 0) bytes[bytes.length - 1]! &= 2 ** ((count * bits) % 8) - 1
      const written = new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, name: 'w' })
      for (const isRaw of [true, false]) {
        const read = decodeTensorProto(await encodeTensorProto(written, { raw: isRaw })) as DenseTensor
        expect([read.name, read.dtype, read.shape]).toEqual(['w', dtype, shape])
        expect(read.bytesSync()).toEqual(bytes)
      }
    },
  )
})

it('writes the fields of a type as the Python packages do', async () => {
  const uint32 = tensor([1, 2 ** 32 - 1], { dtype: 'uint32', name: 'x' })
  const packed = field(11, join(varint(1), varint(2 ** 32 - 1)))
  expect(await encodeTensorProto(uint32, { raw: false })).toEqual(
    join(int(1, 2), int(2, 12), field(8, 'x'), packed),
  )
  const int8 = tensor([-1, 5], { dtype: 'int8', name: 'x' })
  const entries = field(5, join(varint(-1), varint(5)))
  expect(await encodeTensorProto(int8, { raw: false })).toEqual(
    join(int(1, 2), int(2, 3), entries, field(8, 'x')),
  )
  const nibbles = tensor([1, -1, 7], { dtype: 'int4' })
  expect(await encodeTensorProto(nibbles, { raw: false })).toEqual(
    join(int(1, 3), int(2, 22), field(5, join(varint(0xf1), [7]))),
  )
})

it('writes a blocked tensor in row-major order', async () => {
  const plain = asTensor(
    Float32Array.from({ length: 12 }, (_, at) => at),
    { shape: [1, 3, 2, 2] },
  )
  const read = decodeTensorProto(await encodeTensorProto(reorder(plain, 'b_fs_yx_fsv16'))) as DenseTensor
  expect([read.shape, [...(await read.toTypedArray())]]).toEqual([
    [1, 3, 2, 2],
    [...(await plain.toTypedArray())],
  ])
})

it('decodes strings, and shares the memory of raw values', async () => {
  const texts = decodeTensorProto(tensorProto({ dims: [1], type: 8, values: field(6, 'a') })) as StringTensor
  expect(await (decodeTensorProto(await encodeTensorProto(texts)) as StringTensor).strings()).toEqual(['a'])
  const message = tensorProto({ dims: [2], type: 2, values: raw(1, 2) })
  const read = decodeTensorProto(message) as DenseTensor
  expect(read.bytesSync().buffer).toBe(message.buffer)
})

it.each([
  ['bytes that are not a message', new Uint8Array([0]), 'ERR_HEADER'],
  ['no type', int(1, 1), 'ERR_DTYPE'],
  ['too few values', tensorProto({ dims: [2], type: 2, values: raw(1) }), 'ERR_TRUNCATED'],
  ['an argument that is not bytes', 'x' as never, 'ERR_ARGUMENT'],
  [
    'more axes than arguments of a call',
    tensorProto({ type: 1, values: field(1, new Uint8Array(200_000).fill(1)) }),
    'ERR_RANK',
  ],
] as const)('refuses %s', (_, message, code) => {
  expect(() => decodeTensorProto(message)).toThrow(expect.objectContaining({ code }))
})

it('has no data for external values', async () => {
  const read = decodeTensorProto(
    tensorProto({ dims: [2], type: 2, external: { location: 'w.bin' } }),
  ) as DenseTensor
  expect([read.hasData, read.shape]).toEqual([false, [2]])
})

it('refuses sparse tensors and wrong options', async () => {
  const sparse = await sparseFromDense(tensor([0, 1], { dtype: 'int8' }))
  await expect(encodeTensorProto(sparse)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  const dense = tensor([1], { dtype: 'int8' })
  await expect(encodeTensorProto(dense, { raw: 1 as never })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
})

describe('message objects of other libraries', () => {
  it.each<[string, Record<string, unknown>, string, readonly unknown[]]>([
    ['raw_data', { dims: [2], data_type: 2, raw_data: Uint8Array.of(1, 2) }, 'uint8', [1, 2]],
    ['rawData', { dims: [2n], dataType: 3, rawData: Uint8Array.of(255, 2), name: 'x' }, 'int8', [-1, 2]],
    [
      'typed fields beside empty ones',
      { dims: [2], dataType: 1, floatData: [1.5, -2], rawData: new Uint8Array(0), name: '', segment: null },
      'float32',
      [1.5, -2],
    ],
    ['longs', { dims: [{ toString: () => '2' }], dataType: 7, int64Data: [1n, -1] }, 'int64', [1n, -1n]],
    ['doubles', { dims: [], dataType: 11, doubleData: Float64Array.of(0.1) }, 'float64', [0.1]],
  ])('%s', async (_, message, dtype, values) => {
    const decoded = decodeTensorProto(message) as DenseTensor
    expect([decoded.dtype, [...(await decoded.toTypedArray())]]).toEqual([dtype, values])
  })

  it('keep metadata and strings', async () => {
    const decoded = decodeTensorProto({
      dims: [1],
      dataType: 8,
      stringData: [Uint8Array.of(97)],
      name: 'n',
      metadataProps: [{ key: 'k', value: 'v' }],
    }) as StringTensor
    expect([decoded.name, [...decoded.metadata], await decoded.strings()]).toEqual(['n', [['k', 'v']], ['a']])
  })

  it.each([
    [{ dims: [2], dataType: 1, floatData: ['1'] }],
    [{ dims: 2, dataType: 1 }],
    [{ dims: { length: 1e9 }, dataType: 1 }],
    [{ dims: [1.5], dataType: 1 }],
    [{ dims: [1], dataType: 1, rawData: 'é', metadataProps: [1] }],
    [{ dims: [1] }],
  ])('%j is refused', (message) => {
    expect(() => decodeTensorProto(message)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })
})
