/** Sees that records do not share bytes and leave none over, as they come by ascending offset. */
import type { ByteReader } from '../../bytes/reader.js'
import type { RecordExtent } from './record.js'
import type { Report } from './report.js'
import { alignUp, U64_BYTES } from './schema.js'

export class Cover {
  /** First byte behind all data so far, and the record it belongs to. */
  #end: number
  #owner = -1
  /** False when a record behind `#end` was seen, whose own end is unknown. */
  #isEndOpen = false
  /** False behind a record whose end is unknown: then gaps cannot be told. */
  #isEndKnown = true
  readonly #byteLength: number
  readonly #report: Report

  constructor(byteLength: number, count: number, report: Report) {
    this.#end = U64_BYTES + U64_BYTES * count
    this.#byteLength = byteLength
    this.#report = report
  }

  /** First byte behind all data so far. */
  get end(): number {
    return this.#end
  }

  /** How many bytes at `end` are padding, where the next record, or nothing more, starts at `next`. */
  paddingBefore(next: number): number {
    // A misaligned record may start in what would be padding; its header is none.
    return this.#isEndOpen ? Math.max(0, Math.min(alignUp(this.#end), next) - this.#end) : 0
  }

  /** Looks at `length` bytes of padding, which the reader stands before and holds. */
  checkPadding(reader: ByteReader, length: number): void {
    for (let at = this.#end; at < this.#end + length; at++) {
      if (reader.u8() === 0) continue
      const record = `tensors[${this.#owner}]`
      this.#report.deviation('ERR_GAP', () => ({
        message: `${record}: the padding byte at ${at} is not zero.`,
        path: `${record}.padding`,
        offset: at,
      }))
      return
    }
  }

  /** The next record by offset; its extent is unknown when it cannot be read. */
  add(index: number, offset: number, extent: RecordExtent | undefined): void {
    if (offset < this.#end) {
      const owner = this.#owner
      const end = this.#end
      this.#report.deviation('ERR_OVERLAP', () => ({
        message: `tensors[${index}] starts at ${offset}, inside tensors[${owner}], which ends at ${end}.`,
        path: `tensors[${index}]`,
        offset,
      }))
    } else {
      this.#checkGap(offset)
      this.#isEndOpen = false
    }
    if (extent === undefined) this.#isEndKnown = false
    else if (extent.end >= this.#end) {
      this.#end = extent.end
      this.#owner = index
      this.#isEndOpen = true
    }
  }

  /** Looks at the end of the file, behind the last record. */
  finish(): void {
    this.#checkGap(this.#byteLength)
    const padded = alignUp(this.#end)
    if (!this.#isEndKnown || this.#byteLength >= padded) return
    const missing = padded - this.#byteLength
    this.#report.note('FILE_PADDING_MISSING', () => ({
      message: `The last record lacks ${missing} bytes of padding, which is legal; TFRT's writer pads it.`,
      path: `tensors[${this.#owner}]`,
      offset: this.#end,
    }))
  }

  #checkGap(next: number): void {
    const padded = alignUp(this.#end)
    if (!this.#isEndKnown || next <= padded) return
    this.#report.deviation('ERR_GAP', () => ({
      message: `${next - padded} bytes at ${padded} belong to no record.`,
      path: '',
      offset: padded,
    }))
  }
}
