/** Bytes in memory as a source. Views share the owner's memory, so there is nothing to free or to revoke. */
import { checkRange, closedError } from './check_range.js'
import type { ByteSource } from './source.js'

export class MemorySource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  #bytes: Uint8Array | undefined

  constructor(bytes: Uint8Array, label = 'memory') {
    // A plain view: a Buffer's own `slice` and friends would otherwise leak to users.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.byteLength = bytes.byteLength
    this.label = label
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.readSync(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    if (this.#bytes === undefined) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    return this.#bytes.subarray(start, end)
  }

  close(): void {
    this.#bytes = undefined
  }
}
