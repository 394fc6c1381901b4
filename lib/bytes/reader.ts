/**
 * A bounds-checked cursor over a source, for headers. It holds one window of the source: a header of any length takes bounded
 * memory, and reading a field inside the window needs no `await`:
 *
 *     reader.seek(offset)
 *     if (!reader.holds(16)) await reader.load(16)
 *     const rank = reader.u64()
 */
import { TileworkError } from '../errors.js'
import { lostBytesError } from './check_range.js'
import type { ByteSource } from './source.js'

/** Bytes of a window: a million small records take some hundred reads, and the window is small relative to memory. */
export const READER_WINDOW_BYTES = 256 * 1024

const TWO_POW_32 = 2 ** 32
/** Unsigned 64-bit numbers up to 2^53 - 1 have a high half below this. */
const SAFE_HIGH_LIMIT = 2 ** 21

export class ByteReader {
  readonly #source: ByteSource
  readonly #windowBytes: number
  #window: DataView = new DataView(new ArrayBuffer(0))
  #windowStart = 0
  #position = 0

  constructor(source: ByteSource, windowBytes: number = READER_WINDOW_BYTES) {
    this.#source = source
    this.#windowBytes = windowBytes
  }

  get byteLength(): number {
    return this.#source.byteLength
  }

  get position(): number {
    return this.#position
  }

  /** Bytes between the position and the end of the source. */
  get remaining(): number {
    return this.#source.byteLength - this.#position
  }

  /** Moves the cursor. @throws TileworkError ERR_RANGE outside the source */
  seek(position: number): void {
    if (!Number.isSafeInteger(position) || position < 0 || position > this.byteLength) {
      throw new TileworkError('ERR_RANGE', `offset ${position} lies outside the ${this.byteLength} bytes.`)
    }
    this.#position = position
  }

  /** True when the next `count` bytes are in the window and can be read without `load`. */
  holds(count: number): boolean {
    const at = this.#position - this.#windowStart
    return at >= 0 && at + count <= this.#window.byteLength
  }

  /**
   * Moves the window so that it starts at the cursor and holds at least `count` bytes.
   *
   * @throws TileworkError ERR_TRUNCATED when the source ends before them, ERR_FILE_CHANGED when it returns too few, and what
   * the source throws
   */
  async load(count: number): Promise<void> {
    const start = this.#position
    if (count > this.remaining) throw this.#truncated(count)
    const end = Math.min(this.byteLength, start + Math.max(count, this.#windowBytes))
    const bytes = await this.#source.read(start, end)
    if (bytes.byteLength !== end - start) throw lostBytesError(this.#source.label)
    // A copy: the owner of the bytes may transfer or change them between two reads of one header.
    this.#window = new DataView(new Uint8Array(bytes).buffer)
    this.#windowStart = start
  }

  /** The next byte. The window must hold it. */
  u8(): number {
    return this.#window.getUint8(this.#take(1))
  }

  /** The next unsigned 64-bit little-endian number; a bigint above 2^53 - 1. The window must hold it. */
  u64(): number | bigint {
    const at = this.#take(8)
    const low = this.#window.getUint32(at, true)
    const high = this.#window.getUint32(at + 4, true)
    return high < SAFE_HIGH_LIMIT ? high * TWO_POW_32 + low : this.#window.getBigUint64(at, true)
  }

  /** The next `count` bytes, as a view of the window, which must hold them. */
  bytes(count: number): Uint8Array {
    const at = this.#take(count)
    return new Uint8Array(this.#window.buffer, this.#window.byteOffset + at, count)
  }

  #take(count: number): number {
    if (count > this.remaining) throw this.#truncated(count)
    if (!this.holds(count)) {
      throw new TileworkError(
        'ERR_RANGE',
        `${count} bytes at offset ${this.#position} are not in the reader's window.`,
      )
    }
    const at = this.#position - this.#windowStart
    this.#position += count
    return at
  }

  #truncated(count: number): TileworkError {
    const message = `${count} bytes are needed at offset ${this.#position}; the file ends at ${this.byteLength}.`
    return new TileworkError('ERR_TRUNCATED', message, { offset: this.#position })
  }
}
