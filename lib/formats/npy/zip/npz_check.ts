/** Reports everything wrong with an npz archive: violations found on opening, and those that need the data of all members. */
import type { ByteSource } from '../../../bytes/source.js'
import type { Finding } from '../../../errors.js'
import { checkContent } from '../../../zip/check_content.js'
import { InflatedSource } from '../../../zip/inflated_source.js'
import type { ReadOptions } from '../../format.js'
import { Report } from '../../report.js'
import { noteHeaderForm } from '../header.js'
import { ValueCheck } from '../values.js'
import { FORMAT_NAME } from './npz_schema.js'
import { type ArrayContent, walkArrays } from './npz_walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  await walkArrays(source, limits, report, (content) => checkArray(content, report))
  return report.findings()
}

async function checkArray(content: ArrayContent, report: Report): Promise<void> {
  const { array, source, start, end } = content
  if (!array) {
    // A member that is not a readable array has a finding already. A deflated one is not read: its inflated size has no limit,
    // and may be a thousand times the compressed size.
    if (!(source instanceof InflatedSource)) await checkContent(content, report)
    return
  }
  noteHeaderForm(array.header, array.span)
  const values = new ValueCheck(array.header, array.span)
  const dataStart = start + array.header.headerBytes
  const dataEnd = Math.min(end, dataStart + array.header.dataBytes)
  await checkContent(content, report, (window, at) =>
    values.take(window.subarray(Math.max(0, dataStart - at), Math.max(0, dataEnd - at))),
  )
}
