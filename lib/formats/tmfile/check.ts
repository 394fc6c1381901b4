/**
 * Applies every rule of the format to one file: a read stops at the first broken rule, a check collects them all.
 * Invalid bytes become findings; only a source that cannot be read throws.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import type { Limits, ReadOptions } from '../format.js'
import { Report } from '../report.js'
import type { FileRecords } from './decode/records.js'
import { walkFile } from './decode/walk.js'
import { coverageOf } from './rules/coverage.js'
import { checkCrashes } from './rules/crash_rules.js'
import { checkGraph } from './rules/graph_rules.js'
import { checkLinks } from './rules/link_rules.js'
import { checkOperators } from './rules/operator_rules.js'
import { checkTensors } from './rules/tensor_rules.js'
import { FORMAT_NAME } from './schema.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  await examineFile(source, { limits, coverage: true }, report)
  return report.findings()
}

export interface Examination {
  readonly limits: Limits
  /** Whether to check every byte for gaps and overlaps. */
  readonly coverage: boolean
}

/** The records of a file; undefined where they cannot be read, which is reported. */
export async function examineFile(
  source: ByteSource,
  { limits, coverage }: Examination,
  report: Report,
): Promise<FileRecords | undefined> {
  const records = await walkFile(source, limits, report)
  if (!records) return undefined
  checkLinks(records, limits, report)
  checkGraph(records, report)
  checkTensors(records, report)
  checkOperators(records, report)
  checkCrashes(records, report)
  if (coverage) checkCoverage(records, report)
  return records
}

function checkCoverage(records: FileRecords, report: Report): void {
  const { unowned, overlaps } = coverageOf(records)
  for (const { start, end } of unowned) {
    const message = `${end - start} bytes at offset ${start} belong to no object of the file.`
    report.deviation('ERR_GAP', message, { path: '', offset: start })
  }
  for (const { object, inside } of overlaps) {
    const message = `${object.path} starts at offset ${object.start}, inside ${inside.path}, which ends at ${inside.end}.`
    report.deviation('ERR_OVERLAP', message, { path: object.path, offset: object.start })
  }
}
