/**
 * A memory-mapped file as a source. Views share the mapping's memory where the runtime allows, so opening costs no
 * read and a tensor's bytes no copy. The mapping lives until its last view is gone; `close` ends new use at once.
 */
import { type NativeInputFile, native } from '../native.js'
import { checkRange, closedError } from './check_range.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'

export interface MappedFileOptions {
  /**
   * Survive a file that someone truncates while it is read: what is gone reads as zeros, and the read, or the next
   * one, ends in ERR_FILE_CHANGED. Without it the system kills the process with SIGBUS.
   */
  readonly guard?: boolean
}

export class MappedFileSource implements ByteSource {
  /** The addon's file, for jobs that run on it without passing through JavaScript. */
  readonly native: NativeInputFile
  readonly byteLength: number
  readonly label: string
  #closed = false

  /** @throws TileworkError ERR_IO, ERR_NATIVE_LOAD */
  constructor(path: string, options: MappedFileOptions = {}) {
    const addon = native()
    this.native = systemError.wrap(path, () =>
      addon.openInput(path, { mapped: true, guard: options.guard === true }),
    )
    this.byteLength = this.native.byteLength
    this.label = path
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    return this.readSync(start, end)
  }

  readSync(start: number, end: number): Uint8Array {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    return systemError.wrap(this.label, () => this.native.view(start, end))
  }

  /** `revoke` detaches the views given out too; never while an asynchronous call of Node uses one. */
  close(options: { readonly revoke?: boolean } = {}): void {
    this.#closed = true
    systemError.wrap(this.label, () => this.native.close(options.revoke === true))
  }
}
