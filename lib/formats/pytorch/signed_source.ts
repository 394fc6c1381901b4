/**
 * Flips the signs of floats: torch stores the conjugate of a complex view and the negative of a view as they were, with a bit that
 * says so. A sign is one bit, so the flip is exact, also for NaN.
 */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'

export interface SignedRange {
  readonly source: ByteSource
  readonly start: number
  readonly byteLength: number
  /** Bytes of one number: of a complex type, of one component. */
  readonly size: number
  /** The numbers whose sign is flipped: `position % every === remainder` for one of the remainders. */
  readonly every: number
  readonly remainders: readonly number[]
}

export class SignedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** Present only where the underlying source has it: callers test for its presence. */
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #range: SignedRange

  constructor(range: SignedRange) {
    const { source, byteLength, start: base } = range
    this.byteLength = byteLength
    this.label = source.label ?? 'source'
    this.#range = range
    const readUnderlying = source.readSync?.bind(source)
    if (!readUnderlying) return
    this.readSync = (start, end) => {
      checkRange(start, end, byteLength, this.label)
      return this.#flip(readUnderlying(base + start, base + end), start)
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const { source, start: base } = this.#range
    return this.#flip(await source.read(base + start, base + end), start)
  }

  /** Flips a copy: the given bytes may be the caller's memory. The sign is in the last byte of a number. */
  #flip(bytes: Uint8Array, start: number): Uint8Array {
    const { size, every, remainders } = this.#range
    const copy = new Uint8Array(bytes)
    for (const remainder of remainders) {
      const period = every * size
      const signAt = remainder * size + size - 1
      const first = (((signAt - start) % period) + period) % period
      for (let at = first; at < copy.length; at += period) copy[at]! ^= 0x80
    }
    return copy
  }
}
