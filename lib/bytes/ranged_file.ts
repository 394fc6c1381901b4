/**
 * A file that is read by ranges and never mapped: for untrusted writers, who could truncate a mapped file under the
 * reader, and for network shares. Every read is a copy, and every read looks whether the file is still the one that
 * was opened.
 */
import { type BigIntStats, closeSync, constants, fstat, fstatSync, openSync, read, readSync } from 'node:fs'
import { promisify } from 'node:util'
import { TileworkError } from '../errors.js'
import { checkRange, closedError } from './check_range.js'
import type { ByteSource } from './source.js'
import { systemError } from './system_error.js'
import { allocateBytes } from './view_limit.js'

const readAsync = promisify(read)
const fstatAsync = promisify(fstat) as (descriptor: number, options: { bigint: true }) => Promise<BigIntStats>

/** Node and several kernels refuse or cut a single read of 2 GiB or more; a page below that stays aligned. */
const MAX_READ_BYTES = 2 ** 31 - 4096

export class RangedFileSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #descriptor: number
  readonly #modified: bigint
  #readsInFlight = 0
  #closed = false

  /** @throws TileworkError ERR_IO, also for folders; ERR_ARGUMENT for pipes and devices, which have no fixed length */
  constructor(path: string) {
    this.label = path
    // Without O_NONBLOCK the open of a pipe that nobody writes to would hang this thread for ever.
    const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
    this.#descriptor = systemError.wrap(path, () => openSync(path, flags))
    try {
      const stat = systemError.wrap(path, () => fstatSync(this.#descriptor, { bigint: true }))
      checkRegular(path, stat)
      this.byteLength = Number(stat.size)
      this.#modified = stat.mtimeNs
    } catch (error) {
      closeSync(this.#descriptor)
      throw error
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.#checkUse(start, end)
    this.#readsInFlight += 1
    try {
      return await systemError.wrapAsync(this.label, () => this.#readRange(start, end))
    } finally {
      this.#readsInFlight -= 1
      if (this.#closed && this.#readsInFlight === 0) closeSync(this.#descriptor)
    }
  }

  readSync(start: number, end: number): Uint8Array {
    this.#checkUse(start, end)
    return systemError.wrap(this.label, () => {
      const bytes = allocateBytes(end - start)
      for (let done = 0; done < bytes.byteLength; ) {
        const count = Math.min(bytes.byteLength - done, MAX_READ_BYTES)
        const got = readSync(this.#descriptor, bytes, done, count, start + done)
        if (got === 0) throw this.#changedError('it ends earlier than before')
        done += got
      }
      this.#checkUnchanged(fstatSync(this.#descriptor, { bigint: true }))
      return bytes
    })
  }

  /** Reads that are on their way end well; the descriptor is closed after the last, so its number is never reused under one. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    if (this.#readsInFlight === 0) closeSync(this.#descriptor)
  }

  async #readRange(start: number, end: number): Promise<Uint8Array> {
    const bytes = allocateBytes(end - start)
    for (let done = 0; done < bytes.byteLength; ) {
      const count = Math.min(bytes.byteLength - done, MAX_READ_BYTES)
      const { bytesRead } = await readAsync(this.#descriptor, bytes, done, count, start + done)
      if (bytesRead === 0) throw this.#changedError('it ends earlier than before')
      done += bytesRead
    }
    // After the bytes, not before: a change between the check and the read would go unseen.
    this.#checkUnchanged(await fstatAsync(this.#descriptor, { bigint: true }))
    return bytes
  }

  #checkUse(start: number, end: number): void {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
  }

  #checkUnchanged(stat: BigIntStats): void {
    if (Number(stat.size) !== this.byteLength) {
      throw this.#changedError(`it had ${this.byteLength} bytes and has ${stat.size}`)
    }
    if (stat.mtimeNs !== this.#modified) throw this.#changedError('its modification time moved')
  }

  #changedError(how: string): TileworkError {
    const message = `${this.label} was changed by someone else while it was open: ${how}.`
    return new TileworkError('ERR_FILE_CHANGED', message, { path: this.label })
  }
}

/** The same codes as for a file that is mapped. */
function checkRegular(path: string, stat: BigIntStats): void {
  if (stat.isDirectory()) throw new TileworkError('ERR_IO', `${path}: EISDIR: it is a folder.`, { path })
  if (stat.isFile()) return
  throw new TileworkError('ERR_ARGUMENT', `${path} is no regular file and cannot be read by ranges.`, {
    path,
  })
}
