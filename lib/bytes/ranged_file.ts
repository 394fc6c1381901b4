/**
 * A file that is read by ranges and never mapped: for network shares, and for files that an untrusted writer could truncate
 * during a read. Every read copies, and verifies that the file has not changed since it was opened.
 */
import type { NativeInputFile } from '../native/types.js'
import { checkRange, closedError } from './check_range.js'
import { type FileBelow, openNativeFile, pathOfFile } from './open_native.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'
import { unfilledBytes } from './view_limit.js'

export class RangedFileSource implements ByteSource {
  /** The addon's file, for jobs that read it without passing through JavaScript. */
  readonly native: NativeInputFile
  readonly byteLength: number
  readonly label: string
  #closed = false

  /** @throws TileworkError ERR_IO, also for folders; ERR_ARGUMENT for pipes and devices, whose length is not fixed; ERR_NATIVE_LOAD */
  constructor(file: string | FileBelow) {
    this.label = pathOfFile(file)
    this.native = openNativeFile(file, { mapped: false, guard: false })
    this.byteLength = this.native.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const bytes = this.#target(start, end)
    await systemError.wrapAsync(this.label, () => this.native.read(start, bytes))
    return bytes
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    this.#checkUse(start, start + target.byteLength)
    await systemError.wrapAsync(this.label, () => this.native.read(start, target))
  }

  readIntoSync(start: number, target: Uint8Array): void {
    this.#checkUse(start, start + target.byteLength)
    systemError.wrap(this.label, () => this.native.readSync(start, target))
  }

  readSync(start: number, end: number): Uint8Array {
    const bytes = this.#target(start, end)
    systemError.wrap(this.label, () => this.native.readSync(start, bytes))
    return bytes
  }

  /** Pending reads complete. */
  close(): void {
    this.#closed = true
    this.native.close(false)
  }

  #checkUse(start: number, end: number): void {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
  }

  #target(start: number, end: number): Uint8Array {
    this.#checkUse(start, end)
    return unfilledBytes(end - start)
  }
}
