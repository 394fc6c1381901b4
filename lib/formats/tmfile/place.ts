/**
 * Gives every part of a file its place: where it was, if nothing came, went or changed its length, so that a file is
 * rewritten byte for byte whatever its order; else one after the other, as the reference does.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import type { WriteSegment } from '../format.js'
import { coverageOf } from './coverage.js'
import type { FileBytes } from './file_bytes.js'
import type { Piece } from './piece.js'
import type { FileRecords } from './records.js'
import { ALIGNMENT, FILE_BYTES_LIMIT, FORMAT_NAME, PLACED } from './schema.js'

/** Gaps up to this are read when the file is planned; longer ones are copied when it is written. */
const GAP_IN_MEMORY_BYTES = 64

/** A part and its bytes; numbers of buffers have none. */
interface EncodedPiece {
  readonly piece: Piece
  readonly bytes: Uint8Array | undefined
}

export interface PlacedFile {
  readonly byteLength: number
  readonly segments: readonly WriteSegment[]
}

/** The parts one after the other, from behind the header on. @throws TileworkError ERR_OVERFLOW from 4 GiB on */
export async function placeInOrder(
  pieces: readonly Piece[],
  encode: (piece: Piece) => Promise<Uint8Array | undefined>,
): Promise<PlacedFile> {
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
  const encoded: EncodedPiece[] = []
  for (const piece of [header, ...pieces.slice(0, -1)]) encoded.push({ piece, bytes: await encode(piece) })
  const run = new SegmentRun()
  for (const each of encoded) run.add(each, each.piece.alignment === ALIGNMENT ? ZEROS : NOTHING)
  return run.finish()
}

/**
 * The parts where they were, with what lies between them as it was; undefined where the model has other parts than the
 * file, or two parts that shared bytes are different now.
 */
export async function placeAsBefore(
  pieces: readonly Piece[],
  encode: (piece: Piece) => Promise<Uint8Array | undefined>,
  {
    records,
    source,
    file,
  }: { readonly records: FileRecords; readonly source: ByteSource; readonly file: FileBytes },
): Promise<PlacedFile | undefined> {
  if (!hasSameParts(pieces, records)) return undefined
  for (const piece of pieces) piece.at = piece.base!.at
  const sorted = pieces.filter(({ byteLength }) => byteLength > 0).toSorted((one, other) => one.at - other.at)
  const run = new SegmentRun()
  let last: EncodedPiece | undefined
  for (const piece of sorted) {
    const each = { piece, bytes: await encode(piece) }
    if (last && piece.at < run.byteLength) {
      if (isSamePart(last, each)) continue
      return (await isUnchanged(pieces, encode, file)) ? wholeOf(source) : undefined
    }
    await addGap(run, piece.at, source, file)
    run.add(each, NOTHING)
    last = each
  }
  await addGap(run, records.byteLength, source, file)
  return run.finish()
}

function hasSameParts(pieces: readonly Piece[], records: FileRecords): boolean {
  const key = (start: number, end: number): string => `${start}-${end}`
  const before = coverageOf(records).objects.map(({ start, end }) => key(start, end))
  const now: string[] = []
  for (const { base, byteLength } of pieces) {
    if (!base || base.byteLength !== byteLength) return false
    now.push(key(base.at, base.at + byteLength))
  }
  if (before.length !== now.length) return false
  const [one, other] = [before.sort(), now.sort()]
  return one.every((range, at) => range === other[at])
}

/** Parts of a damaged file may lie inside each other; as long as none says anything new, the file is its own copy. */
async function isUnchanged(
  pieces: readonly Piece[],
  encode: (piece: Piece) => Promise<Uint8Array | undefined>,
  file: FileBytes,
): Promise<boolean> {
  for (const piece of pieces) {
    const bytes = await encode(piece)
    if (!bytes) continue
    const { buffer, byteOffset, byteLength } = await file.read(piece.at, piece.byteLength)
    if (Buffer.compare(bytes, new Uint8Array(buffer, byteOffset, byteLength)) !== 0) return false
  }
  return true
}

function wholeOf(source: ByteSource): PlacedFile {
  const end = source.byteLength
  return { byteLength: end, segments: [{ kind: 'range', source, start: 0, end }] }
}

function isSamePart(one: EncodedPiece, other: EncodedPiece): boolean {
  if (one.piece.at !== other.piece.at || one.piece.byteLength !== other.piece.byteLength) return false
  if (!one.bytes || !other.bytes) return one.bytes === other.bytes
  return Buffer.compare(one.bytes, other.bytes) === 0
}

async function addGap(run: SegmentRun, end: number, source: ByteSource, file: FileBytes): Promise<void> {
  const start = run.byteLength
  if (end <= start) return
  if (end - start > GAP_IN_MEMORY_BYTES) {
    run.addSegment({ kind: 'range', source, start, end }, end - start)
    return
  }
  const view = await file.read(start, end - start)
  run.addBytes(new Uint8Array(view.buffer, view.byteOffset, view.byteLength))
}

const NOTHING = new Uint8Array(0)
const ZEROS = new Uint8Array(ALIGNMENT)

/** Segments of a plan; bytes that follow each other become one. */
class SegmentRun {
  byteLength = 0
  readonly #segments: WriteSegment[] = []
  #chunks: Uint8Array[] = []

  /** @param filler - what brings the part to its place */
  add({ piece, bytes }: EncodedPiece, filler: Uint8Array): void {
    const gap = piece.at - this.byteLength
    if (gap > 0) this.addBytes(filler.subarray(0, gap))
    if (bytes) this.addBytes(bytes)
    else if (piece.byteLength > 0) this.addSegment(piece.data!, piece.byteLength)
  }

  addBytes(bytes: Uint8Array): void {
    this.#chunks.push(bytes)
    this.byteLength += bytes.byteLength
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
    if (this.#chunks.length > 0) {
      this.#segments.push({ kind: 'bytes', bytes: new Uint8Array(Buffer.concat(this.#chunks)) })
    }
    this.#chunks = []
  }
}
