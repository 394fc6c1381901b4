/** Collects the segments of a message that is written: small chunks are joined, and so are adjacent ranges of a source. */
import type { ByteSource } from '../../../bytes/source.js'
import type { WriteSegment } from '../../format.js'
import { type PlannedMessage, segmentBytes } from '../tensor/plan.js'
import { LENGTH } from './wire.js'
import { varintBytes } from './wire_writer.js'

/** Ranges up to this length are copied into memory between new bytes; longer ones are written from the file. */
const MAX_COPIED_BYTES = 512

/** Bytes joined to one segment. */
const JOINED_BYTES = 64 * 1024

export class Segments {
  readonly #segments: WriteSegment[] = []
  /** Bytes that are not a segment yet. */
  #parts: Uint8Array[] = []
  #partBytes = 0
  /** The last range, which may grow. */
  #source: ByteSource | undefined
  #start = 0
  #end = 0
  #byteLength = 0

  bytes(bytes: Uint8Array): void {
    this.#endRange()
    this.#addBytes(bytes)
    this.#byteLength += bytes.byteLength
  }

  range(source: ByteSource, start: number, end: number): void {
    this.#byteLength += end - start
    if (this.#source === source && this.#end === start) {
      this.#end = end
      return
    }
    this.#endRange()
    this.#source = source
    this.#start = start
    this.#end = end
  }

  /** A nested message. */
  message(number: number, { byteLength, segments }: PlannedMessage): void {
    this.bytes(Uint8Array.from([...varintBytes(number * 8 + LENGTH), ...varintBytes(byteLength)]))
    for (const segment of segments) this.segment(segment)
  }

  segment(segment: WriteSegment): void {
    if (segment.kind === 'bytes') this.bytes(segment.bytes)
    else if (segment.kind === 'range') this.range(segment.source, segment.start, segment.end)
    else {
      this.#endRange()
      this.#endBytes()
      this.#segments.push(segment)
      this.#byteLength += segmentBytes(segment)
    }
  }

  finish(): PlannedMessage {
    this.#endRange()
    this.#endBytes()
    return { byteLength: this.#byteLength, segments: this.#segments }
  }

  #endRange(): void {
    const source = this.#source
    if (!source) return
    this.#source = undefined
    const [start, end] = [this.#start, this.#end]
    if (end - start <= MAX_COPIED_BYTES && source.readIntoSync) {
      const bytes = Buffer.allocUnsafe(end - start)
      source.readIntoSync(start, bytes)
      this.#addBytes(bytes)
    } else {
      this.#endBytes()
      this.#segments.push({ kind: 'range', source, start, end })
    }
  }

  #addBytes(bytes: Uint8Array): void {
    this.#parts.push(bytes)
    this.#partBytes += bytes.byteLength
    if (this.#partBytes >= JOINED_BYTES) this.#endBytes()
  }

  #endBytes(): void {
    if (this.#partBytes === 0) return
    const [first, ...others] = this.#parts
    const bytes = others.length === 0 ? first! : Buffer.concat(this.#parts, this.#partBytes)
    this.#segments.push({ kind: 'bytes', bytes })
    this.#parts = []
    this.#partBytes = 0
  }
}
