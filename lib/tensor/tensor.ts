/**
 * What a tensor is: element type, shape, order in memory, and the range of a source that holds its bytes. Opening a file or
 * transforming a tensor touches no bytes; the methods that read do.
 */
import type { ByteRange } from '../bytes/source.js'
import type { BlockDtype } from '../dtype/block_types.js'
import type { Dtype } from '../dtype/dtypes.js'
import type { Float16Numbers } from '../dtype/float16_array.js'
import type { TypedArray, TypedArrayOf } from '../dtype/typed_array.js'
import type { QuantizationParameters } from './quantization.js'

export type { TypedArray, TypedArrayByDtype, TypedArrayOf } from '../dtype/typed_array.js'

/** Indexed, not conditional: a tensor of one element type must stay assignable to a tensor of any. */
type Float16ArrayOf<D extends Dtype> = { [Name in Dtype]: Name extends 'float16' ? Float16Numbers : never }[D]

export interface TypedArrayOptions {
  /**
   * Memory of the caller that gets the values and is returned: of the class and the length that the result has without it.
   * Memory that is kept needs no page faults, which take longer than the work on large results. Memory that is transferred
   * before the promise settles is ERR_ARGUMENT.
   */
  readonly out?: TypedArray | Float16Numbers
  /** Elements of float16 in a `Float16Array`, as they are stored. Node has that class from version 24 on. Default false. */
  readonly float16Array?: boolean
}

/** Options of `bits`. */
export interface BitsOptions {
  /** As for `toTypedArray`: a Uint16Array for 16-bit floats, else a Uint8Array. */
  readonly out?: Uint8Array | Uint16Array
}

/** What every tensor has, whatever its kind. */
export interface TensorInfo<D extends Dtype | BlockDtype = Dtype> {
  readonly name: string
  readonly kind: 'dense' | 'sparse' | 'string' | 'block'
  readonly dtype: D
  /** Logical extents, slowest axis first; empty for a scalar. */
  readonly shape: readonly number[]
  /** Number of elements: the product of `shape`. Throws ERR_OVERFLOW above 2^53 - 1. */
  readonly size: number
  /** Number of elements, exact. */
  readonly sizeExact: bigint
  /** False when the file names the tensor without holding its data; reading it throws ERR_NO_DATA. */
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
}

/** How the elements of a dense tensor lie in memory. */
export interface DenseStorage {
  /** Canonical layout name; `row_major` for the tensors of most files. */
  readonly layout: string
  /** Explicit padding before the first element, one count per axis of `shape`. */
  readonly lower: readonly number[]
  /** Explicit padding after the last element, one count per axis of `shape`. */
  readonly upper: readonly number[]
  /** Number of storage elements, holes and padding included. */
  readonly elements: number
  /** Bytes of the storage: `elements` packed, rounded up to a whole byte. */
  readonly byteLength: number
  /** Order of sub-byte elements inside a byte: the first is in the lowest bits. */
  readonly bitOrder: 'low-first'
}

/**
 * A tensor whose storage holds every element. Its metadata is known; its bytes are read, and computed where it is lazy, when
 * a method asks for them. Nothing is cached. Every method that reads may throw ERR_NO_DATA, ERR_CLOSED, ERR_IO,
 * ERR_FILE_CHANGED and ERR_VIEW_TOO_LARGE.
 */
