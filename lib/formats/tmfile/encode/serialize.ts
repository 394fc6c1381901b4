/**
 * Assigns every chunk its offset and encodes the file. Where no chunk was added, removed or changed in length, each keeps its
 * original offset, so that a file in any order is rewritten byte for byte; otherwise chunks are written one after the other, in
 * the order of the reference.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { WriteSegment } from '../../format.js'
import type { PagedFile, ReadTask } from '../decode/paged_file.js'
import type { FileRecords } from '../decode/records.js'
import { rangesOf } from '../rules/coverage.js'
import { FILE_BYTES_LIMIT, FORMAT_NAME, STRUCT_LAYOUTS } from '../schema.js'
import type { Chunk } from './chunk.js'

/** Gaps up to this size are read while the file is planned; longer gaps are copied while it is written. */
const MAX_GAP_IN_MEMORY_BYTES = 64

/** Encodes a chunk into memory of its length. */
export type EncodeInto = (chunk: Chunk, target: DataView) => ReadTask<void>

export interface SerializedFile {
  readonly byteLength: number
  readonly segments: readonly WriteSegment[]
}

/** Chunks in sequence after the header. @throws TileworkError ERR_OVERFLOW from 4 GiB on */
export function* serializeInOrder(chunks: readonly Chunk[], encode: EncodeInto): ReadTask<SerializedFile> {
  const header = chunks.at(-1)!
  let end = STRUCT_LAYOUTS.header.byteLength
  for (const chunk of chunks) {
    if (chunk === header) continue
    chunk.offset = Math.ceil(end / chunk.alignment) * chunk.alignment
    end = chunk.offset + chunk.byteLength
  }
  if (end >= FILE_BYTES_LIMIT) {
    const message = `The file would have ${end} bytes; the limit is ${FILE_BYTES_LIMIT - 1}, because offsets have 32 bits.`
    throw new TileworkError('ERR_OVERFLOW', message, { format: FORMAT_NAME })
  }
  const writer = new SegmentWriter()
  for (const chunk of [header, ...chunks.slice(0, -1)]) {
    writer.fillTo(chunk.offset)
    yield* addChunk(writer, chunk, encode)
  }
  return writer.finish()
}

/**
 * Chunks at their original offsets, with the original bytes between them. Undefined where the model has other chunks than
 * the file, or two chunks that shared bytes differ now.
 */
export function* serializeInPlace(
  chunks: readonly Chunk[],
  encode: EncodeInto,
  {
    records,
    source,
    file,
  }: { readonly records: FileRecords; readonly source: ByteSource; readonly file: PagedFile },
): ReadTask<SerializedFile | undefined> {
  if (!hasOriginalRanges(chunks, records)) return undefined
  for (const chunk of chunks) chunk.offset = chunk.original!.offset
  const sorted = chunks
    .filter(({ byteLength }) => byteLength > 0)
    .toSorted((one, other) => one.offset - other.offset)
  const writer = new SegmentWriter()
  let last: Chunk | undefined
  for (const chunk of sorted) {
    if (last && chunk.offset < writer.byteLength) {
      const isShared = last.offset === chunk.offset && last.byteLength === chunk.byteLength
      if (isShared && (yield* encodeSameBytes(last, chunk, encode))) continue
      return (yield* isUnchanged(chunks, encode, file)) ? copyOf(source) : undefined
    }
    yield* copyGap(writer, chunk.offset, source, file)
    yield* addChunk(writer, chunk, encode)
    last = chunk
  }
  yield* copyGap(writer, records.byteLength, source, file)
  return writer.finish()
}

/** Whether the chunks have exactly the ranges of the original file's objects. */
function hasOriginalRanges(chunks: readonly Chunk[], records: FileRecords): boolean {
  if (chunks.some(({ original, byteLength }) => original?.byteLength !== byteLength)) return false
  const byRange = (one: Range, other: Range): number => one.start - other.start || one.end - other.end
  const originalRanges = [...rangesOf(records)].sort(byRange)
  const ranges = chunks
    .map(({ original, byteLength }) => ({ start: original!.offset, end: original!.offset + byteLength }))
    .sort(byRange)
  return (
    originalRanges.length === ranges.length &&
    originalRanges.every((range, index) => byRange(range, ranges[index]!) === 0)
  )
}

