/**
 * A memory-mapped file as a source. Views share the mapping's memory where the runtime allows, so a tensor's bytes cost no
 * copy. The mapping lives until its last view is collected; after `close` no new view can be made. tilework itself reads through
 * the descriptor, so only code that reads a view can crash when the file is truncated.
 */
import { yieldToEventLoop } from '../event_loop.js'
import type { NativeInputFile } from '../native/types.js'
import { checkRange, closedError } from './check_range.js'
import { type FileBelow, openNativeFile, pathOfFile } from './open_native.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'
import { unfilledBytes } from './view_limit.js'

export interface MappedFileOptions {
  /**
   * Survive the truncation of the file: missing bytes read as zeros, and this read or the next one fails with
   * ERR_FILE_CHANGED. Without it, the system kills the process with SIGBUS.
   */
  readonly guard?: boolean
}

/** Copied on the calling thread: 1 MiB takes some 50 µs, about as much as handing the copy to another thread. */
const MAX_SYNC_COPY_BYTES = 1024 * 1024

export class MappedFileSource implements ByteSource {
  /** The addon's file, for jobs that read it without passing through JavaScript. */
  readonly native: NativeInputFile
  readonly byteLength: number
  readonly label: string
  #closed = false

  /** @throws TileworkError ERR_IO, ERR_NATIVE_LOAD */
  constructor(file: string | FileBelow, options: MappedFileOptions = {}) {
    this.label = pathOfFile(file)
    this.native = openNativeFile(file, { mapped: true, guard: options.guard === true })
    this.byteLength = this.native.byteLength
  }

  view(start: number, end: number): Uint8Array {
    this.#checkUse(start, end)
    return systemError.wrap(this.label, () => this.native.view(start, end))
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.#checkUse(start, end)
    const bytes = unfilledBytes(end - start)
    await this.readInto(start, bytes)
    return bytes
  }

  readSync(start: number, end: number): Uint8Array {
    this.#checkUse(start, end)
    const bytes = unfilledBytes(end - start)
    this.readIntoSync(start, bytes)
    return bytes
  }

  /** Copies small ranges on this thread. */
  async readInto(start: number, target: Uint8Array): Promise<void> {
    await yieldToEventLoop()
    if (target.byteLength <= MAX_SYNC_COPY_BYTES) this.readIntoSync(start, target)
    else {
      this.#checkUse(start, start + target.byteLength)
      await systemError.wrapAsync(this.label, () => this.native.read(start, target))
    }
  }

  readIntoSync(start: number, target: Uint8Array): void {
    this.#checkUse(start, start + target.byteLength)
    try {
      this.native.readSync(start, target)
    } catch (error) {
      throw systemError.from(this.label, error)
    }
  }

  /** `revoke` also detaches all views; never do that while an asynchronous call of Node uses one. */
  close(options: { readonly revoke?: boolean } = {}): void {
    this.#closed = true
    systemError.wrap(this.label, () => this.native.close(options.revoke === true))
  }

  #checkUse(start: number, end: number): void {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
  }
}
