/**
 * Walks the headers of a BTF file: count, offset table, records, and the padding between them. One walk serves read and
 * check, lenient and strict; the report decides what a broken rule does.
 *
 * Records are visited in the order of their offsets, whatever the order of the table. So every window of the
 * source is read once, gaps and overlap show by comparing neighbours, and the padding of a record, which lies right
 * before the header of the next one, costs no read of its own.
 *
 * Memory on hostile bytes: 16 bytes a record (6 more while they are sorted) beside the headers' numbers, and the headers
 * of distinct offsets may not exceed the file's size, so all of it stays below 4 times the file.
 */
import type { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import type { Limits } from '../format.js'
import { Budget } from './budget.js'
import { Cover } from './cover.js'
import { HeaderReader } from './header_reader.js'
import { orderOf, readOffsets } from './offset_table.js'
import { type BtfRecord, extentOf, type RecordExtent, RecordReader } from './record.js'
import { RecordTable } from './record_table.js'
import type { Report } from './report.js'
import { DEFAULT_TENSORS_LIMIT, swapBytes, U64_BYTES } from './schema.js'

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
  const reader = new HeaderReader(source)
  const count = await readCount(reader, limits, report)
  if (count === undefined) return undefined
  const offsets = await readOffsets(reader, count, report)
  const order = orderOf(offsets)
  const table = new RecordTable(offsets)
  const records = new RecordReader(source, reader, report)
  const budget = new Budget(source.byteLength, count, limits, report)
  const cover = new Cover(source.byteLength, count, report)
  let previous = -1
  let record: BtfRecord | undefined
  let extent: RecordExtent | undefined
  for (let at = 0; at < order.length; at++) {
    const index = order[at]!
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
    // Before the table grows: the budget is what bounds it.
    if (!budget.spend(index, record, extent, isRepeated)) return undefined
    if (!isRepeated) table.add(index, record)
  }
  await checkPadding(reader, cover, source.byteLength)
  if (order.length === count) cover.finish()
  return { table, order }
}

/** Looks at what stands between all data so far and `next`; at once where the window holds it. */
function checkPadding(reader: ByteReader, cover: Cover, next: number): Promise<void> | undefined {
  const length = cover.paddingBefore(next)
  if (length === 0) return undefined
  reader.seek(cover.end)
  if (!reader.holds(length)) return reader.load(length).then(() => cover.checkPadding(reader, length))
  cover.checkPadding(reader, length)
  return undefined
}

async function readCount(reader: ByteReader, limits: Limits, report: Report): Promise<number | undefined> {
  const place = { path: 'count', offset: 0 }
  const { byteLength } = reader
  if (byteLength < U64_BYTES) {
    const message = `The file has ${byteLength} bytes; a BTF file has at least 8.`
    report.broken('ERR_TRUNCATED', () => ({ message, ...place }))
    return undefined
  }
  await reader.load(U64_BYTES)
  const count = reader.u64()
  const most = Math.floor((byteLength - U64_BYTES) / U64_BYTES)
  if (count > most) {
    const swapped = swapBytes(count)
    if (swapped <= most) {
      const message = `The count is ${count}, or ${swapped} with its bytes swapped: a big-endian machine wrote this file, and only little-endian BTF can be read.`
      report.broken('ERR_UNSUPPORTED', () => ({ message, ...place }))
    } else {
      const message = `The count is ${count}, whose offset table would need more than the file's ${byteLength} bytes.`
      report.broken('ERR_TRUNCATED', () => ({ message, ...place }))
    }
    return undefined
  }
  const limit = limits.tensors ?? DEFAULT_TENSORS_LIMIT
  if (count > limit) {
    const message = `The number of tensors is ${count}; limits.tensors is ${limit}.`
    report.broken('ERR_LIMIT', () => ({ message, ...place }))
    return undefined
  }
  return count as number
}
