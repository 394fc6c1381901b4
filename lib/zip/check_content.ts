/** Checks the data of a member: its checksum, and what follows its compressed bytes. */
import { crc32 } from 'node:zlib'
import { TileworkError } from '../errors.js'
import { quote } from '../formats/quote.js'
import type { Report } from '../formats/report.js'
import { InflatedSource } from './inflated_source.js'
import type { Content } from './walk.js'

/** Bytes per read: large enough to hide the cost of a call, small beside the memory of a machine. */
const WINDOW_BYTES = 1024 * 1024

/**
 * Reads a whole member once, and reports what is wrong.
 *
 * @param take - gets the content window by window, with the position of each; for further checks
 */
export async function checkContent(
  content: Content,
  report: Report,
  take?: (window: Uint8Array, at: number) => void,
): Promise<void> {
  const { entry, place, source, start, end } = content
  let crc = 0
  try {
    for (let at = start; at < end; at += WINDOW_BYTES) {
      const window = await source.read(at, Math.min(end, at + WINDOW_BYTES))
      crc = crc32(window, crc)
      take?.(window, at)
    }
  } catch (error) {
    // Any other code is a failure of the source, not a property of the bytes.
    if (!(error instanceof TileworkError) || error.code !== 'ERR_COMPRESSED') throw error
    report.broken(error.code, error.message, { path: place.path, offset: content.dataStart })
    return
  }
  if (crc !== entry.crc) {
    const message = `members[${entry.index}] (${quote(entry.name)}) has the checksum ${hex(crc)}; the directory declares ${hex(entry.crc)}.`
    report.broken('ERR_CHECKSUM', message, place)
  }
  if (source instanceof InflatedSource && source.unusedBytes > 0) {
    const message = `${source.unusedBytes} bytes follow the compressed data of ${place.path}.`
    report.deviation('ERR_GAP', message, { path: place.path, offset: content.dataEnd - source.unusedBytes })
  }
}

function hex(crc: number): string {
  return crc.toString(16).padStart(8, '0')
}
