/**
 * Big-endian numbers of a source as little-endian bytes. A range is read and turned when it is asked for, widened to
 * whole numbers, so nothing larger than what was asked for is ever copied.
 */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'

export interface BigEndianRange {
  readonly source: ByteSource
  readonly start: number
  /** A multiple of `swapBytes`. */
  readonly byteLength: number
  readonly swapBytes: 2 | 4 | 8
}

export class SwappedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** Present only where the source below has it, because callers ask by its presence. */
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #range: BigEndianRange

  constructor(range: BigEndianRange) {
    const { source, byteLength } = range
    this.byteLength = byteLength
    this.label = source.label ?? 'source'
    this.#range = range
    const readBelow = source.readSync?.bind(source)
    if (!readBelow) return
    this.readSync = (start, end) => {
      const { from, to } = this.#widen(start, end)
      return this.#swap(readBelow(range.start + from, range.start + to), start - from, end - from)
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { from, to } = this.#widen(start, end)
    const { source, start: base } = this.#range
    return this.#swap(await source.read(base + from, base + to), start - from, end - from)
  }

  #widen(start: number, end: number): { from: number; to: number } {
    checkRange(start, end, this.byteLength, this.label)
    const { swapBytes } = this.#range
    return { from: start - (start % swapBytes), to: Math.ceil(end / swapBytes) * swapBytes }
  }

  /** A copy, because the source's own bytes may be those of the file. */
  #swap(bytes: Uint8Array, from: number, to: number): Uint8Array {
    const copy = allocateBytes(bytes.byteLength)
    copy.set(bytes)
    const numbers = Buffer.from(copy.buffer)
    if (this.#range.swapBytes === 2) numbers.swap16()
    else if (this.#range.swapBytes === 4) numbers.swap32()
    else numbers.swap64()
    return copy.subarray(from, to)
  }
}
