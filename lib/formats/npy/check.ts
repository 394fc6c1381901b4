/** Reports everything wrong with an npy file: the rules of its header, and items that are not values of their type. */
import type { ByteSource } from '../../bytes/source.js'
import type { Finding } from '../../errors.js'
import type { ReadOptions } from '../format.js'
import { Report } from '../report.js'
import { noteHeaderForm } from './header.js'
import { fileSpan, readFileHeader } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { ValueCheck } from './values.js'

/** Bytes per read: large enough to amortize the cost of a call, small compared with memory. */
const CHECK_WINDOW_BYTES = 1024 * 1024

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  const header = await readFileHeader(source, limits, report)
  if (!header) return report.findings()
  const span = fileSpan(source, report)
  noteHeaderForm(header, span)
  const values = new ValueCheck(header, span)
  const end = header.headerBytes + header.dataBytes
  for (let at = header.headerBytes; at < end && !values.isDone; at += CHECK_WINDOW_BYTES) {
    values.take(await source.read(at, Math.min(end, at + CHECK_WINDOW_BYTES)))
  }
  return report.findings()
}
