/** A Blob or File as a source: each read takes a slice, so that a large file on disk is never read whole. */
import { checkRange, checkReturned, closedError } from './check_range.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'

export class BlobSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #blob: Blob
  #closed = false

  constructor(blob: Blob) {
    this.#blob = blob
    this.byteLength = blob.size
    const { name } = blob as { readonly name?: unknown }
    this.label = typeof name === 'string' && name !== '' ? name : 'blob'
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    const buffer = await systemError.wrapAsync(this.label, () => this.#blob.slice(start, end).arrayBuffer())
    return checkReturned(new Uint8Array(buffer), start, end, this.label)
  }

  close(): void {
    this.#closed = true
  }
}
