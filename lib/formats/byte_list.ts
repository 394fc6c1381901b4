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
    const at = this.#extend(bytes.byteLength)
    this.#bytes.set(bytes, at)
  }

  /** As `append`, of `bytes[start, end)`, for a few bytes: a view of them would take longer to make than to copy. */
  appendShort(bytes: Uint8Array, start: number, end: number): void {
    const first = this.#extend(end - start)
    const own = this.#bytes
    for (let at = start; at < end; at++) own[first + at - start] = bytes[at]!
  }

  /** Makes room at the end. @returns its offset */
  #extend(byteLength: number): number {
    const before = this.#length
    const length = before + byteLength
    if (length > this.#bytes.byteLength) {
      const grown = allocateBytes(grownLength(this.#bytes.byteLength, length))
      grown.set(this.#bytes)
      this.#bytes = grown
    }
    this.#length = length
    return before
  }

  /** Drops all but the first `length` bytes. */
  truncate(length: number): void {
    this.#length = length
  }

  /** True where the list has `bytes[start, end)` at the offset `first`. */
  isAt(first: number, bytes: Uint8Array, start: number, end: number): boolean {
    const own = this.#bytes
    for (let at = start; at < end; at++) if (own[first + at - start] !== bytes[at]) return false
    return true
  }

  /** A view, valid until one of its bytes is truncated. */
  subarray(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end)
  }
}
