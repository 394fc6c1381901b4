/**
 * Walks the header of a file: counts, keys, tensor infos, and where the data lie. Read and check, lenient and strict share this
 * walk; the report decides what a violation does.
 *
 * Memory on hostile bytes: the header is kept once, and a tensor takes some 150 bytes for at least 25 of the file.
 */
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import { type Exact, multiply } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import { checkData, type DataPart } from './data_cover.js'
import { HeaderCursor } from './header_cursor.js'
import type { GgufMetadata } from './metadata.js'
import {
  aligned,
  HEADER_BYTES,
  MAGIC,
  MIN_INFO_BYTES,
  MIN_KEY_BYTES,
  OLD_HEADER_BYTES,
  OLD_MIN_INFO_BYTES,
  OLD_MIN_KEY_BYTES,
  VERSIONS,
} from './schema.js'
import type { TensorTable } from './tensor_table.js'
import { walkInfos } from './walk_infos.js'
import { alignmentOf, walkKeys } from './walk_keys.js'

/** A checked header. */
export interface GgufHeader extends DataPart {
  readonly version: number
  readonly isLittleEndian: boolean
  readonly metadata: GgufMetadata
  readonly table: TensorTable
  /** Offset of the first info. */
  readonly infosStart: number
}

/** @returns undefined where the header cannot be used, which is reported */
export async function walkFile(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<GgufHeader | undefined> {
  const cursor = new HeaderCursor(source, budget)
  try {
    const { version, tensors, keys } = await readStart(cursor)
    const metadata = await walkKeys(cursor, keys, report)
    const alignment = alignmentOf(metadata, cursor.at)
    const infosStart = cursor.at
    const table = await walkInfos(cursor, tensors, budget, report)
    const infosEnd = cursor.at
    const dataStart = aligned(infosEnd, alignment)
    table.moveTo(dataStart)
    const { isLittleEndian } = cursor
    const header = { version, isLittleEndian, metadata, table, alignment, infosStart, infosEnd, dataStart }
    if (table.length > 0 && !checkData(table, header, source.byteLength, report)) return undefined
    return header
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: '', offset: error.offset })
    return undefined
  }
}

interface HeaderStart {
  readonly version: number
  readonly tensors: Exact
  readonly keys: Exact
}

/** Magic number, version, byte order and counts. */
async function readStart(cursor: HeaderCursor): Promise<HeaderStart> {
  const fixedBytes = MAGIC.byteLength + 4
  await cursor.load(fixedBytes, 'The header')
  const magic = cursor.bytes(0, MAGIC.byteLength)
  if (Buffer.compare(magic, MAGIC) !== 0) {
    const message = `The file starts with ${JSON.stringify(Buffer.from(magic).toString('latin1'))}; a GGUF file starts with "GGUF".`
    throw new FileFault('ERR_HEADER', message, 0)
  }
  cursor.at = MAGIC.byteLength
  let version = cursor.u32()
  if (version % 2 ** 16 === 0 && version !== 0) {
    cursor.isLittleEndian = false
    cursor.at = MAGIC.byteLength
    version = cursor.u32()
  }
  if (!VERSIONS.includes(version)) {
    throw new FileFault('ERR_VALUE', `The version is ${version}; versions 1 to 3 are read.`, MAGIC.byteLength)
  }
  cursor.isOld = version === 1
  const headerBytes = cursor.isOld ? OLD_HEADER_BYTES : HEADER_BYTES
  if (!cursor.holds(headerBytes - cursor.at)) await cursor.load(headerBytes - cursor.at, 'The header')
  const tensors = cursor.size()
  const keys = cursor.size()
  const least = cursor.isOld ? [OLD_MIN_INFO_BYTES, OLD_MIN_KEY_BYTES] : [MIN_INFO_BYTES, MIN_KEY_BYTES]
  for (const [count, bytes, what] of [
    [tensors, least[0]!, 'tensors'],
    [keys, least[1]!, 'keys'],
  ] as const) {
    const needed = multiply(count, bytes)
    if (needed > cursor.remaining) {
      const message = `The header declares ${count} ${what}, which need at least ${needed} bytes; the file has ${cursor.remaining} after it.`
      throw new FileFault('ERR_TRUNCATED', message, MAGIC.byteLength + 4)
    }
  }
  return { version, tensors, keys }
}