export interface DenseTensor<D extends Dtype = Dtype> extends TensorInfo<D> {
  readonly kind: 'dense'
  readonly storage: DenseStorage
  /**
   * The scales and zero points that the file declares for the tensor: `dequantize(tensor, tensor.quantization)`. A scale of 0
   * means "unknown". Slices, casts and reorders of the tensor carry none.
   */
  readonly quantization?: QuantizationParameters
  /**
   * Packed little-endian storage bytes, holes included. A view of the file's or the caller's memory where the runtime allows
   * one, so it must not be written to.
   *
   * @param range - bytes of the storage; all of it by default. ERR_RANGE beyond `storage.byteLength`
   */
  bytes(range?: ByteRange): Promise<Uint8Array>
  /** As `bytes`, synchronously. ERR_ASYNC_ONLY where the source has no synchronous reads. */
  bytesSync(range?: ByteRange): Uint8Array
  /**
   * Copies storage bytes into the caller's memory: `target.byteLength` bytes from `start` (default 0). A loop over windows
   * can reuse one buffer. Of a file, copies through at most two windows of 4 MiB; a target on a SharedArrayBuffer is filled
   * directly. A target that is transferred before the promise settles is ERR_ARGUMENT.
   */
  copyTo(target: Uint8Array, options?: { readonly start?: number }): Promise<void>
  /** As `copyTo`, synchronously. ERR_ASYNC_ONLY where the source has no synchronous reads. */
  copyToSync(target: Uint8Array, options?: { readonly start?: number }): void
  /**
   * A copy of the logical values in row-major order, without padding: `size` elements, twice as many for complex types. See
   * {@link TypedArrayByDtype} for the array of each element type.
   */
  toTypedArray(): Promise<TypedArrayOf<D>>
  /** ERR_UNSUPPORTED for an option that the runtime lacks; ERR_ARGUMENT for an `out` of another class or length. */
  toTypedArray(options: TypedArrayOptions): Promise<TypedArrayOf<D> | Float16ArrayOf<D>>
  /**
   * The codes of floats below 32 bits and of integers below 8 bits as they are stored, one code per entry, in row-major
   * order. ERR_DTYPE for other element types, ERR_ARGUMENT for an `out` of another class or length.
   */
  bits(options?: BitsOptions): Promise<Uint8Array | Uint16Array>
  /**
   * One element; reads only its bytes. A bigint for 64-bit integers, a boolean for bool.
   *
   * @param index - one index per axis. ERR_RANGE outside the shape
   */
  at(...index: readonly number[]): number | bigint | boolean
}

/** One entry of a sparse tensor. */
export interface SparseEntry {
  /** One index per axis. */
  readonly index: readonly number[]
  readonly value: number | bigint | boolean
}

/** Coordinate-list (COO) tensor: entries in file order; where an index repeats, the last entry wins. */
export interface SparseTensor<D extends Dtype = Dtype> extends TensorInfo<D> {
  readonly kind: 'sparse'
  /** Number of stored entries. */
  readonly entryCount: number
  /** The entries in file order, read window by window. ERR_COO_INDEX for an index outside the shape. */
  entries(): AsyncIterable<SparseEntry>
  /** Indices of all entries: `[entryCount, rank]`, row-major. ERR_COO_INDEX as in `entries`. */
  indices(): Promise<BigInt64Array>
  /** Values of all entries, packed little-endian. */
  values(): Promise<Uint8Array>
  /** The dense row-major tensor, in memory. ERR_LIMIT when it is larger than `maxBytes` bytes, ERR_COO_INDEX. */
  toDense(options: { readonly maxBytes: number }): Promise<DenseTensor<D>>
}

/** A tensor of strings in row-major order. */
export interface StringTensor extends TensorInfo {
  readonly kind: 'string'
  /** The strings. ERR_DTYPE for bytes that are not UTF-8. */
  strings(): Promise<readonly string[]>
  /** The bytes of each string, as the file holds them. */
  rawStrings(): Promise<readonly Uint8Array[]>
}

/**
 * A tensor of quantized blocks, as language models have them: consecutive elements of the last axis share scales. `cast` and
 * `dequantize` give its numbers, lazily; `slice`, `reorder` and other functions of dense tensors take them as float32.
 */
export interface BlockTensor extends TensorInfo<BlockDtype> {
  readonly kind: 'block'
  /** Bytes of all blocks. */
  readonly byteLength: number
  /**
   * The blocks as they are stored, row by row. Errors as for dense tensors.
   *
   * @param range - bytes; all of them by default. ERR_RANGE beyond `byteLength`
   */
  bytes(range?: ByteRange): Promise<Uint8Array>
  /** As `bytes`, synchronously. ERR_ASYNC_ONLY where the source has no synchronous reads. */
  bytesSync(range?: ByteRange): Uint8Array
  /** The numbers as float32 in row-major order: `size` elements. */
  toTypedArray(): Promise<Float32Array>
}

/** A tensor of any kind but blocks; `kind` distinguishes them. */
export type Tensor<D extends Dtype = Dtype> = DenseTensor<D> | SparseTensor<D> | StringTensor

/** A tensor of any kind, as files have them. Only GGUF files have those of blocks. */
export type AnyTensor<D extends Dtype = Dtype> = Tensor<D> | BlockTensor
