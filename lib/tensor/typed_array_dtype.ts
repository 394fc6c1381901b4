/** The element type that a typed array holds. */
import type { Dtype } from '../dtype/dtypes.js'

/** By the array's own tag, which also serves arrays of another realm, and Float16Array where the runtime has it. */
const DTYPE_BY_TAG = {
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
} as const satisfies Record<string, Dtype>

type Tag = keyof typeof DTYPE_BY_TAG

/** The element type of a kind of typed array; any where the array's class is unknown. */
export type DtypeOfArray<A extends ArrayBufferView> = A extends {
  readonly [Symbol.toStringTag]: infer T extends Tag
}
  ? (typeof DTYPE_BY_TAG)[T]
  : Dtype

/** @returns undefined for a value that is not a typed array */
export function dtypeOfTypedArray(value: unknown): Dtype | undefined {
  if (!ArrayBuffer.isView(value)) return undefined
  const tag = (value as { [Symbol.toStringTag]?: string })[Symbol.toStringTag] ?? ''
  return Object.hasOwn(DTYPE_BY_TAG, tag) ? DTYPE_BY_TAG[tag as Tag] : undefined
}
