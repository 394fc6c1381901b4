/** A source that counts reads and returns copies, as a file on disk does. */
import { expect } from 'vitest'
import type { ByteSource } from '../../lib/bytes/source.js'

export class CountingSource implements ByteSource {
  readonly byteLength: number
  bytesRead = 0
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.byteLength = bytes.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.readSync(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    expect(start).toBeGreaterThanOrEqual(0)
    expect(end).toBeLessThanOrEqual(this.byteLength)
    this.bytesRead += end - start
    return this.#bytes.slice(start, end)
  }
}
