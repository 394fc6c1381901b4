/** Everything wrong with a tmfile. Bad bytes become findings; only a source that cannot be read throws. */
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { examineFile } from './rules/examine.js'
import { FORMAT_NAME } from './schema.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  await examineFile(source, { limits, coverage: true }, report)
  return report.findings()
}
