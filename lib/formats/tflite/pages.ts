/**
 * Reads numbers anywhere in a source through a few pages: the tables of a FlatBuffer lie between the data, so that a file is
 * neither one header nor worth holding. A read outside the held pages throws; `run` loads the page and runs its function again.
 */
import { lostBytesError } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { FileFault } from '../file_fault.js'

const PAGE_BYTES = 64 * 1024
/** Pages that are held at a time; a function that runs in `run` needs a few. */
const MAX_PAGES = 128
/** The longest range that crosses pages: a name, a shape, or a part of a longer list. */
export const MAX_RANGE_BYTES = 2 ** 21

class PageMissing {
  constructor(readonly page: number) {}
}

export class Pages {
  readonly byteLength: number
  readonly #source: ByteSource
  /** In the order of their last load. */
  readonly #pages = new Map<number, DataView>()
  #last = -1
  #lastView: DataView = new DataView(new ArrayBuffer(0))

  constructor(source: ByteSource) {
    this.#source = source
    this.byteLength = source.byteLength
  }

  /** Runs a function that only reads, again and again until all its pages are held. */
  async run<Result>(read: () => Result): Promise<Result> {
    for (;;) {
      try {
        return read()
      } catch (missing) {
        if (!(missing instanceof PageMissing)) throw missing
        await this.#load(missing.page)
      }
    }
  }

  u8(at: number): number {
    return this.#viewOf(at, 1).getUint8(at % PAGE_BYTES)
  }

  u16(at: number): number {
    return this.#isInPage(at, 2)
      ? this.#viewOf(at, 2).getUint16(at % PAGE_BYTES, true)
      : this.#copy(at, 2).getUint16(0, true)
  }

  i32(at: number): number {
    return this.#isInPage(at, 4)
      ? this.#viewOf(at, 4).getInt32(at % PAGE_BYTES, true)
      : this.#copy(at, 4).getInt32(0, true)
  }

  u32(at: number): number {
    return this.i32(at) >>> 0
  }

  u64(at: number): bigint {
    return this.#copy(at, 8).getBigUint64(0, true)
  }

  /** A copy of a short range. */
  bytes(at: number, length: number): Uint8Array {
    this.#check(at, length)
    if (length > MAX_RANGE_BYTES)
      throw new FileFault('ERR_LIMIT', `${length} bytes at ${at} are read at once.`, at)
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length; ) {
      const start = (at + done) % PAGE_BYTES
      const part = Math.min(length - done, PAGE_BYTES - start)
      const view = this.#viewOf(at + done, part)
      bytes.set(new Uint8Array(view.buffer, view.byteOffset + start, part), done)
      done += part
    }
    return bytes
  }

  #isInPage(at: number, size: number): boolean {
    return (at % PAGE_BYTES) + size <= PAGE_BYTES
  }

  #copy(at: number, size: number): DataView {
    return new DataView(this.bytes(at, size).buffer)
  }

  #check(at: number, size: number): void {
    if (at >= 0 && size <= this.byteLength - at) return
    const message = `${size} bytes are needed at ${at}; the file ends at ${this.byteLength}.`
    throw new FileFault('ERR_OFFSET_RANGE', message, Math.max(0, Math.min(at, this.byteLength)))
  }

  #viewOf(at: number, size: number): DataView {
    this.#check(at, size)
    const page = Math.floor(at / PAGE_BYTES)
    if (page === this.#last) return this.#lastView
    const view = this.#pages.get(page)
    if (!view) throw new PageMissing(page)
    this.#last = page
    this.#lastView = view
    return view
  }

  async #load(page: number): Promise<void> {
    const start = page * PAGE_BYTES
    const end = Math.min(this.byteLength, start + PAGE_BYTES)
    const bytes = await this.#source.read(start, end)
    if (bytes.byteLength !== end - start) throw lostBytesError(this.#source.label)
    if (this.#pages.size === MAX_PAGES) this.#pages.delete(this.#pages.keys().next().value!)
    // A copy: the owner of the bytes may change them between two reads of one table.
    this.#pages.set(page, new DataView(new Uint8Array(bytes).buffer))
    this.#last = -1
  }
}
