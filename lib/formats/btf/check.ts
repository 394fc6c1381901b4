/**
 * Everything wrong with a BTF file: the rules of `walk`, and what costs reading payloads: the indices of sparse
 * tensors. Bad bytes become findings; only a source that cannot be read throws.
 */
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import type { CooTensor } from '../../tensor/sparse.js'
import type { ReadOptions } from '../format.js'
import { tensorOf } from './read.js'
import { type BtfRecord, extentOf } from './record.js'
import { Report } from './report.js'
import { walkRecords } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(level, 'collect')
  const walk = await walkRecords(source, limits, report)
  if (!walk) return report.findings()
  let checkedTo = -1
  for (const index of walk.order) {
    if (!walk.table.isSparse(index)) continue
    const record = walk.table.at(index)
    // Records at one offset are one record: looking again would cost the file's length a repetition.
    if (!record || record.offset === checkedTo) continue
    checkedTo = record.offset
    await checkIndices(source, record, index, report)
  }
  return report.findings()
}

async function checkIndices(
  source: ByteSource,
  record: BtfRecord,
  index: number,
  report: Report,
): Promise<void> {
  const { indicesStart } = extentOf(record)
  const tensor = tensorOf(source, record, index, 'lenient') as CooTensor
  const describe = ({ message, offset }: TileworkError) => ({
    message,
    path: `tensors[${index}].indices`,
    offset: offset ?? indicesStart,
  })
  try {
    const disorder = await tensor.firstDisorder()
    if (disorder) report.deviation('ERR_COO_DUPLICATE', () => describe(disorder))
  } catch (error) {
    // Any other code is the source's own trouble, not a property of the bytes.
    if (!(error instanceof TileworkError) || error.code !== 'ERR_COO_INDEX') throw error
    report.broken('ERR_COO_INDEX', () => describe(error))
  }
}
