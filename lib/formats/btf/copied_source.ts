/**
 * A source whose last range is held in memory of its own, for one reader of headers. An open waits between its reads, and
 * meanwhile whoever gave it a buffer may send that to a worker, which takes the bytes from every view of it.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'

export class CopiedSource implements ByteSource {
  readonly byteLength: number
  readonly #source: ByteSource
  #copy = new Uint8Array(0)

  constructor(source: ByteSource) {
    this.#source = source
    this.byteLength = source.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const bytes = await this.#source.read(start, end)
    const length = end - start
    if (bytes.byteLength !== length) {
      const label = this.#source.label ?? 'the source'
      throw new TileworkError('ERR_FILE_CHANGED', `${label} lost its bytes while it was read.`, {
        path: label,
      })
    }
    if (this.#copy.byteLength < length) this.#copy = new Uint8Array(length)
    this.#copy.set(bytes)
    return this.#copy.subarray(0, length)
  }
}
