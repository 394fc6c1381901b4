/** Which element type a typed array holds. */
import type { Dtype } from '../dtype/dtypes.js'

/** By the array's own tag, which also serves arrays of another realm and Float16Array where a runtime has it. */
const DTYPE_BY_TAG: Readonly<Record<string, Dtype>> = {
  Int8Array: 'int8',
  Uint8Array: 'uint8',
  Uint8ClampedArray: 'uint8',
  Int16Array: 'int16',
  Uint16Array: 'uint16',
  Int32Array: 'int32',
  Uint32Array: 'uint32',
  BigInt64Array: 'int64',
  BigUint64Array: 'uint64',
  Float16Array: 'float16',
  Float32Array: 'float32',
  Float64Array: 'float64',
}

/** Undefined for anything that is no typed array. */
export function dtypeOfTypedArray(value: unknown): Dtype | undefined {
  if (!ArrayBuffer.isView(value)) return undefined
  return DTYPE_BY_TAG[(value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? '']
}
