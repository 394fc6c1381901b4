/** A byte buffer that grows as bytes are appended. */
import { allocateBytes } from '../bytes/view_limit.js'

const FIRST_BYTES = 1024

/** While the old buffer is still alive, growing by half takes 2.5 times the bytes in use. */
const GROWTH = 1.5

/** The new capacity of a full list of `length` elements that needs `needed`. */
export function grownLength(length: number, needed: number): number {
  return Math.max(needed, Math.ceil(length * GROWTH))
}

export class ByteList {
  #bytes = allocateBytes(FIRST_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Appends a copy of `bytes`. @throws TileworkError ERR_LIMIT when the memory cannot be allocated or exceeds the budget */
  append(bytes: Uint8Array): void {
    const length = this.#length + bytes.byteLength
    if (length > this.#bytes.byteLength) {
      const grown = allocateBytes(grownLength(this.#bytes.byteLength, length))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    this.#bytes.set(bytes, this.#length)
    this.#length = length
  }

  /** Drops all but the first `length` bytes. */
  truncate(length: number): void {
    this.#length = length
  }

  /** A view, valid until one of its bytes is truncated. */
  subarray(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end)
  }
}