interface Range {
  readonly start: number
  readonly end: number
}

/** Whether no chunk encodes to new bytes. Chunks of a damaged file may overlap; unchanged, the file is copied whole. */
function* isUnchanged(chunks: readonly Chunk[], encode: EncodeInto, file: PagedFile): ReadTask<boolean> {
  for (const chunk of chunks) {
    if (!chunk.encode) continue
    const originalBytes = yield* file.read(chunk.offset, chunk.byteLength)
    if (!isSame(yield* encodedBytes(chunk, encode), originalBytes)) return false
  }
  return true
}

function copyOf(source: ByteSource): SerializedFile {
  const end = source.byteLength
  return { byteLength: end, segments: [{ kind: 'range', source, start: 0, end }] }
}

function* encodeSameBytes(one: Chunk, other: Chunk, encode: EncodeInto): ReadTask<boolean> {
  if (!one.encode || !other.encode) return one.encode === other.encode
  return isSame(yield* encodedBytes(one, encode), yield* encodedBytes(other, encode))
}

function* encodedBytes(chunk: Chunk, encode: EncodeInto): ReadTask<DataView> {
  const view = new DataView(new ArrayBuffer(chunk.byteLength))
  yield* encode(chunk, view)
  return view
}

function isSame(one: DataView, other: DataView): boolean {
  return Buffer.compare(bytesOf(one), bytesOf(other)) === 0
}

function bytesOf(view: DataView): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
}

function* addChunk(writer: SegmentWriter, chunk: Chunk, encode: EncodeInto): ReadTask<void> {
  if (chunk.encode) yield* encode(chunk, writer.reserve(chunk.byteLength))
  else if (chunk.byteLength > 0) writer.addSegment(chunk.data!, chunk.byteLength)
}

/** Copies the original bytes up to `end`. */
function* copyGap(writer: SegmentWriter, end: number, source: ByteSource, file: PagedFile): ReadTask<void> {
  const start = writer.byteLength
  if (end <= start) return
  if (end - start > MAX_GAP_IN_MEMORY_BYTES) {
    writer.addSegment({ kind: 'range', source, start, end }, end - start)
    return
  }
  const view = yield* file.read(start, end - start)
  bytesOf(writer.reserve(view.byteLength)).set(bytesOf(view))
}

/** Chunks are encoded into shared allocations of this size: one per chunk would cost more than encoding it. */
const ALLOCATION_BYTES = 64 * 1024

/** Collects the segments of a write plan from front to back. */
class SegmentWriter {
  byteLength = 0
  readonly #segments: WriteSegment[] = []
  #memory = new Uint8Array(0)
  #used = 0

  /** Writes zeros up to an offset. */
  fillTo(offset: number): void {
    if (offset > this.byteLength) this.reserve(offset - this.byteLength)
  }

  /** The next bytes of the file, zeroed, for the caller to write. */
  reserve(byteLength: number): DataView {
    if (this.#used + byteLength > this.#memory.byteLength) {
      this.#flush()
      this.#memory = new Uint8Array(Math.max(ALLOCATION_BYTES, byteLength))
    }
    const view = new DataView(this.#memory.buffer, this.#used, byteLength)
    this.#used += byteLength
    this.byteLength += byteLength
    return view
  }

  addSegment(segment: WriteSegment, byteLength: number): void {
    this.#flush()
    this.#segments.push(segment)
    this.byteLength += byteLength
  }

  finish(): SerializedFile {
    this.#flush()
    return { byteLength: this.byteLength, segments: this.#segments }
  }

  #flush(): void {
    if (this.#used > 0) this.#segments.push({ kind: 'bytes', bytes: this.#memory.subarray(0, this.#used) })
    this.#memory = this.#memory.subarray(0, 0)
    this.#used = 0
  }
}
