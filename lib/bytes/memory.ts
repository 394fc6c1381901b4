/** Bytes in memory as a source. Its views share the owner's memory, so there is nothing to free or revoke. */
import { TileworkError } from '../errors.js'
import { yieldToEventLoop } from '../event_loop.js'
import { checkRange, closedError } from './check_range.js'
import type { ByteSource } from './source.js'
import { bytesOfView } from './view_bytes.js'

export class MemorySource implements ByteSource {
  /** See `fillMemory`. */
  readonly fillsOnThread = true
  readonly byteLength: number
  readonly label: string
  #bytes: Uint8Array | undefined

  /** @throws TileworkError ERR_ARGUMENT for a view on a detached buffer */
  constructor(bytes: Uint8Array, label = 'memory') {
    this.#bytes = bytesOfView(bytes, label)
    this.byteLength = this.#bytes.byteLength
    this.label = label
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    await yieldToEventLoop()
    return this.readSync(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    if (this.#bytes === undefined) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    // The owner may transfer the buffer to a worker or shrink it; either leaves the view empty.
    if (this.#bytes.byteLength !== this.byteLength) throw changedError(this.label)
    return this.byteLength === 0 ? new Uint8Array(0) : this.#bytes.subarray(start, end)
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    await yieldToEventLoop()
    this.readIntoSync(start, target)
  }

  /** Reads and copies without yielding to the event loop, where the owner could transfer the memory. */
  readIntoSync(start: number, target: Uint8Array): void {
    target.set(this.readSync(start, start + target.byteLength))
  }

  close(): void {
    this.#bytes = undefined
  }
}

function changedError(label: string): TileworkError {
  const message = `the buffer of ${label} was transferred or shrunk while it was open.`
  return new TileworkError('ERR_FILE_CHANGED', message, { path: label })
}
