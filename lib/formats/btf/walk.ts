/**
 * Walks the headers of a BTF file: count, offset table, records. One walk serves read and check, lenient and strict;
 * the report decides what a broken rule does.
 *
 * Records are visited in the order of their offsets, whatever the order of the table. So every window of the
 * source is read once, and gaps and overlap show by comparing neighbours.
 *
 * Memory on hostile bytes: 20 bytes a record beside the headers' numbers, and the headers of distinct offsets may not
 * exceed the file's size, so all of it stays below 4 times the file.
 */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import type { Limits } from '../format.js'
import { type BtfRecord, extentOf, type RecordExtent, RecordReader } from './record.js'
import { RecordTable } from './record_table.js'
import type { Report } from './report.js'
import {
  ALIGNMENT,
  alignUp,
  DEFAULT_TENSORS_LIMIT,
  HEADER_BYTES,
  HEADER_BYTES_LIMIT_IN_FILES,
  TOTAL_BYTES_LIMIT_IN_FILES,
  U64_BYTES,
} from './schema.js'

export interface Walk {
  readonly table: RecordTable
  /** Readable offsets' records, by ascending offset. */
  readonly order: Uint32Array
}

/** Checks every header of the file; undefined when not even the table can be read, which is then reported. */
export async function walkRecords(
  source: ByteSource,
  limits: Limits,
  report: Report,
): Promise<Walk | undefined> {
  const reader = new ByteReader(source)
  const count = await readCount(reader, limits, report)
  if (count === undefined) return undefined
  const offsets = await readOffsets(reader, count, report)
  const order = orderOf(offsets)
  const table = new RecordTable(count)
  const records = new RecordReader(source, reader, report)
  const budget = new Budget(source.byteLength, count, limits, report)
  const cover = new Cover(source.byteLength, count, report)
  let previous = -1
  for (const index of order) {
    const offset = offsets[index]!
    const isRepeated = previous >= 0 && offsets[previous] === offset
    let record = isRepeated ? table.at(previous) : records.read(index, offset)
    if (record instanceof Promise) record = await record
    if (isRepeated) table.share(index, previous)
    previous = index
    const extent = record && extentOf(record)
    cover.add(index, offset, extent)
    if (!record || !extent) continue
    // Before the table grows: the budget is what bounds it.
    if (!budget.spend(index, record, extent, isRepeated)) return undefined
    if (!isRepeated) table.add(index, record)
  }
  if (order.length === count) cover.finish()
  return { table, order }
}

async function readCount(reader: ByteReader, limits: Limits, report: Report): Promise<number | undefined> {
  const place = { path: 'count', offset: 0 }
  const { byteLength } = reader
  if (byteLength < U64_BYTES) {
    report.broken('ERR_TRUNCATED', `The file has ${byteLength} bytes; a BTF file has at least 8.`, place)
    return undefined
  }
  await reader.load(U64_BYTES)
  const count = reader.u64()
  const most = Math.floor((byteLength - U64_BYTES) / U64_BYTES)
  if (count > most) {
    const swapped = swapBytes(count)
    if (swapped <= most) {
      const message = `The count is ${count}, or ${swapped} with its bytes swapped: a big-endian machine wrote this file, and only little-endian BTF can be read.`
      report.broken('ERR_UNSUPPORTED', message, place)
    } else {
      const message = `The count is ${count}, whose offset table would need more than the file's ${byteLength} bytes.`
      report.broken('ERR_TRUNCATED', message, place)
    }
    return undefined
  }
  const limit = limits.tensors ?? DEFAULT_TENSORS_LIMIT
  if (count > limit) {
    report.broken('ERR_LIMIT', `The file has ${count} tensors; limits.tensors is ${limit}.`, place)
    return undefined
  }
  return count as number
}

/** An unsigned 64-bit number read in the other byte order. */
export function swapBytes(value: number | bigint): bigint {
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, BigInt(value), true)
  return view.getBigUint64(0, false)
}

/** The offset table; NaN stands for an offset where no record can be, which is reported. */
async function readOffsets(reader: ByteReader, count: number, report: Report): Promise<Float64Array> {
  const offsets = new Float64Array(allocateBytes(U64_BYTES * count).buffer)
  const first = U64_BYTES + U64_BYTES * count
  const last = reader.byteLength - HEADER_BYTES
  for (let index = 0; index < count; index++) {
    if (!reader.holds(U64_BYTES)) await reader.load(U64_BYTES)
    const offset = reader.u64()
    const isInside = offset >= first && offset <= last
    if (!isInside || (offset as number) % ALIGNMENT !== 0) {
      reportOffset(index, offset, { first, last, isInside }, report)
    }
    offsets[index] = isInside ? (offset as number) : Number.NaN
  }
  return offsets
}

