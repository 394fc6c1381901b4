/** Tensor types: the element type of a call determines the typed array of its result. Checked by the compiler. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  affine,
  asLayout,
  asTensor,
  cast,
  type DenseTensor,
  DTYPES,
  type Dtype,
  dequantize,
  type Float16Numbers,
  isDtype,
  lazyTensor,
  materialize,
  type OpenFile,
  onDevice,
  quantize,
  reorder,
  type SparseTensor,
  type StringTensor,
  slice,
  sparseFromDense,
  type Tensor,
  type TypedArray,
  type TypedArrayByDtype,
  tensor,
  transpose,
} from '../../lib/index.js'

const floats = tensor(new Float32Array(4), { shape: [2, 2] })

/** Never called; the compiler checks its types. */
async function typesOf(file: OpenFile, any: Tensor, dtype: Dtype): Promise<void> {
  expectTypeOf(floats).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(tensor(new BigInt64Array(1))).toEqualTypeOf<DenseTensor<'int64'>>()
  expectTypeOf(tensor(new Uint8ClampedArray(1))).toEqualTypeOf<DenseTensor<'uint8'>>()
  expectTypeOf(tensor(new Uint8Array(1), { dtype: 'int4' })).toEqualTypeOf<DenseTensor<'int4'>>()
  expectTypeOf(tensor([1, 2], { dtype: 'bf16' })).toEqualTypeOf<DenseTensor<'bfloat16'>>()
  expectTypeOf(tensor([1, 2], { dtype })).toEqualTypeOf<DenseTensor>()
  expectTypeOf(tensor(['a'], { dtype: 'string' })).toEqualTypeOf<StringTensor>()
  expectTypeOf(asTensor(new Int16Array(1), { name: 'x' })).toEqualTypeOf<DenseTensor<'int16'>>()
  expectTypeOf(asTensor(new Uint16Array(1), { dtype: 'F16' })).toEqualTypeOf<DenseTensor<'float16'>>()
  expectTypeOf(asTensor(floats)).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(lazyTensor(() => floats, { dtype: 'u8', shape: [4] })).toEqualTypeOf<DenseTensor<'uint8'>>()

  expectTypeOf(cast(any, 'half')).toEqualTypeOf<DenseTensor<'float16'>>()
  expectTypeOf(cast(any, dtype)).toEqualTypeOf<DenseTensor>()
  expectTypeOf(quantize(floats, 'i8', { scale: 1 })).toEqualTypeOf<DenseTensor<'int8'>>()
  expectTypeOf(dequantize(any, { scale: 1 })).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(dequantize(any, { scale: 1, dtype: 'float16' })).toEqualTypeOf<DenseTensor<'float16'>>()
  expectTypeOf(affine(any, { scale: 2 })).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(affine(any, { scale: 2, dtype: 'bf16' })).toEqualTypeOf<DenseTensor<'bfloat16'>>()
  expectTypeOf(reorder(floats, 'column_major')).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(reorder(any, 'bfyx')).toEqualTypeOf<DenseTensor>()
  expectTypeOf(slice(floats, [[0, 1]])).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(asLayout(floats, 'bf', [2, 2])).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(transpose(floats, [1, 0])).toEqualTypeOf<DenseTensor<'float32'>>()
  if (isDtype(any, 'half')) expectTypeOf(any).toExtend<DenseTensor<'float16'>>()
  if (isDtype(any, 'int64')) expectTypeOf(await any.toTypedArray()).toEqualTypeOf<BigInt64Array>()
  expectTypeOf(onDevice(floats, 'opencl')).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(await materialize(floats)).toEqualTypeOf<DenseTensor<'float32'>>()
  expectTypeOf(await sparseFromDense(floats)).toEqualTypeOf<SparseTensor<'float32'>>()
  expectTypeOf(file.dense(0)).toEqualTypeOf<DenseTensor>()

  expectTypeOf(await floats.toTypedArray()).toEqualTypeOf<Float32Array>()
  expectTypeOf(await cast(any, 'f16').toTypedArray()).toEqualTypeOf<Float32Array>()
  expectTypeOf(await file.dense(0).toTypedArray()).toEqualTypeOf<TypedArray>()
  const given = await cast(any, 'float16').toTypedArray({ float16Array: true })
  expectTypeOf(given).toEqualTypeOf<Float32Array | Float16Numbers>()
  expectTypeOf(await floats.toTypedArray({})).toEqualTypeOf<Float32Array>()

  // A tensor of one element type is assignable to a tensor of any.
  expectTypeOf(floats).toExtend<DenseTensor>()
  expectTypeOf(await sparseFromDense(floats)).toExtend<Tensor>()

  // @ts-expect-error: a wrong element type is a compile error.
  cast(any, 'float17')
  // @ts-expect-error: a tensor of another element type is a compile error.
  const codes: DenseTensor<'int8'> = floats
  // @ts-expect-error: slice keeps the rank, so an index is not a range.
  slice(codes, [1])
}

/** One array per element type, which the compiler compares with the result of toTypedArray. */
const ARRAYS: { [D in Exclude<Dtype, 'string'>]: new (...args: never[]) => TypedArrayByDtype[D] } = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Float32Array,
  bfloat16: Float32Array,
  float8_e4m3fn: Float32Array,
  float8_e4m3fnuz: Float32Array,
  float8_e5m2: Float32Array,
  float8_e5m2fnuz: Float32Array,
  float8_e8m0fnu: Float32Array,
  float6_e2m3fn: Float32Array,
  float6_e3m2fn: Float32Array,
  float4_e2m1fn: Float32Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  int4: Int8Array,
  int2: Int8Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  uint4: Uint8Array,
  uint2: Uint8Array,
  bool: Uint8Array,
  complex64: Float32Array,
  complex128: Float64Array,
}

describe('the types of tensors', () => {
  it('hold for the typed array of every element type', async () => {
    expect(typesOf).toBeTypeOf('function')
    expect(Object.keys(ARRAYS).sort()).toEqual(
      Object.keys(DTYPES)
        .filter((dtype) => dtype !== 'string')
        .sort(),
    )
    for (const [dtype, type] of Object.entries(ARRAYS)) {
      for (const elements of [8, 8192]) {
        const { bits } = DTYPES[dtype as Dtype]
        const bytes = new Uint8Array((elements * bits) / 8)
        const stored = asTensor(bytes, { dtype: dtype as Dtype, shape: [elements] })
        expect(await stored.toTypedArray()).toBeInstanceOf(type)
      }
    }
  })
})
