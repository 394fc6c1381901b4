/**
 * Presents big-endian numbers of a source as little-endian bytes. Each read extends its range to whole numbers, copies it and
 * swaps the copy, so memory is bounded by the requested range.
 */
import { checkRange } from './check_range.js'
import type { ByteSource } from './source.js'
import { allocateBytes } from './view_limit.js'

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
  /** Present only where the underlying source has it: callers test for its presence. */
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #range: BigEndianRange

  constructor(range: BigEndianRange) {
    const { source, byteLength } = range
    this.byteLength = byteLength
    this.label = source.label ?? 'source'
    this.#range = range
    const readUnderlying = source.readSync?.bind(source)
    if (!readUnderlying) return
    this.readSync = (start, end) => {
      const { from, to } = this.#widen(start, end)
      return this.#swap(readUnderlying(range.start + from, range.start + to), start - from, end - from)
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

  /** Swaps a copy: the given bytes may be the caller's memory. */
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
