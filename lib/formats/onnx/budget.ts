/** Bounds what a file makes a reader walk and keep, and what a user of all its tensors would load. */
import { FileFault } from '../file_fault.js'
import type { Limits } from '../format.js'
import type { Report } from '../report.js'
import {
  DEFAULT_DEPTH_LIMIT,
  DEFAULT_HEADER_BYTES_LIMIT,
  DEFAULT_TENSORS_LIMIT,
  TOTAL_BYTES_LIMIT_IN_FILES,
} from './schema.js'

export class Budget {
  readonly depth: number
  readonly #limits: Limits
  #tensors = 0
  #totalBytes = 0
  /** Bytes of all files opened so far. */
  #fileBytes = 0

  constructor(limits: Limits) {
    this.#limits = limits
    this.depth = limits.depth ?? DEFAULT_DEPTH_LIMIT
  }

  addFile(byteLength: number): void {
    this.#fileBytes += byteLength
  }

  /** @throws FileFault when more bytes outside payloads were read than may be */
  checkHeaderBytes(bytesRead: number, offset: number): void {
    const limit = this.#limits.headerBytes ?? DEFAULT_HEADER_BYTES_LIMIT
    if (bytesRead <= limit) return
    const message = `${bytesRead} bytes outside payloads were read; limits.headerBytes is ${limit}.`
    throw new FileFault('ERR_LIMIT', message, offset)
  }

  /** How many more tensors there may be. */
  get tensorsLeft(): number {
    return this.#tensorsLimit - this.#tensors
  }

  /** @throws FileFault for one tensor too many */
  spendTensors(count: number, offset: number): void {
    this.#tensors += count
    const limit = this.#tensorsLimit
    if (this.#tensors <= limit) return
    throw new FileFault(
      'ERR_LIMIT',
      `The file has more than ${limit} tensors, which is limits.tensors.`,
      offset,
    )
  }

  get #tensorsLimit(): number {
    return this.#limits.tensors ?? DEFAULT_TENSORS_LIMIT
  }

  /** @throws FileFault for messages too deep in each other */
  checkDepth(depth: number, offset: number): void {
    if (depth <= this.depth) return
    throw new FileFault(
      'ERR_LIMIT',
      `Messages are nested deeper than ${this.depth}, which is limits.depth.`,
      offset,
    )
  }

  spendBytes(byteLength: number): void {
    this.#totalBytes += byteLength
  }

  /** False when all tensors together have too many bytes, which is reported. Asked when all files are known. */
  checkTotal(report: Report): boolean {
    const limit = this.#limits.totalBytes ?? TOTAL_BYTES_LIMIT_IN_FILES * this.#fileBytes
    if (this.#totalBytes <= limit) return true
    const message = `The tensors have ${this.#totalBytes} bytes together; limits.totalBytes is ${limit}.`
    report.broken('ERR_LIMIT', message, { path: '', offset: 0 })
    return false
  }
}
