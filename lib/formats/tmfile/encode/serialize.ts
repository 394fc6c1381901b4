/**
 * Gives every part of a file its place: where it was, if nothing came, went or changed its length, so that a file is
 * rewritten byte for byte whatever its order; else one after the other, as the reference does.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { WriteSegment } from '../../format.js'
import type { FileBytes, Reading } from '../decode/file_bytes.js'
import type { FileRecords } from '../decode/records.js'
import { rangesOf } from '../rules/coverage.js'
import { FILE_BYTES_LIMIT, FORMAT_NAME, PLACED } from '../schema.js'
import type { Piece } from './chunk.js'

/** Gaps up to this are read when the file is planned; longer ones are copied when it is written. */
const GAP_IN_MEMORY_BYTES = 64

/** Writes a part into memory of its length. */
export type Encode = (piece: Piece, target: DataView) => Reading<void>

export interface PlacedFile {
  readonly byteLength: number
  readonly segments: readonly WriteSegment[]
}

/** The parts one after the other, from behind the header on. @throws TileworkError ERR_OVERFLOW from 4 GiB on */
export function* placeInOrder(pieces: readonly Piece[], encode: Encode): Reading<PlacedFile> {
  const header = pieces.at(-1)!
  let cursor = PLACED.header.byteLength
  for (const piece of pieces) {
    if (piece === header) continue
    cursor = Math.ceil(cursor / piece.alignment) * piece.alignment
    piece.at = cursor
    cursor += piece.byteLength
  }
  if (cursor >= FILE_BYTES_LIMIT) {
    const message = `The file would have ${cursor} bytes; offsets of 32 bits end at ${FILE_BYTES_LIMIT - 1}.`
    throw new TileworkError('ERR_OVERFLOW', message, { format: FORMAT_NAME })
  }
  const run = new SegmentRun()
  for (const piece of [header, ...pieces.slice(0, -1)]) {
    run.fillTo(piece.at)
    yield* addPiece(run, piece, encode)
  }
  return run.finish()
}

/**
 * The parts where they were, with what lies between them as it was; undefined where the model has other parts than the
 * file, or two parts that shared bytes are different now.
 */
export function* placeAsBefore(
  pieces: readonly Piece[],
  encode: Encode,
  {
    records,
    source,
    file,
  }: { readonly records: FileRecords; readonly source: ByteSource; readonly file: FileBytes },
): Reading<PlacedFile | undefined> {
  if (!hasSameParts(pieces, records)) return undefined
  for (const piece of pieces) piece.at = piece.base!.at
  const sorted = pieces.filter(({ byteLength }) => byteLength > 0).toSorted((one, other) => one.at - other.at)
  const run = new SegmentRun()
  let last: Piece | undefined
  for (const piece of sorted) {
    if (last && piece.at < run.byteLength) {
      const isRepeated = last.at === piece.at && last.byteLength === piece.byteLength
      if (isRepeated && (yield* isSamePart(last, piece, encode))) continue
      return (yield* isUnchanged(pieces, encode, file)) ? wholeOf(source) : undefined
    }
    yield* addGap(run, piece.at, source, file)
    yield* addPiece(run, piece, encode)
    last = piece
  }
  yield* addGap(run, records.byteLength, source, file)
  return run.finish()
}

function hasSameParts(pieces: readonly Piece[], records: FileRecords): boolean {
  if (pieces.some(({ base, byteLength }) => base?.byteLength !== byteLength)) return false
  const byPlace = (one: Range, other: Range): number => one.start - other.start || one.end - other.end
  const before = [...rangesOf(records)].sort(byPlace)
  const now = pieces
    .map(({ base, byteLength }) => ({ start: base!.at, end: base!.at + byteLength }))
    .sort(byPlace)
  return before.length === now.length && before.every((range, at) => byPlace(range, now[at]!) === 0)
}

interface Range {
  readonly start: number
  readonly end: number
}

/** Parts of a damaged file may lie inside each other; as long as none says anything new, the file is its own copy. */
function* isUnchanged(pieces: readonly Piece[], encode: Encode, file: FileBytes): Reading<boolean> {
  for (const piece of pieces) {
    if (!piece.fill) continue
    const old = yield* file.read(piece.at, piece.byteLength)
    if (!isSame(yield* bytesOf(piece, encode), old)) return false
  }
  return true
}

function wholeOf(source: ByteSource): PlacedFile {
  const end = source.byteLength
  return { byteLength: end, segments: [{ kind: 'range', source, start: 0, end }] }
}

function* isSamePart(one: Piece, other: Piece, encode: Encode): Reading<boolean> {
  if (!one.fill || !other.fill) return one.fill === other.fill
  return isSame(yield* bytesOf(one, encode), yield* bytesOf(other, encode))
}

function* bytesOf(piece: Piece, encode: Encode): Reading<DataView> {
  const view = new DataView(new ArrayBuffer(piece.byteLength))
  yield* encode(piece, view)
  return view
}

function isSame(one: DataView, other: DataView): boolean {
  const [left, right] = [one, other].map(
    (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
  )
  return Buffer.compare(left!, right!) === 0
}

function* addPiece(run: SegmentRun, piece: Piece, encode: Encode): Reading<void> {
  if (piece.fill) yield* encode(piece, run.reserve(piece.byteLength))
  else if (piece.byteLength > 0) run.addSegment(piece.data!, piece.byteLength)
}

function* addGap(run: SegmentRun, end: number, source: ByteSource, file: FileBytes): Reading<void> {
  const start = run.byteLength
  if (end <= start) return
  if (end - start > GAP_IN_MEMORY_BYTES) {
    run.addSegment({ kind: 'range', source, start, end }, end - start)
    return
  }
  const view = yield* file.read(start, end - start)
  const target = run.reserve(view.byteLength)
  new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength),
  )
}

/** Bytes of memory that parts are written into one after the other: an array for each would cost more than the parts. */
const CHUNK_BYTES = 64 * 1024

/** Segments of a plan, made from front to back. */
class SegmentRun {
  byteLength = 0
  readonly #segments: WriteSegment[] = []
  #chunk = new Uint8Array(0)
  #used = 0

  /** Zeros up to a place. */
  fillTo(at: number): void {
    if (at > this.byteLength) this.reserve(at - this.byteLength)
  }

  /** The next bytes of the file, zeros, to be written into. */
  reserve(byteLength: number): DataView {
    if (this.#used + byteLength > this.#chunk.byteLength) {
      this.#flush()
      this.#chunk = new Uint8Array(Math.max(CHUNK_BYTES, byteLength))
    }
    const view = new DataView(this.#chunk.buffer, this.#used, byteLength)
    this.#used += byteLength
    this.byteLength += byteLength
    return view
  }

  addSegment(segment: WriteSegment, byteLength: number): void {
    this.#flush()
    this.#segments.push(segment)
    this.byteLength += byteLength
  }

  finish(): PlacedFile {
    this.#flush()
    return { byteLength: this.byteLength, segments: this.#segments }
  }

  #flush(): void {
    if (this.#used > 0) this.#segments.push({ kind: 'bytes', bytes: this.#chunk.subarray(0, this.#used) })
    this.#chunk = this.#chunk.subarray(0, 0)
    this.#used = 0
  }
}
