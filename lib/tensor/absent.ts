/**
 * Dense tensors that a file names without holding their data: activations of a graph, weights of a model that was published
 * without them, values in a missing file. Everything but the elements is known.
 */

import type { Dtype } from '../dtype/dtypes.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { BaseTensor, NO_METADATA } from './base_tensor.js'
import type { QuantizationParameters } from './quantization.js'
import { checkShape, sizeExactOf, sizeOf } from './shape.js'
import type { DenseStorage, DenseTensor, TypedArray } from './tensor.js'

export interface AbsentTensorInit {
  readonly dtype: Dtype
  /** Extents, slowest axis first; a negative extent is unknown (files write -1), and `size` is then 0. */
  readonly shape: readonly number[]
  readonly name: string
  /** Why there is no data: the end of the error message. */
  readonly reason: string
  readonly doc?: string
  readonly metadata?: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
}

/** Methods that read elements throw ERR_NO_DATA. */
export class AbsentTensor extends BaseTensor implements DenseTensor {
  readonly kind = 'dense'
  readonly hasData = false
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
  readonly #reason: string

  /** @throws TileworkError ERR_ARGUMENT for a malformed shape, ERR_OVERFLOW for more than 2^53 - 1 elements */
  constructor(init: AbsentTensorInit) {
    super()
    const { name, dtype, shape, reason, doc, metadata = NO_METADATA, quantization } = init
    this.name = name
    this.dtype = dtype
    this.shape = hasUnknown(shape) ? Object.freeze([...shape]) : checkCountable(shape)
    if (doc !== undefined) this.doc = doc
    this.metadata = metadata
    if (quantization !== undefined) this.quantization = quantization
    this.#reason = reason
  }

  /** Number of elements; 0 while an extent is unknown. */
  override get size(): number {
    return hasUnknown(this.shape) ? 0 : sizeOf(this.shape)
  }

  override get sizeExact(): bigint {
    return hasUnknown(this.shape) ? 0n : sizeExactOf(this.shape)
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

  #error(): TileworkError {
    const message = `tensor "${this.name}" has no data: ${this.#reason}.`
    return new TileworkError('ERR_NO_DATA', message)
  }
}

function checkCountable(shape: readonly number[]): readonly number[] {
  const checked = checkShape(shape)
  sizeOf(checked)
  return checked
}

/** True for extents that are set when the model runs. */
function hasUnknown(shape: readonly number[]): boolean {
  return shape.some((extent) => extent < 0)
}
