/** Bytes one behind the other in memory that grows with them. */
import { allocateBytes } from '../bytes/view_limit.js'

const FIRST_BYTES = 1024

/** Half as much again: with the old list still alive that is 2.5 times what is used. */
const GROWTH = 1.5

/** How long a list becomes that has `length` places, all taken, and needs `needed`. */
export function grownLength(length: number, needed: number): number {
  return Math.max(needed, Math.ceil(length * GROWTH))
}

export class ByteList {
  #bytes = allocateBytes(FIRST_BYTES)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Puts a copy of `bytes` at the end. @throws TileworkError ERR_LIMIT when the memory cannot be had or is more than the budget */
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

  /** Forgets what lies behind the first `length` bytes. */
  truncate(length: number): void {
    this.#length = length
  }

  /** A view, which holds as long as none of these bytes is truncated. */
  subarray(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end)
  }
}
