/**
 * A cursor over the header of a file, whose length only its end tells. It is read in steps that double, so that a header of any
 * length takes few requests of a remote source, and kept whole, because the values of the metadata are decoded from it later.
 */
import { lostBytesError } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import type { Budget } from '../budget.js'
import type { Exact } from '../exact_size.js'
import { FileFault } from '../file_fault.js'

/** Bytes of the first read: the headers of models without a vocabulary, and one request. */
const FIRST_BYTES = 64 * 1024

/** The most that is read beyond what is needed. */
const MOST_AHEAD_BYTES = 4 * 1024 * 1024

const TWO_POW_32 = 2 ** 32
/** Unsigned 64-bit numbers up to 2^53 - 1 have a high half below this. */
const SAFE_HIGH_LIMIT = 2 ** 21

export class HeaderCursor {
  readonly #source: ByteSource
  readonly #budget: Budget
  #bytes = new Uint8Array(0)
  #view = new DataView(new ArrayBuffer(0))
  #loaded = 0
  at = 0
  isLittleEndian = true
  /** Whether lengths, counts and dims have 32 bits. */
  isOld = false

  constructor(source: ByteSource, budget: Budget) {
    this.#source = source
    this.#budget = budget
  }

  /** Bytes between the position and the end of the file. */
  get remaining(): number {
    return this.#source.byteLength - this.at
  }

  /** The bytes `[start, end)` of the header, which were read. */
  bytes(start: number, end: number): Uint8Array {
    return this.#bytes.subarray(start, end)
  }

  /** True when the next `count` bytes can be read without `load`. */
  holds(count: number): boolean {
    return this.at + count <= this.#loaded
  }

  /**
   * Reads at least `count` bytes from the position on.
   *
   * @param what - what they are, for the error
   * @throws FileFault ERR_TRUNCATED where the file ends before, ERR_LIMIT
   */
  async load(count: Exact, what: string): Promise<void> {
    if (count > this.remaining) throw this.truncated(count, what)
    const needed = this.at + Number(count)
    this.#budget.require('headerBytes', needed, this.at)
    const ahead = Math.min(Math.max(FIRST_BYTES, this.#loaded), MOST_AHEAD_BYTES)
    const end = Math.min(this.#source.byteLength, Math.max(needed, this.#loaded + ahead))
    const read = await this.#source.read(this.#loaded, end)
    if (read.byteLength !== end - this.#loaded) throw lostBytesError(this.#source.label)
    this.#append(read)
  }

  #append(read: Uint8Array): void {
    const loaded = this.#loaded + read.byteLength
    if (loaded > this.#bytes.byteLength) {
      const grown = allocateBytes(
        Math.max(loaded, Math.min(2 * this.#bytes.byteLength, this.#source.byteLength)),
      )
      grown.set(this.#bytes.subarray(0, this.#loaded))
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    this.#bytes.set(read, this.#loaded)
    this.#loaded = loaded
  }

  truncated(count: Exact, what: string): FileFault {
    const message = `${what} needs ${count} bytes at ${this.at}; the file ends at ${this.#source.byteLength}.`
    return new FileFault('ERR_TRUNCATED', message, this.at)
  }

  /** The next number of 32 bits, which the cursor holds. */
  u32(): number {
    const value = this.#view.getUint32(this.at, this.isLittleEndian)
    this.at += 4
    return value
  }

  /** The next number of 64 bits, which the cursor holds; a bigint above 2^53 - 1. */
  u64(): Exact {
    const [first, second] = [
      this.#view.getUint32(this.at, this.isLittleEndian),
      this.#view.getUint32(this.at + 4, this.isLittleEndian),
    ]
    const [low, high] = this.isLittleEndian ? [first, second] : [second, first]
    const value =
      high < SAFE_HIGH_LIMIT ? high * TWO_POW_32 + low : this.#view.getBigUint64(this.at, this.isLittleEndian)
    this.at += 8
    return value
  }

  /** Bytes of a length, a count or a dimension. */
  get sizeBytes(): number {
    return this.isOld ? 4 : 8
  }

  /** The next length, count or dimension, which the cursor holds. */
  size(): Exact {
    return this.isOld ? this.u32() : this.u64()
  }

  /** The range of the next text; the position moves behind it. @throws FileFault as `load` */
  async text(what: string): Promise<{ readonly start: number; readonly end: number }> {
    if (!this.holds(this.sizeBytes)) await this.load(this.sizeBytes, what)
    const length = this.size()
    if (length > this.remaining) throw this.truncated(length, what)
    if (!this.holds(Number(length))) await this.load(length, what)
    const start = this.at
    this.at += Number(length)
    return { start, end: this.at }
  }

  /** Moves behind the next text where the cursor holds all of it; false where it does not. */
  skipText(): boolean {
    const { sizeBytes } = this
    if (!this.holds(sizeBytes)) return false
    const start = this.at
    const length = this.size()
    if (length <= this.remaining && this.holds(Number(length))) {
      this.at += Number(length)
      return true
    }
    this.at = start
    return false
  }
}
