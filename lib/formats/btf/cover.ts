/**
 * Checks that the records of a file neither overlap nor leave gaps. Records are added in ascending order of offset, so
 * that comparing neighbours is enough.
 */
import type { ByteReader } from '../../bytes/reader.js'
import type { Report } from '../report.js'
import type { RecordExtent } from './record.js'
import { alignUp, U64_BYTES } from './schema.js'

export class Cover {
  /** End offset of all data so far, and the record that ends there. */
  #end: number
  #owner = -1
  /** End offset of the padding after `#end`: a misaligned record may be padded to a multiple of 8 from its own start. */
  #paddedEnd: number
  /** False while `#end` does not belong to the last record added: its padding is then unknown, or checked already. */
  #hasPadding = false
  /** False after a record whose end is unknown: from there on gaps cannot be detected. */
  #isEndKnown = true
  readonly #byteLength: number
  readonly #report: Report

  constructor(byteLength: number, count: number, report: Report) {
    this.#end = U64_BYTES + U64_BYTES * count
    this.#paddedEnd = this.#end
    this.#byteLength = byteLength
    this.#report = report
  }

  /** End offset of all data so far. */
  get end(): number {
    return this.#end
  }

  /** Number of padding bytes between `end` and `next`, the start of the next record or the end of the file. */
  paddingBefore(next: number): number {
    // A misaligned record may start inside the padding; its header is not padding.
    return this.#hasPadding ? Math.max(0, Math.min(this.#paddedEnd, next) - this.#end) : 0
  }

  /** Checks `length` bytes of padding at the reader's position; the reader holds them. */
  checkPadding(reader: ByteReader, length: number): void {
    for (let at = this.#end; at < this.#end + length; at++) {
      if (reader.u8() === 0) continue
      const record = `tensors[${this.#owner}]`
      this.#report.deviation('ERR_GAP', () => `${record}: the padding byte at ${at} is not zero.`, {
        path: `${record}.padding`,
        offset: at,
      })
      return
    }
  }

  /** Adds the next record by offset; `extent` is undefined for a record that cannot be read. */
  add(index: number, offset: number, extent: RecordExtent | undefined): void {
    if (offset < this.#end) {
      const owner = this.#owner
      const end = this.#end
      // Refused at both levels: with shared bytes a small file could declare any number of tensors.
      this.#report.broken(
        'ERR_OVERLAP',
        () => `tensors[${index}] starts at ${offset}, inside tensors[${owner}], which ends at ${end}.`,
        () => ({ path: `tensors[${index}]`, offset }),
      )
    } else {
      this.#checkGap(offset)
      this.#hasPadding = false
    }
    if (extent === undefined) this.#isEndKnown = false
    else if (extent.end >= this.#end) {
      this.#end = extent.end
      this.#paddedEnd = Math.max(alignUp(extent.end), offset + alignUp(extent.end - offset))
      this.#owner = index
      this.#hasPadding = true
    }
  }

  /** Checks the end of the file after the last record. */
  finish(): void {
    this.#checkGap(this.#byteLength)
    const padded = alignUp(this.#end)
    if (!this.#isEndKnown || this.#byteLength >= padded) return
    const message = `The last record lacks ${padded - this.#byteLength} bytes of padding, which is legal; TFRT's writer pads it.`
    this.#report.note('FILE_PADDING_MISSING', message, {
      path: `tensors[${this.#owner}]`,
      offset: this.#end,
    })
  }

  #checkGap(next: number): void {
    const padded = this.#paddedEnd
    if (!this.#isEndKnown || next <= padded) return
    this.#report.deviation('ERR_GAP', () => `${next - padded} bytes at ${padded} belong to no record.`, {
      path: '',
      offset: padded,
    })
  }
}
