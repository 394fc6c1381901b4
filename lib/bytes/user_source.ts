/**
 * Wraps a caller's source (HTTP, object storage) and enforces its contract: the right number of bytes or an error. The caller
 * owns the source: `close` closes this wrapper only.
 */
import { checkRange, checkReturned, closedError } from './check_range.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'

export class UserSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** Present only where the caller's source has it: its presence says that synchronous reads work. */
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #source: ByteSource
  #closed = false

  constructor(source: ByteSource) {
    this.#source = source
    this.byteLength = source.byteLength
    const { label } = source
    this.label = typeof label === 'string' ? label : 'source'
    if (typeof source.readSync === 'function') {
      this.readSync = (start, end) => {
        this.#checkUse(start, end)
        const bytes = systemError.wrap(this.label, () => source.readSync?.(start, end))
        return checkReturned(bytes, start, end, this.label)
      }
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.#checkUse(start, end)
    const bytes = await systemError.wrapAsync(this.label, () => this.#source.read(start, end))
    return checkReturned(bytes, start, end, this.label)
  }

  close(): void {
    this.#closed = true
  }

  #checkUse(start: number, end: number): void {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
  }
}
