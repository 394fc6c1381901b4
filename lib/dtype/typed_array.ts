/** Maps each dtype to its typed array, so that `toTypedArray` is typed by the dtype of its tensor. */
import type { Dtype } from './dtypes.js'

/**
 * The typed array that `toTypedArray` gives for each element type. Floats below 32 bits become float32 and integers below 8
 * bits become 8-bit integers, which hold all their values. A bool is 0 or 1; complex numbers are pairs, real half first.
 */
export interface TypedArrayByDtype {
  float32: Float32Array
  float64: Float64Array
  float16: Float32Array
  bfloat16: Float32Array
  float8_e4m3fn: Float32Array
  float8_e4m3fnuz: Float32Array
  float8_e5m2: Float32Array
  float8_e5m2fnuz: Float32Array
  float8_e8m0fnu: Float32Array
  float6_e2m3fn: Float32Array
  float6_e3m2fn: Float32Array
  float4_e2m1fn: Float32Array
  int8: Int8Array
  int16: Int16Array
  int32: Int32Array
  int64: BigInt64Array
  int4: Int8Array
  int2: Int8Array
  uint8: Uint8Array
  uint16: Uint16Array
  uint32: Uint32Array
  uint64: BigUint64Array
  uint4: Uint8Array
  uint2: Uint8Array
  bool: Uint8Array
  complex64: Float32Array
  complex128: Float64Array
  string: never
}

/** The return type of `toTypedArray` for a tensor of dtype `D`. */
export type TypedArrayOf<D extends Dtype> = TypedArrayByDtype[D]

/** Every return type of `toTypedArray`. */
export type TypedArray = TypedArrayOf<Dtype>
