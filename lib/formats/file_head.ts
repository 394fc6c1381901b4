/**
 * The first bytes of a file. They are read once and every format's detection looks at them, because each read of a
 * remote source is a request.
 */
import { lostBytesError } from '../bytes/check_range.js'
import type { ByteSource } from '../bytes/source.js'

/** One page: as cheap to read as a single byte, and more than a ZIP local header with a name of 1,024 bytes. */
export const HEAD_BYTES = 4096

export class FileHead {
  readonly source: ByteSource
  /** The first {@link HEAD_BYTES} bytes, or the whole of a shorter file. */
  readonly bytes: Uint8Array

  private constructor(source: ByteSource, bytes: Uint8Array) {
    this.source = source
    this.bytes = bytes
  }

  /** @throws TileworkError ERR_FILE_CHANGED when the source gives fewer bytes than it has, and what the source throws */
  static async read(source: ByteSource): Promise<FileHead> {
    return new FileHead(source, await readWhole(source, 0, Math.min(HEAD_BYTES, source.byteLength)))
  }

  /** Length of the file in bytes. */
  get byteLength(): number {
    return this.source.byteLength
  }

  /** A range of the file, read again only where it does not lie in the head; undefined where the file ends before. */
  async range(start: number, end: number): Promise<DataView | undefined> {
    if (end > this.byteLength) return undefined
    const isHeld = end <= this.bytes.byteLength
    const bytes = isHeld ? this.bytes.subarray(start, end) : await readWhole(this.source, start, end)
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
}

/** A copy, because the bytes may be a caller's memory, which may change or be transferred between two looks. */
async function readWhole(source: ByteSource, start: number, end: number): Promise<Uint8Array> {
  const bytes = await source.read(start, end)
  if (bytes.byteLength !== end - start) throw lostBytesError(source.label)
  return new Uint8Array(bytes)
}
