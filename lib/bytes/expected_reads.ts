/**
 * Prefetch hints: a reader announces where it will read. Headers between payloads cost a remote source one round trip each; a
 * source that knows their offsets requests several at a time.
 */
import type { ByteSource } from './source.js'

/** Small reads, each of up to `byteLength` bytes, at ascending offsets. Offsets may lie outside the source. */
export interface ExpectedReads {
  readonly starts: Iterable<number>
  readonly byteLength: number
}

/** A source that uses prefetch hints. */
export interface ReadsAhead {
  /** Replaces the earlier hints. */
  expectReads(reads: ExpectedReads): void
}

/** Passes prefetch hints to a source that uses them. */
export function expectReads(source: ByteSource, reads: ExpectedReads): void {
  ;(source as Partial<ReadsAhead>).expectReads?.(reads)
}
