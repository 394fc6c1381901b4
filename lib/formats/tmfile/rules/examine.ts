/** All rules of the format over one file: what a read stops at, and what a check collects. */
import type { ByteSource } from '../../../bytes/source.js'
import type { Limits } from '../../format.js'
import type { Report } from '../../report.js'
import type { FileRecords } from '../decode/records.js'
import { walkFile } from '../decode/walk.js'
import { coverageOf } from './coverage.js'
import { checkGraph } from './graph_rules.js'
import { checkLinks } from './link_rules.js'
import { checkOperators } from './operator_rules.js'
import { checkTensors } from './tensor_rules.js'

export interface Examination {
  readonly limits: Limits
  /** Whether to look at every byte for what belongs to nobody or to two. */
  readonly coverage: boolean
}

/** The records of a file; undefined when they cannot be read, which is then reported. */
export async function examineFile(
  source: ByteSource,
  { limits, coverage }: Examination,
  report: Report,
): Promise<FileRecords | undefined> {
  const records = await walkFile(source, limits, report)
  if (!records) return undefined
  checkLinks(records, limits.totalBytes, report)
  checkGraph(records, report)
  checkTensors(records, report)
  checkOperators(records, report)
  if (coverage) checkCoverage(records, report)
  return records
}

function checkCoverage(records: FileRecords, report: Report): void {
  const { unexplained, overlaps } = coverageOf(records)
  for (const { start, end } of unexplained) {
    const message = `${end - start} bytes at ${start} belong to nothing that the file names.`
    report.deviation('ERR_GAP', message, { path: '', offset: start })
  }
  for (const { object, inside } of overlaps) {
    const message = `${object.path} begins at ${object.start}, inside ${inside.path}, which ends at ${inside.end}.`
    report.deviation('ERR_OVERLAP', message, { path: object.path, offset: object.start })
  }
}
