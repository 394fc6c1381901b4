/** Reports everything wrong with an npz archive: the rules of opening, and those that need all members' data. */
import { crc32 } from 'node:zlib'
import type { ByteSource } from '../../../bytes/source.js'
import { type Finding, TileworkError } from '../../../errors.js'
import { InflatedSource } from '../../../zip/inflated_source.js'
import type { ReadOptions } from '../../format.js'
import { quote } from '../../quote.js'
import { Report } from '../../report.js'
import { CHECK_WINDOW_BYTES } from '../check.js'
import { noteHeaderForm } from '../header.js'
import { ValueCheck } from '../values.js'
import { FORMAT_NAME } from './npz_schema.js'
import { type ArrayContent, walkArrays } from './npz_walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  await walkArrays(source, limits, report, (content) => checkContent(content, report))
  return report.findings()
}

async function checkContent(content: ArrayContent, report: Report): Promise<void> {
  const { entry, place, array, source } = content
  if (array) noteHeaderForm(array.header, array.span)
  // A member that is not a readable array has a finding already. No limit bounds its inflated size, which may be a thousand
  // times its compressed one.
  if (!array && source instanceof InflatedSource) return
  try {
    const crc = await scan(content)
    if (crc !== entry.crc) {
      const message = `members[${entry.index}] (${quote(entry.name)}) has the checksum ${hex(crc)}; the directory declares ${hex(entry.crc)}.`
      report.broken('ERR_CHECKSUM', message, place)
    }
  } catch (error) {
    // Any other code is a failure of the source, not a property of the bytes.
    if (!(error instanceof TileworkError) || error.code !== 'ERR_COMPRESSED') throw error
    report.broken(error.code, error.message, { path: place.path, offset: content.dataStart })
    return
  }
  if (source instanceof InflatedSource && source.unusedBytes > 0) {
    const message = `${source.unusedBytes} bytes follow the compressed data of ${place.path}.`
    report.deviation('ERR_GAP', message, { path: place.path, offset: content.dataEnd - source.unusedBytes })
  }
}

/** Reads a whole member once, checks its values and returns its checksum. */
async function scan({ source, start, end, array }: ArrayContent): Promise<number> {
  const values = array && new ValueCheck(array.header, array.span)
  const dataStart = array ? start + array.header.headerBytes : end
  const dataEnd = array ? dataStart + array.header.dataBytes : end
  let crc = 0
  for (let at = start; at < end; at += CHECK_WINDOW_BYTES) {
    const bytes = await source.read(at, Math.min(end, at + CHECK_WINDOW_BYTES))
    crc = crc32(bytes, crc)
    values?.take(bytes.subarray(Math.max(0, dataStart - at), Math.max(0, dataEnd - at)))
  }
  return crc
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}
