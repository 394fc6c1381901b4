/**
 * Bytes that arrive in chunks, copied into blocks that grow. A list of the chunks would take 200 bytes for each, however short it
 * is: the sender chooses their length.
 */

const FIRST_BLOCK_BYTES = 64 * 1024
/** The last block is half empty on average. */
const LARGEST_BLOCK_BYTES = 8 * 1024 * 1024

export class CollectedBytes {
  #blocks: Uint8Array[] = []
  /** Free bytes at the end of the last block. */
  #free = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  add(chunk: Uint8Array): void {
    for (let done = 0; done < chunk.byteLength; ) {
      if (this.#free === 0) this.#grow()
      const block = this.#blocks.at(-1)!
      const part = chunk.subarray(done, done + this.#free)
      block.set(part, block.byteLength - this.#free)
      this.#free -= part.byteLength
      this.#length += part.byteLength
      done += part.byteLength
    }
  }

  /** All bytes, in memory of their own. Takes them out. */
  take(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.#length)
    let offset = 0
    for (const block of this.#blocks) {
      const end = Math.min(offset + block.byteLength, bytes.byteLength)
      bytes.set(block.subarray(0, end - offset), offset)
      offset = end
    }
    this.#blocks = []
    this.#free = 0
    this.#length = 0
    return bytes
  }

  #grow(): void {
    const byteLength = Math.min(Math.max(this.#length, FIRST_BLOCK_BYTES), LARGEST_BLOCK_BYTES)
    // Not of Node's pool, and not cleared: every byte is written before it is read.
    this.#blocks.push(Buffer.allocUnsafeSlow(byteLength))
    this.#free = byteLength
  }
}