function reportOffset(
  index: number,
  offset: number | bigint,
  { first, last, isInside }: { first: number; last: number; isInside: boolean },
  report: Report,
): void {
  const place = { path: `offsets[${index}]`, offset: U64_BYTES + U64_BYTES * index }
  if (isInside) {
    const message = `tensors[${index}] starts at ${offset}, which is no multiple of ${ALIGNMENT}.`
    report.deviation('ERR_MISALIGNED', message, place)
    return
  }
  const where = last < first ? 'the file has no room for any record' : `records lie from ${first} to ${last}`
  report.broken('ERR_OFFSET_RANGE', `tensors[${index}] starts at ${offset}; ${where}.`, place)
}

/** Indices of the usable offsets, by ascending offset; equal ones in the order of the table. */
function orderOf(offsets: Float64Array): Uint32Array {
  let usable = 0
  const order = new Uint32Array(allocateBytes(4 * offsets.length).buffer)
  let isAscending = true
  for (let index = 0; index < offsets.length; index++) {
    const offset = offsets[index]!
    if (Number.isNaN(offset)) continue
    if (usable > 0 && offset < offsets[order[usable - 1]!]!) isAscending = false
    order[usable++] = index
  }
  const found = order.subarray(0, usable)
  // Known writers go front to back; sorting a million sorted numbers would still take most of the time of an open.
  return isAscending ? found : found.sort((one, other) => offsets[one]! - offsets[other]! || one - other)
}

/** Bounds what the file makes a reader keep, and what it makes a user of all its tensors load. */
class Budget {
  #headerBytes: number
  #totalBytes = 0
  readonly #headerLimit: number
  readonly #totalLimit: number
  readonly #report: Report

  constructor(byteLength: number, count: number, limits: Limits, report: Report) {
    this.#headerBytes = U64_BYTES + U64_BYTES * count
    this.#headerLimit = limits.headerBytes ?? HEADER_BYTES_LIMIT_IN_FILES * byteLength
    this.#totalLimit = limits.totalBytes ?? TOTAL_BYTES_LIMIT_IN_FILES * byteLength
    this.#report = report
  }

  /** False when a limit is passed: the rest of the file is then not looked at. */
  spend(index: number, record: BtfRecord, extent: RecordExtent, isRepeated: boolean): boolean {
    const place = { path: `tensors[${index}]`, offset: record.offset }
    this.#totalBytes += extent.payloadBytes
    if (!isRepeated) this.#headerBytes += extent.headerBytes
    if (this.#headerBytes > this.#headerLimit) {
      const message = `The headers up to tensors[${index}] have ${this.#headerBytes} bytes; limits.headerBytes is ${this.#headerLimit}.`
      this.#report.broken('ERR_LIMIT', message, place)
      return false
    }
    if (this.#totalBytes > this.#totalLimit) {
      const message = `The tensors up to tensors[${index}] decode to ${this.#totalBytes} bytes; limits.totalBytes is ${this.#totalLimit}.`
      this.#report.broken('ERR_LIMIT', message, place)
      return false
    }
    return true
  }
}

/** Sees that records do not share bytes and leave none over, as they come by ascending offset. */
class Cover {
  /** First byte behind all data so far, and the record it belongs to. */
  #end: number
  #owner = -1
  /** False behind a record whose end is unknown: then gaps cannot be told. */
  #isEndKnown = true
  readonly #byteLength: number
  readonly #report: Report

  constructor(byteLength: number, count: number, report: Report) {
    this.#end = U64_BYTES + U64_BYTES * count
    this.#byteLength = byteLength
    this.#report = report
  }

  add(index: number, offset: number, extent: RecordExtent | undefined): void {
    const path = `tensors[${index}]`
    if (offset < this.#end) {
      const message = `tensors[${index}] starts at ${offset}, inside tensors[${this.#owner}], which ends at ${this.#end}.`
      this.#report.deviation('ERR_OVERLAP', message, { path, offset })
    } else {
      this.#checkGap(offset)
    }
    if (extent === undefined) this.#isEndKnown = false
    else if (extent.end >= this.#end) {
      this.#end = extent.end
      this.#owner = index
    }
  }

  /** Looks at the end of the file, behind the last record. */
  finish(): void {
    this.#checkGap(this.#byteLength)
    const padded = alignUp(this.#end)
    if (this.#isEndKnown && this.#byteLength < padded) {
      const missing = padded - this.#byteLength
      this.#report.note(
        'FILE_PADDING_MISSING',
        `The last record lacks ${missing} bytes of padding, which is legal; TFRT's writer pads it.`,
        { path: `tensors[${this.#owner}]`, offset: this.#end },
      )
    }
  }

  #checkGap(next: number): void {
    const padded = alignUp(this.#end)
    if (!this.#isEndKnown || next <= padded) return
    const place = { path: '', offset: padded }
    this.#report.deviation('ERR_GAP', `${next - padded} bytes at ${padded} belong to no record.`, place)
  }
}
