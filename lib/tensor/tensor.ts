/**
 * A tensor is what and where: element type, shape, order in memory, a range of a source. Its bytes are read when
 * someone asks for them.
 */
import type { ByteRange } from '../bytes/source.js'
import type { Dtype } from '../dtype/dtypes.js'
import type { Float16Numbers } from '../dtype/float16_array.js'
import type { QuantizationParameters } from './quantization.js'

export type TypedArray =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array

export interface TypedArrayOptions {
  /** Elements of float16 in a `Float16Array`, as they are stored. Node has it from version 24 on. Default false. */
  readonly float16Array?: boolean
}

/** What every tensor has, whatever its kind. */
export interface TensorInfo {
  readonly name: string
  readonly kind: 'dense' | 'sparse' | 'string'
  readonly dtype: Dtype
  /** Logical extents, slowest axis first; empty for a scalar. */
  readonly shape: readonly number[]
  /** Product of `shape`. Throws ERR_OVERFLOW above 2^53 - 1. */
  readonly size: number
  /** Product of `shape`, exact. */
  readonly sizeExact: bigint
  /** False when the file names the tensor but does not hold its data. */
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
}

/** How the elements of a dense tensor lie in memory. */
export interface DenseStorage {
  /** Canonical layout name; `row_major` for what a format gives. */
  readonly layout: string
  /** Explicit padding, one count an axis of `shape`. */
  readonly lower: readonly number[]
  readonly upper: readonly number[]
  /** Storage elements, holes included. */
  readonly elements: number
  readonly byteLength: number
  /** Order of sub-byte elements inside a byte. */
  readonly bitOrder: 'low-first'
}

export interface DenseTensor extends TensorInfo {
  readonly kind: 'dense'
  readonly storage: DenseStorage
  /**
   * What the codes stand for, where the file says it with the tensor: `dequantize(tensor, tensor.quantization)`. A scale
   * of 0 says "unknown". Slices, casts and reorders of the tensor have none of their own.
   */
  readonly quantization?: QuantizationParameters
  /** Packed little-endian storage bytes, holes included. Not copied where the runtime allows; not to be written to. */
  bytes(range?: ByteRange): Promise<Uint8Array>
  /** As `bytes`, at once. ERR_ASYNC_ONLY where the source cannot. */
  bytesSync(range?: ByteRange): Uint8Array
  /**
   * As `bytes`, into memory of the caller: storage bytes from `start` on, as many as `target` has. Costs no memory of
   * its own, so a loop over windows can use one buffer.
   */
  copyTo(target: Uint8Array, options?: { readonly start?: number }): Promise<void>
  /** As `copyTo`, at once. ERR_ASYNC_ONLY where the source cannot. */
  copyToSync(target: Uint8Array, options?: { readonly start?: number }): void
  /**
   * Logical values in row-major order. `Float32Array` for every float below 32 bits, on every Node; `Int8Array` and
   * `Uint8Array` for integers below 8 bits.
   */
  toTypedArray(): Promise<TypedArray>
  /** ERR_UNSUPPORTED for an option that the runtime cannot follow. */
  toTypedArray(options: TypedArrayOptions): Promise<TypedArray | Float16Numbers>
  /** Raw codes of 8- and 16-bit floats and sub-byte types, in logical row-major order, one code an entry. */
  bits(): Promise<Uint8Array | Uint16Array>
  /** One element, without decoding the rest. */
  at(...index: readonly number[]): number | bigint | boolean
}

/** One entry of a sparse tensor. */
export interface SparseEntry {
  readonly index: readonly number[]
  readonly value: number | bigint | boolean
}

/** Coordinate-list (COO) tensor: entries in file order; where an index repeats the last entry wins. */
export interface SparseTensor extends TensorInfo {
  readonly kind: 'sparse'
  readonly entryCount: number
  entries(): AsyncIterable<SparseEntry>
  /** `[entryCount, rank]` int64, row-major. */
  indices(): Promise<BigInt64Array>
  /** Packed little-endian values, one an entry. */
  values(): Promise<Uint8Array>
  /** Errors: ERR_LIMIT when the dense tensor is larger than `maxBytes`, ERR_COO_INDEX. */
  toDense(options: { readonly maxBytes: number }): Promise<DenseTensor>
}

export interface StringTensor extends TensorInfo {
  readonly kind: 'string'
  strings(): Promise<readonly string[]>
  rawStrings(): Promise<readonly Uint8Array[]>
}

export type Tensor = DenseTensor | SparseTensor | StringTensor
