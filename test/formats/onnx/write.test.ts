/** ONNX files written from tensors: read back, and compared byte for byte with files of the Python packages. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { DTYPES, type Dtype } from '../../../lib/dtype/dtypes.js'
import { packedByteLength } from '../../../lib/dtype/packed_codes.js'
import { asLayout, asTensor, open, reorder, serialize, sparseFromDense, tensor } from '../../../lib/index.js'
import { onnx } from '../../../lib/models/onnx/index.js'
import { StoredTensor } from '../../../lib/tensor/dense.js'
import type { DenseTensor, SparseTensor, StringTensor, Tensor } from '../../../lib/tensor/tensor.js'
import { bytesOfPlan, field, int, join, modelProto, raw, readOptions, tensorProto } from './onnx_bytes.js'

const dtypes = Object.keys(DTYPES).filter((name) => name !== 'string') as Exclude<Dtype, 'string'>[]

function filled(dtype: Dtype, shape: readonly number[], name: string): DenseTensor {
  const count = shape.reduce((size, extent) => size * extent, 1)
  const bytes = Uint8Array.from({ length: packedByteLength(dtype, count) }, (_, at) => at % 2)
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, name })
}

const reread = async (tensors: readonly Tensor[], path?: string) =>
  onnx.read(
    new MemorySource(await bytesOfPlan(await onnx.plan(tensors, {}, path === undefined ? {} : { path }))),
    readOptions(),
  )

describe.each(dtypes)('%s', (dtype) => {
  it.each([[[]], [[0]], [[3, 5]], [[2, 1, 3]]])(
    'of shape %j round-trips through a model and a bare tensor',
    async (shape) => {
      const written = filled(dtype, shape, 'w')
      for (const path of ['m.onnx', 't.pb']) {
        const { tensors, findings } = await reread([written], path)
        expect(findings).toEqual([])
        const read = tensors.get('w') as DenseTensor
        expect([read.dtype, read.shape]).toEqual([dtype, shape])
        expect(await read.bytes()).toEqual(await written.bytes())
      }
    },
  )
})

it('writes a bare tensor field by field as the Python package onnx does', async () => {
  const written = tensor([1, 2, 3], { dtype: 'uint8', name: 'x' })
  const plan = await onnx.plan([written], {}, { path: 'x.pb' })
  const expected = join(int(1, 3), int(2, 2), field(8, 'x'), raw(1, 2, 3))
  expect(await bytesOfPlan(plan)).toEqual(expected)
})

it('writes a model of initializers with versions, graph and opset', async () => {
  const bytes = await serialize([tensor([1, 2], { dtype: 'uint8', name: 'x' })], { format: 'onnx' })
  const initializer = tensorProto({ dims: [2], type: 2, name: 'x', values: new Uint8Array(0) })
  const graph = join(field(2, 'tensors'), field(5, join(initializer, raw(1, 2))))
  expect(bytes).toEqual(join(int(1, 8), field(2, 'tilework'), field(7, graph), field(8, int(2, 17))))
})

it.each([
  ['float32', 8, 17],
  ['float8_e5m2', 9, 19],
  ['int4', 10, 21],
  ['float4_e2m1fn', 11, 23],
  ['float8_e8m0fnu', 12, 24],
  ['uint2', 13, 25],
  ['float6_e3m2fn', 14, 28],
] as const)('gives %s IR version %i and opset %i', async (dtype, ir, opset) => {
  const bytes = await bytesOfPlan(await onnx.plan([filled(dtype, [2], 'w')]))
  expect([...bytes.subarray(0, 2)]).toEqual([8, ir])
  expect([...bytes.subarray(-2)]).toEqual([16, opset])
})

it('keeps docs, metadata, strings and sparse tensors', async () => {
  const about = join(field(12, 'doc'), field(16, join(field(1, 'k'), field(2, 'v'))))
  const strings = join(
    tensorProto({ dims: [2], type: 8, name: 's', values: join(field(6, 'ä'), field(6, [255])) }),
    about,
  )
  const source = new MemorySource(modelProto({ initializers: [strings] }))
  const { tensors } = await onnx.read(source, readOptions())
  const sparse = await sparseFromDense(
    tensor(
      [
        [0, 0, 5],
        [7, 0, 0],
      ],
      { dtype: 'int16', name: 'c' },
    ),
  )
  const again = (await reread([tensors.get('s')!, sparse])).tensors
  const text = again.get('s') as StringTensor
  expect(await text.rawStrings()).toEqual([Uint8Array.of(0xc3, 0xa4), Uint8Array.of(255)])
  expect([text.doc, [...text.metadata]]).toEqual(['doc', [['k', 'v']]])
  const coo = again.get('c') as SparseTensor
  expect([coo.kind, coo.shape, coo.entryCount]).toEqual(['sparse', [2, 3], 2])
  expect([...(await coo.indices())]).toEqual([0n, 2n, 1n, 0n])
  expect(await coo.values()).toEqual(Uint8Array.of(5, 0, 7, 0))
})

it('stores a blocked tensor under the shape of its digits', async () => {
  const plain = asTensor(
    Float32Array.from({ length: 2 * 3 * 2 * 2 }, (_, at) => at),
    { shape: [2, 3, 2, 2], name: 'w' },
  )
  const { tensors } = await reread([reorder(plain, 'b_fs_yx_fsv16')])
  const stored = tensors.get('w') as DenseTensor
  expect(stored.shape).toEqual([2, 1, 2, 2, 16])
  const back = reorder(asLayout(stored, 'b_fs_yx_fsv16', [2, 3, 2, 2]), 'row_major')
  expect(await back.toTypedArray()).toEqual(await plain.toTypedArray())
})

it('names unnamed tensors by index and skips taken names', async () => {
  const named = (name: string) => tensor([1], { dtype: 'int8', name })
  const { tensors } = await reread([named(''), named('tensor_0'), named('')])
  expect([...tensors].map(({ name }) => name)).toEqual(['tensor_0_', 'tensor_0', 'tensor_2'])
})

it.each([
  [
    'two tensors as a bare tensor',
    [filled('int8', [1], 'a'), filled('int8', [1], 'b')],
    't.pb',
    'ERR_UNSUPPORTED',
  ],
  ['no tensor as a bare tensor', [], 't.pb', 'ERR_UNSUPPORTED'],
  [
    'two tensors of the same name',
    [filled('int8', [1], 'a'), filled('int8', [1], 'a')],
    'm.onnx',
    'ERR_ARGUMENT',
  ],
] as const)('refuses %s', async (_, tensors, path, code) => {
  await expect(onnx.plan(tensors, {}, { path })).rejects.toMatchObject({ code, format: 'onnx' })
})

it('refuses other message types, and files beyond the protobuf limit', async () => {
  await expect(onnx.plan([], { message: 'GraphProto' as never })).rejects.toMatchObject({
    code: 'ERR_ARGUMENT',
  })
  const large = { byteLength: 2 ** 31, read: async () => new Uint8Array(0) }
  const huge = new StoredTensor({ source: large, start: 0, dtype: 'uint8', shape: [2 ** 31], name: 'w' })
  await expect(onnx.plan([huge])).rejects.toMatchObject({ code: 'ERR_LIMIT' })
})

it('writes one tensor as a model or as a bare message, as the option says', async () => {
  const one = filled('int8', [2], 'w')
  const bare = await bytesOfPlan(await onnx.plan([one], { message: 'TensorProto' }, { path: 'm.onnx' }))
  expect([...bare.subarray(0, 2)]).toEqual([8, 2])
  const model = await bytesOfPlan(await onnx.plan([one], { message: 'ModelProto' }, { path: 't.pb' }))
  expect([...model.subarray(0, 2)]).toEqual([8, 8])
})

it.each(['int4', 'uint2', 'float4_e2m1fn', 'float6_e2m3fn'] as const)(
  'writes sparse %s and reads it back',
  async (dtype) => {
    const dense = tensor(
      [
        [0, 1, 0, 0, 1],
        [1, 0, 0, 1, 0],
      ],
      { dtype, name: 's' },
    )
    using file = await open(await serialize([await sparseFromDense(dense)], { format: 'onnx' }), {
      level: 'strict',
    })
    const read = file.sparse('s')
    expect([read.dtype, read.entryCount]).toEqual([dtype, 4])
    expect(await (await read.toDense({ maxBytes: 8 })).bytes()).toEqual(await dense.bytes())
  },
)
