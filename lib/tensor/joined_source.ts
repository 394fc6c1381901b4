/**
 * The storages of several tensors, interleaved: each iteration of the outer axes is one chunk of the first tensor, one of the
 * second, and so on. Every part writes its chunks straight to their offsets; short chunks are staged in the cache, many at a
 * time, and copied row by row.
 */
import { asyncOnlyError, checkRange } from '../bytes/check_range.js'
import { depthAbove } from '../bytes/depth.js'
import { fillMemorySync, fillsOnThread, readInto } from '../bytes/fill_memory.js'
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { unfilledBytes } from '../bytes/view_limit.js'
import { native } from '../native/addon.js'
import { FusedSource } from './fused_source.js'

/** From this length on, a chunk is a read of its own. */
const DIRECT_BYTES = 32 * 1024
/** Bytes of the result whose short chunks are staged at a time: together they fit a second-level cache. */
const TILE_BYTES = 512 * 1024
/** Reads in progress at a time: each may hold a few buffers. */
const MAX_READS = 16

/** The storage of one tensor, as chunks of equal length. */
export interface JoinedPart {
  readonly source: ByteSource
  /** Byte offset of the storage in `source`. */
  readonly start: number
  readonly chunkBytes: number
}

/** Chunks of one part that go to `at`, `at + rowBytes`, and so on, in the result. */
interface Copy {
  readonly part: ByteSource
  /** Byte offset in the part's source. */
  readonly from: number
  /** Bytes of one chunk; a part of a chunk where the requested range cuts it. */
  readonly bytes: number
  readonly rows: number
  /** Byte offset in the requested range. */
  readonly at: number
}

export class JoinedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** See `depthAbove`. */
  readonly depth: number
  readonly #parts: readonly JoinedPart[]
  /** Bytes of one chunk of every part. */
  readonly #rowBytes: number
  readonly #hasShortChunks: boolean
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly readIntoSync?: (start: number, target: Uint8Array) => void

  /** @param rows - chunks of each part */
  constructor(parts: readonly JoinedPart[], rows: number, label: string) {
    this.depth = depthAbove(parts.map(({ source }) => source))
    this.#parts = parts.filter(({ chunkBytes }) => chunkBytes > 0)
    this.#rowBytes = this.#parts.reduce((sum, { chunkBytes }) => sum + chunkBytes, 0)
    this.#hasShortChunks = this.#parts.some(({ chunkBytes }) => chunkBytes < DIRECT_BYTES)
    this.byteLength = this.#rowBytes * rows
    this.label = label
    if (parts.some(({ source }) => !source.readSync)) return
    this.readSync = (start, end) => {
      checkRange(start, end, this.byteLength, this.label)
      const bytes = unfilledBytes(end - start)
      this.#fillSync(start, bytes)
      return bytes
    }
    this.readIntoSync = (start, target) => {
      checkRange(start, start + target.byteLength, this.byteLength, this.label)
      this.#fillSync(start, target)
    }
  }

  /** See `fillMemory`. */
  get fillsOnThread(): boolean {
    return this.#parts.every(({ source }) => fillsOnThread(source))
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    const bytes = unfilledBytes(end - start)
    await this.#fill(start, bytes)
    return bytes
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    checkRange(start, start + target.byteLength, this.byteLength, this.label)
    await this.#fill(start, target)
  }

  async #fill(start: number, target: Uint8Array): Promise<void> {
    const reads: Promise<void>[] = []
    const stage = new Stage()
    for (const copy of this.#copies(start, start + target.byteLength)) {
      const { part, from, bytes, rows, at } = copy
      if (rows === 1) {
        const chunk = target.subarray(at, at + bytes)
        const isComputed = part instanceof FusedSource
        reads.push(isComputed ? part.readInto(from, chunk, this.byteLength) : readInto(part, from, chunk))
        if (reads.length === MAX_READS) await allOf(reads.splice(0))
      } else if (part instanceof MemorySource) {
        this.#place(copy, part.readSync(from, from + rows * bytes), target)
      } else {
        const staged = stage.of(rows * bytes)
        await readInto(part, from, staged)
        this.#place(copy, staged, target)
      }
    }
    await allOf(reads)
  }

  #fillSync(start: number, target: Uint8Array): void {
    const stage = new Stage()
    for (const copy of this.#copies(start, start + target.byteLength)) {
      const { part, from, bytes, rows, at } = copy
      if (!part.readSync) throw asyncOnlyError(part.label)
      if (rows === 1) {
        fillMemorySync(part, from, target.subarray(at, at + bytes))
      } else if (part instanceof MemorySource) {
        this.#place(copy, part.readSync(from, from + rows * bytes), target)
      } else {
        const staged = stage.of(rows * bytes)
        fillMemorySync(part, from, staged)
        this.#place(copy, staged, target)
      }
    }
  }

  #place({ bytes, at }: Copy, rows: Uint8Array, target: Uint8Array): void {
    native().placeRows(target, at, this.#rowBytes, rows, bytes)
  }

  /** What fills bytes `[start, end)` of the result, tile by tile. */
  *#copies(start: number, end: number): Generator<Copy> {
    if (start === end) return
    const row = this.#rowBytes
    const last = Math.ceil(end / row)
    const tile = this.#hasShortChunks ? Math.max(1, Math.floor(TILE_BYTES / row)) : 1
    for (let first = Math.floor(start / row); first < last; first += tile) {
      yield* this.#copiesOfTile(first, Math.min(first + tile, last), start, end)
    }
  }

  /** The copies of rows `[first, last)`, as far as they lie in `[start, end)`. */
  *#copiesOfTile(first: number, last: number, start: number, end: number): Generator<Copy> {
    const rowBytes = this.#rowBytes
    let column = 0
    for (const { source, start: storage, chunkBytes } of this.#parts) {
      const chunk = (row: number): Copy | undefined => {
        const offset = row * rowBytes + column
        const from = Math.max(start, offset)
        const to = Math.min(end, offset + chunkBytes)
        const inPart = storage + row * chunkBytes + (from - offset)
        return from < to
          ? { part: source, from: inPart, bytes: to - from, rows: 1, at: from - start }
          : undefined
      }
      // Rows whose chunk lies in the range as a whole.
      const firstWhole = Math.max(first, Math.ceil((start - column) / rowBytes))
      const endWhole = Math.min(last, Math.floor((end - column - chunkBytes) / rowBytes) + 1)
      const isStaged = chunkBytes < DIRECT_BYTES && endWhole - firstWhole > 1
      for (let row = first; row < last; row++) {
        if (isStaged && row === firstWhole) {
          const rows = endWhole - firstWhole
          const at = row * rowBytes + column - start
          yield { part: source, from: storage + row * chunkBytes, bytes: chunkBytes, rows, at }
          row = endWhole - 1
          continue
        }
        const copy = chunk(row)
        if (copy) yield copy
      }
      column += chunkBytes
    }
  }
}

/** Memory for staged chunks, allocated at the first use and kept for the next. */
class Stage {
  #bytes = new Uint8Array(0)

  of(byteLength: number): Uint8Array {
    if (this.#bytes.byteLength < byteLength) this.#bytes = unfilledBytes(byteLength)
    return this.#bytes.subarray(0, byteLength)
  }
}

/** Waits for all reads, also after a failure: until then they write to the target. */
async function allOf(reads: readonly Promise<void>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(reads)) {
    if (outcome.status === 'rejected') throw outcome.reason
  }
}
