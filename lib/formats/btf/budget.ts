/** Bounds what a file makes a reader keep, and what it makes a user of all its tensors load. */
import type { Limits } from '../format.js'
import type { BtfRecord, RecordExtent } from './record.js'
import type { Report } from './report.js'
import {
  DEFAULT_HEADER_BYTES_LIMIT,
  HEADER_BYTES_LIMIT_IN_FILES,
  TOTAL_BYTES_LIMIT_IN_FILES,
  U64_BYTES,
} from './schema.js'

export class Budget {
  #headerBytes: number
  #totalBytes = 0
  readonly #headerLimit: number
  readonly #totalLimit: number
  readonly #report: Report

  constructor(byteLength: number, count: number, limits: Limits, report: Report) {
    this.#headerBytes = U64_BYTES + U64_BYTES * count
    this.#headerLimit =
      limits.headerBytes ?? Math.min(DEFAULT_HEADER_BYTES_LIMIT, HEADER_BYTES_LIMIT_IN_FILES * byteLength)
    this.#totalLimit = limits.totalBytes ?? TOTAL_BYTES_LIMIT_IN_FILES * byteLength
    this.#report = report
  }

  /** False when a limit is passed: the rest of the file is then not looked at. */
  spend(index: number, record: BtfRecord, extent: RecordExtent, isRepeated: boolean): boolean {
    this.#totalBytes += extent.payloadBytes
    if (!isRepeated) this.#headerBytes += extent.headerBytes
    if (this.#headerBytes > this.#headerLimit) {
      const what = `The headers up to tensors[${index}] have ${this.#headerBytes} bytes`
      return this.#refuse(index, record, `${what}; limits.headerBytes is ${this.#headerLimit}.`)
    }
    if (this.#totalBytes > this.#totalLimit) {
      const what = `The tensors up to tensors[${index}] decode to ${this.#totalBytes} bytes`
      return this.#refuse(index, record, `${what}; limits.totalBytes is ${this.#totalLimit}.`)
    }
    return true
  }

  #refuse(index: number, { offset }: BtfRecord, message: string): false {
    this.#report.broken('ERR_LIMIT', () => ({ message, path: `tensors[${index}]`, offset }))
    return false
  }
}
