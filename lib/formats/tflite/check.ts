/** Reports everything wrong with a TFLite file: the rules of opening, which check every table and every index. */
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { walkFile } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  await walkFile(source, { budget: new Budget(limits, DEFAULT_LIMITS, source.byteLength), report })
  return report.findings()
}
