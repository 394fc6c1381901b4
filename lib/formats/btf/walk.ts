/**
 * Walks the headers of a BTF file: count, offset table, records, and the padding between them. Read and check share this walk
 * at both levels; the report decides what a violation does.
 *
 * Records are visited in ascending order of offset, whatever the order of the table. So every window of the source is read once,
 * gaps and overlaps are found by comparing adjacent records, and the padding before the next header needs no separate read.
 *
 * Memory on hostile files: 16 bytes per record (6 more during the sort) plus the numbers of the headers. Headers at distinct
 * offsets may not exceed the file's size, so the total stays below 4 times the file.
 */
import { expectReads } from '../../bytes/expected_reads.js'
import { ByteReader, READER_WINDOW_BYTES } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { Budget } from '../budget.js'
import type { Limits } from '../format.js'
import type { Report } from '../report.js'
import { Cover } from './cover.js'
import { orderOf, readOffsets } from './offset_table.js'
import { type BtfRecord, extentOf, type RecordExtent, RecordReader } from './record.js'
import { RecordTable } from './record_table.js'
import { DEFAULT_LIMITS, swapBytes, U64_BYTES } from './schema.js'

/** One page, the least that the system reads: room for the dimensions of any usual header. */
const MIN_WINDOW_BYTES = 4096

/**
 * Reads headers that lie between payloads of any size. The window is small after a far jump, so that a thousand large
 * tensors do not cost a window of payload each. It doubles while headers are close together, so that a million small
 * records cost some hundred reads.
 */
class HeaderReader extends ByteReader {
  #windowBytes = MIN_WINDOW_BYTES
  /** End offset of the last window. */
  #windowEnd = 0

  constructor(source: ByteSource) {
    super(source, 0)
  }

  override load(count: number): Promise<void> {
    const isNear = Math.abs(this.position - this.#windowEnd) <= this.#windowBytes
    this.#windowBytes = isNear ? Math.min(2 * this.#windowBytes, READER_WINDOW_BYTES) : MIN_WINDOW_BYTES
    // A count beyond the end is passed on unchanged: the base class refuses it.
    const wanted = Math.max(count, Math.min(this.#windowBytes, this.remaining))
    this.#windowEnd = this.position + wanted
    return super.load(wanted)
  }
}

export interface Walk {
  readonly table: RecordTable
  /** Indices of the records whose offset is usable, in ascending order of offset. */
  readonly order: Uint32Array
}

/** Checks every header of the file; undefined when not even the table can be read, which is reported. */
export async function walkRecords(
  source: ByteSource,
  limits: Limits,
  report: Report,
): Promise<Walk | undefined> {
  const budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  const reader = new HeaderReader(source)
  const count = await readCount(reader, budget, report)
  if (count === undefined) return undefined
  const offsets = await readOffsets(reader, count, report)
  const order = orderOf(offsets)
  expectReads(source, { starts: startsOf(offsets, order), byteLength: MIN_WINDOW_BYTES })
  const table = new RecordTable(offsets)
  const records = new RecordReader(source, reader, report)
  const cover = new Cover(source.byteLength, count, report)
  let previous = -1
  let record: BtfRecord | undefined
  let extent: RecordExtent | undefined
  for (const index of order) {
    const offset = offsets[index]!
    const isRepeated = previous >= 0 && offsets[previous] === offset
    if (isRepeated) {
      table.share(index, previous)
    } else {
      const padding = checkPadding(reader, cover, offset)
      if (padding) await padding
      const read = records.read(index, offset)
      record = read instanceof Promise ? await read : read
      extent = record && extentOf(record)
    }
    previous = index
    cover.add(index, offset, extent)
    if (!record || !extent) continue
    const excess = spend(budget, extent, isRepeated)
    if (excess !== undefined) {
      report.broken('ERR_LIMIT', excess, { path: `tensors[${index}]`, offset })
      return undefined
    }
    // The budget is charged first, because it bounds the size of the table.
    if (!isRepeated) table.add(index, record)
  }
  await checkPadding(reader, cover, source.byteLength)
  if (order.length === count) cover.finish()
  return { table, order }
}

function* startsOf(offsets: Float64Array, order: Uint32Array): Generator<number> {
  for (const index of order) yield offsets[index]!
}

/** A record that several offsets name counts its payload each time, since it is decoded each time; its header counts once. */
function spend(
  budget: Budget,
  { headerBytes, payloadBytes }: RecordExtent,
  isRepeated: boolean,
): string | undefined {
  const excess = isRepeated ? undefined : budget.spend('headerBytes', headerBytes)
  return excess ?? budget.spend('totalBytes', payloadBytes)
}

/** Checks the bytes between the data so far and `next`; synchronously where they are in the window. */
function checkPadding(reader: ByteReader, cover: Cover, next: number): Promise<void> | undefined {
  const length = cover.paddingBefore(next)
  if (length === 0) return undefined
  reader.seek(cover.end)
  if (!reader.holds(length)) return reader.load(length).then(() => cover.checkPadding(reader, length))
  cover.checkPadding(reader, length)
  return undefined
}

async function readCount(reader: ByteReader, budget: Budget, report: Report): Promise<number | undefined> {
  const place = { path: 'count', offset: 0 }
  const { byteLength } = reader
  if (byteLength < U64_BYTES) {
    const message = `The file has ${byteLength} bytes; a BTF file has at least ${U64_BYTES}.`
    report.broken('ERR_TRUNCATED', message, place)
    return undefined
  }
  await reader.load(U64_BYTES)
  const count = reader.u64()
  const maxCount = Math.floor((byteLength - U64_BYTES) / U64_BYTES)
  if (count > maxCount) {
    const swapped = swapBytes(count)
    if (swapped <= maxCount) {
      const message = `The count is ${count}, or ${swapped} with its bytes swapped: a big-endian machine wrote this file, and only little-endian BTF can be read.`
      report.broken('ERR_UNSUPPORTED', message, place)
    } else {
      const message = `The count is ${count}; the ${byteLength} bytes of the file have room for an offset table of ${maxCount} entries.`
      report.broken('ERR_TRUNCATED', message, place)
    }
    return undefined
  }
  const excess =
    budget.spend('tensors', count as number) ?? budget.spend('headerBytes', U64_BYTES * (1 + Number(count)))
  if (excess === undefined) return count as number
  report.broken('ERR_LIMIT', excess, place)
  return undefined
}
