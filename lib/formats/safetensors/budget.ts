/** Bounds what a file, or an index with all its shards, makes a reader keep and a user of all its tensors load. */
import type { Limits } from '../format.js'
import type { Place, Report } from '../report.js'
import {
  DEFAULT_HEADER_BYTES_LIMIT,
  DEFAULT_TENSORS_LIMIT,
  FORMAT_HEADER_BYTES,
  TOTAL_BYTES_LIMIT_IN_FILES,
} from './schema.js'

export class Budget {
  readonly #limits: Limits
  #headerBytes = 0
  #tensors = 0
  #totalBytes = 0
  /** Bytes of all files opened so far. */
  #fileBytes = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  addFile(byteLength: number): void {
    this.#fileBytes += byteLength
  }

  /** False when a header of so many bytes may not be read; that is reported. Asked before a byte of it is read. */
  spendHeader(byteLength: number | bigint, report: Report): boolean {
    const place: Place = { path: '', offset: 0 }
    const limit = this.#limits.headerBytes ?? DEFAULT_HEADER_BYTES_LIMIT
    const total = Number(byteLength) + this.#headerBytes
    if (total > limit) {
      const message = `The header has ${byteLength} bytes, with those before it ${total}; limits.headerBytes is ${limit}.`
      report.broken('ERR_LIMIT', message, place)
      return false
    }
    if (byteLength > FORMAT_HEADER_BYTES) {
      const message = `The header has ${byteLength} bytes; the format ends at ${FORMAT_HEADER_BYTES}.`
      report.deviation('ERR_LIMIT', message, place)
    }
    this.#headerBytes = total
    return true
  }

  /** Why so many tensors may not be; undefined when they may. */
  refusalOfTensors(count: number): string | undefined {
    const limit = this.#limits.tensors ?? DEFAULT_TENSORS_LIMIT
    return count > limit ? `The file has more than ${limit} tensors, which is limits.tensors.` : undefined
  }

  /** Why a further tensor of so many bytes may not be; undefined when it may. */
  spendTensor(byteLength: number): string | undefined {
    this.#tensors += 1
    this.#totalBytes += byteLength
    const tooMany = this.refusalOfTensors(this.#tensors)
    if (tooMany !== undefined) return tooMany
    const bytesLimit = this.#limits.totalBytes ?? TOTAL_BYTES_LIMIT_IN_FILES * this.#fileBytes
    if (this.#totalBytes > bytesLimit) {
      return `The tensors up to this one have ${this.#totalBytes} bytes; limits.totalBytes is ${bytesLimit}.`
    }
    return undefined
  }
}
