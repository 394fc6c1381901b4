/**
 * Everything wrong with a BTF file: the header rules of `walk`, and what costs reading payloads: padding bytes, and
 * the indices of sparse tensors. Bad bytes become findings; only a source that cannot be read throws.
 */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import type { CooTensor } from '../../tensor/sparse.js'
import type { ReadOptions } from '../format.js'
import { tensorOf } from './read.js'
import { type BtfRecord, extentOf } from './record.js'
import { Report } from './report.js'
import { alignUp } from './schema.js'
import { walkRecords } from './walk.js'

/** Padding lies between payloads, so a large window would read the payloads too. */
const PADDING_WINDOW_BYTES = 4096

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(level, 'collect')
  const walk = await walkRecords(source, limits, report)
  if (!walk) return report.findings()
  const reader = new ByteReader(source, PADDING_WINDOW_BYTES)
  let checkedTo = -1
  for (const index of walk.order) {
    const record = walk.table.at(index)
    // Records at one offset are one record: looking again would cost the file's length a repetition.
    if (!record || record.offset === checkedTo) continue
    checkedTo = record.offset
    await checkPadding(reader, record, index, report)
    if (record.entryCount !== undefined) await checkIndices(source, record, index, report)
  }
  return report.findings()
}

async function checkPadding(
  reader: ByteReader,
  record: BtfRecord,
  index: number,
  report: Report,
): Promise<void> {
  const { end } = extentOf(record)
  const length = Math.min(alignUp(end), reader.byteLength) - end
  if (length === 0) return
  reader.seek(end)
  if (!reader.holds(length)) await reader.load(length)
  const at = reader.bytes(length).findIndex((byte) => byte !== 0)
  if (at < 0) return
  const place = { path: `tensors[${index}].padding`, offset: end + at }
  report.deviation('ERR_GAP', `tensors[${index}]: the padding byte at ${end + at} is not zero.`, place)
}

async function checkIndices(
  source: ByteSource,
  record: BtfRecord,
  index: number,
  report: Report,
): Promise<void> {
  const { indicesStart } = extentOf(record)
  const tensor = tensorOf(source, record, index, 'lenient') as CooTensor
  const path = `tensors[${index}].indices`
  try {
    const disorder = await tensor.firstDisorder()
    if (!disorder) return
    const place = { path, offset: disorder.offset ?? indicesStart }
    report.deviation('ERR_COO_DUPLICATE', disorder.message, place)
  } catch (error) {
    // Any other code is the source's own trouble, not a property of the bytes.
    if (!(error instanceof TileworkError) || error.code !== 'ERR_COO_INDEX') throw error
    report.broken('ERR_COO_INDEX', error.message, { path, offset: error.offset ?? indicesStart })
  }
}
