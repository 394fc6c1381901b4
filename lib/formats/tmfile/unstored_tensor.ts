/**
 * A tensor that a file names without holding its data: an activation, or a weight of a model that was published without
 * weights. Its shape may have extents that are set when the model is run.
 */
import { inspect } from 'node:util'
import { packedByteLength } from '../../dtype/decode.js'
import type { Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { describeTensor } from '../../tensor/describe_tensor.js'
import { sizeExactOf, sizeOf } from '../../tensor/shape.js'
import type { DenseStorage, DenseTensor, TypedArray } from '../../tensor/tensor.js'

export interface UnstoredInit {
  readonly name: string
  readonly dtype: Exclude<Dtype, 'string'>
  /** Extents; one that is not known yet is -1, and there is no size then. */
  readonly shape: readonly number[]
  readonly metadata?: ReadonlyMap<string, string>
  readonly doc?: string
}

const NO_METADATA: ReadonlyMap<string, string> = new Map()

export class UnstoredTensor implements DenseTensor {
  readonly kind = 'dense'
  readonly hasData = false
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly metadata: ReadonlyMap<string, string>
  readonly doc?: string

  constructor({ name, dtype, shape, metadata = NO_METADATA, doc }: UnstoredInit) {
    this.name = name
    this.dtype = dtype
    this.shape = Object.freeze([...shape])
    this.metadata = metadata
    if (doc !== undefined) this.doc = doc
  }

  /** 0 while an extent is not known. */
  get size(): number {
    return this.#isKnown() ? sizeOf(this.shape) : 0
  }

  get sizeExact(): bigint {
    return this.#isKnown() ? sizeExactOf(this.shape) : 0n
  }

  get storage(): DenseStorage {
    const none = this.shape.map(() => 0)
    const byteLength = packedByteLength(this.dtype, this.size)
    const padding = { lower: none, upper: none }
    return { layout: 'row_major', elements: this.size, byteLength, bitOrder: 'low-first', ...padding }
  }

  async bytes(): Promise<Uint8Array> {
    throw this.#error()
  }

  bytesSync(): Uint8Array {
    throw this.#error()
  }

  async copyTo(): Promise<void> {
    throw this.#error()
  }

  copyToSync(): void {
    throw this.#error()
  }

  async toTypedArray(): Promise<TypedArray> {
    throw this.#error()
  }

  async bits(): Promise<Uint8Array | Uint16Array> {
    throw this.#error()
  }

  at(): number | bigint | boolean {
    throw this.#error()
  }

  [inspect.custom](): string {
    return describeTensor(this)
  }

  #isKnown(): boolean {
    return this.shape.every((extent) => extent >= 0)
  }

  #error(): TileworkError {
    return new TileworkError('ERR_NO_DATA', `Tensor "${this.name}" has no data in its file.`)
  }
}
