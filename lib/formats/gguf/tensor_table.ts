/** The tensors of a file as columns of numbers: a file of a million small tensors opens without a million objects. */
import type { BlockDtype } from '../../dtype/block_types.js'
import type { Dtype } from '../../dtype/dtypes.js'
import { DTYPE_BY_NUMBER, MAX_RANK } from './schema.js'

export interface TensorEntry {
  readonly name: string
  readonly dtype: Dtype | BlockDtype
  /** Extents, slowest first. */
  readonly shape: readonly number[]
  /** Offset in the file of the first byte. */
  readonly start: number
  readonly byteLength: number
}

export class TensorTable {
  readonly #names: string[] = []
  readonly #indices = new Map<string, number>()
  readonly #types: Uint8Array
  readonly #ranks: Uint8Array
  readonly #dims: Float64Array
  /** Relative to the data until `moveTo`. */
  readonly #starts: Float64Array
  readonly #sizes: Float64Array
  #dataStart = 0

  /** @param capacity - number of tensors, which the file has room for */
  constructor(capacity: number) {
    this.#types = new Uint8Array(capacity)
    this.#ranks = new Uint8Array(capacity)
    this.#dims = new Float64Array(capacity * MAX_RANK)
    this.#starts = new Float64Array(capacity)
    this.#sizes = new Float64Array(capacity)
  }

  get length(): number {
    return this.#names.length
  }

  /** @param dims - fastest first. @returns false where another tensor has the name */
  add(name: string, type: number, dims: readonly number[], offset: number, byteLength: number): boolean {
    if (this.#indices.has(name)) return false
    const index = this.#names.length
    this.#names.push(name)
    this.#indices.set(name, index)
    this.#types[index] = type
    this.#ranks[index] = dims.length
    this.#dims.set(dims, index * MAX_RANK)
    this.#starts[index] = offset
    this.#sizes[index] = byteLength
    return true
  }

  /** Says where the data start. */
  moveTo(dataStart: number): void {
    this.#dataStart = dataStart
  }

  name(index: number): string {
    return this.#names[index]!
  }

  /** Offset in the data of the first byte. */
  offset(index: number): number {
    return this.#starts[index]!
  }

  byteLength(index: number): number {
    return this.#sizes[index]!
  }

  find(name: string): number | undefined {
    return this.#indices.get(name)
  }

  at(index: number): TensorEntry {
    const dims = this.#dims.subarray(index * MAX_RANK, index * MAX_RANK + this.#ranks[index]!)
    return {
      name: this.#names[index]!,
      dtype: DTYPE_BY_NUMBER.get(this.#types[index]!)!,
      shape: Array.from(dims).reverse(),
      start: this.#dataStart + this.#starts[index]!,
      byteLength: this.#sizes[index]!,
    }
  }
}
