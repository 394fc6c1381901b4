/**
 * Reports everything wrong with a BTF file: violations of the rules in `walk`, and invalid indices of sparse tensors, which only
 * a check reads because they are payload. Bad bytes become findings; only a source that cannot be read throws.
 */
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import type { CooTensor } from '../../tensor/sparse.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { tensorOf } from './read.js'
import { type BtfRecord, extentOf } from './record.js'
import { FORMAT_NAME } from './schema.js'
import { walkRecords } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  const walk = await walkRecords(source, limits, report)
  if (!walk) return report.findings()
  let checkedOffset = -1
  for (const index of walk.order) {
    if (!walk.table.isSparse(index)) continue
    const record = walk.table.at(index)
    // Entries of equal offset share one record: checking each would cost the length of the file per entry.
    if (!record || record.offset === checkedOffset) continue
    checkedOffset = record.offset
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
  const placeOf = ({ offset = indicesStart }: TileworkError) => ({
    path: `tensors[${index}].indices`,
    offset,
  })
  try {
    const disorder = await tensor.firstDisorder()
    if (disorder) report.deviation('ERR_COO_DUPLICATE', disorder.message, placeOf(disorder))
  } catch (error) {
    // Any other code is a failure of the source, not a property of the bytes.
    if (!(error instanceof TileworkError) || error.code !== 'ERR_COO_INDEX') throw error
    report.broken('ERR_COO_INDEX', error.message, placeOf(error))
  }
}
