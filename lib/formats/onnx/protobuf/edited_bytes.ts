/**
 * The file of messages, and bytes of short ones after edits. As lists of fields the nodes and types of a large graph would take ten times the memory of their
 * bytes. The bytes are in blocks, each of which is freed with the last message in it.
 */
import { MemorySource } from '../../../bytes/memory.js'
import type { ByteSource } from '../../../bytes/source.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { LENGTH, WireCursor } from './wire.js'
import { varintBytes } from './wire_writer.js'

/** Larger messages keep lists of their edited fields. */
export const MAX_EDITED_BYTES = 512

const BLOCK_BYTES = 64 * 1024

/** State shared by the messages of a file: its bytes, one cursor, and the open external files. */
export interface MessageFile {
  readonly source: ByteSource
  readonly cursor: WireCursor
  /** Open files of external data by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  readonly depthLimit: number
  /** Bytes of edited messages; made at the first edit. */
  edited?: EditedBytes
}

export class EditedBytes {
  readonly #original: MessageFile
  #block = new Uint8Array(0)
  /** The file with the last message, and where that is. */
  file: MessageFile
  start = 0
  end = 0

  /** @param original - the file of the messages */
  constructor(original: MessageFile) {
    this.#original = original
    this.file = original
  }

  /** Starts a message, which the caller puts together from `copy` and `field`; the ones before stay. */
  begin(): void {
    if (this.end + MAX_EDITED_BYTES > this.#block.byteLength) this.#addBlock()
    this.start = this.end
  }

  /** Ends the message. @returns false for too long a message, which is dropped */
  finish(): boolean {
    if (this.end - this.start <= MAX_EDITED_BYTES) return true
    this.end = this.start
    return false
  }

  /** Appends `bytes[start, end)`: a view of a few bytes would take longer to make than to copy. */
  copy(bytes: Uint8Array, start: number, end: number): void {
    let to = this.end
    // Writes behind the block, by a message that is too long, have no effect.
    for (let at = start; at < end; at++) this.#block[to++] = bytes[at]!
    this.end = to
  }

  /** Appends a length-delimited field. */
  field(number: number, value: string | Uint8Array): void {
    const { length } = value
    if (number >= 16 || length >= 128) this.#longField(number, value)
    else {
      const start = this.end
      this.#block[start] = number * 8 + LENGTH
      this.#block[start + 1] = length
      this.end = start + 2
      if (typeof value !== 'string') this.copy(value, 0, length)
      else if (!this.#ascii(value)) {
        this.end = start
        this.#longField(number, value)
      }
    }
  }

  #longField(number: number, value: string | Uint8Array): void {
    const bytes = typeof value === 'string' ? Buffer.from(value) : value
    const head = [...varintBytes(number * 8 + LENGTH), ...varintBytes(bytes.byteLength)]
    this.copy(Uint8Array.from(head), 0, head.length)
    this.copy(bytes, 0, bytes.byteLength)
  }

  /** @returns false for a text with other characters */
  #ascii(text: string): boolean {
    let to = this.end
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code > 0x7f) return false
      this.#block[to++] = code
    }
    this.end = to
    return true
  }

  #addBlock(): void {
    this.#block = allocateBytes(BLOCK_BYTES)
    this.end = 0
    const source = new MemorySource(this.#block, this.#original.source.label)
    this.file = { ...this.#original, source, cursor: WireCursor.over(this.#block), edited: this }
  }
}

/** True where `bytes[start, end)` are the UTF-8 of a text. */
export function isText(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start < text.length) return false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code > 0x7f) return Buffer.from(text).equals(bytes.subarray(start, end))
    if (bytes[start + at] !== code) return false
  }
  return end - start === text.length
}
