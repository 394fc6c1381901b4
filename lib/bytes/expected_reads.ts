/**
 * Lets a reader say where it will read, before it does. Headers that lie between payloads cost a round trip each on a remote
 * source; one that knows where they are asks for several at a time.
 */
import type { ByteSource } from './source.js'

/** Small reads, each of up to `byteLength` bytes, at ascending offsets. Offsets may lie outside the source. */
export interface ExpectedReads {
  readonly starts: Iterable<number>
  readonly byteLength: number
}

/** A source that uses such knowledge. */
export interface ReadsAhead {
  /** Replaces what was expected before. */
  expectReads(reads: ExpectedReads): void
}

/** Tells a source what will be read, where that is of use to it. */
export function expectReads(source: ByteSource, reads: ExpectedReads): void {
  ;(source as Partial<ReadsAhead>).expectReads?.(reads)
}
