/**
 * A reader for headers that lie between payloads of any size. Its window is small after a far jump, so that a
 * thousand large tensors do not make it read a window of payload each, and doubles while headers come close after one
 * another, so that a million small records cost some hundred reads.
 */
import { ByteReader, READER_WINDOW_BYTES } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'

/** One page: what the system reads at least, and room for the dimensions of any usual header. */
const LEAST_WINDOW_BYTES = 4096

export class HeaderReader extends ByteReader {
  #windowBytes = LEAST_WINDOW_BYTES
  /** Where the last window ended. */
  #windowEnd = 0

  constructor(source: ByteSource) {
    super(source, 0)
  }

  override load(count: number): Promise<void> {
    const isNear = Math.abs(this.position - this.#windowEnd) <= this.#windowBytes
    this.#windowBytes = isNear ? Math.min(2 * this.#windowBytes, READER_WINDOW_BYTES) : LEAST_WINDOW_BYTES
    // A count beyond the end goes on as it is, because refusing it is the base's part.
    const wanted = Math.max(count, Math.min(this.#windowBytes, this.remaining))
    this.#windowEnd = this.position + wanted
    return super.load(wanted)
  }
}
