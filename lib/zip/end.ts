/** Finds the end record of an archive, and the directory extent in it or in its zip64 form. */
import type { ByteSource } from '../bytes/source.js'
import type { ErrorCode } from '../errors.js'
import type { Report } from '../formats/report.js'
import {
  DIRECTORY_ENTRY,
  END,
  MAX_COMMENT_BYTES,
  U16_ESCAPE,
  U32_ESCAPE,
  ZIP64_END,
  ZIP64_LOCATOR,
} from './schema.js'

/** The checked directory extent: it lies in the file before the end record and has room for its entries. */
export interface DirectoryExtent {
  readonly start: number
  readonly end: number
  readonly count: number
}

/** Numbers as the file has them; 64-bit ones may be bigints. */
interface EndRecord {
  readonly count: number | bigint
  readonly byteLength: number | bigint
  readonly start: number | bigint
  /** Offset of this record, where the directory must end. */
  readonly at: number
}

/** Undefined when it is missing or wrong, which is reported. */
export async function readEnd(source: ByteSource, report: Report): Promise<DirectoryExtent | undefined> {
  const plain = await findEnd(source, report)
  if (!plain) return undefined
  const record = await readZip64End(source, plain, report)
  return record && checkExtent(record, report)
}

function broken(report: Report, code: ErrorCode, message: string, offset: number): undefined {
  report.broken(code, message, { path: 'end', offset })
  return undefined
}

async function findEnd(source: ByteSource, report: Report): Promise<EndRecord | undefined> {
  const { byteLength } = source
  if (byteLength < END.bytes) {
    return broken(
      report,
      'ERR_TRUNCATED',
      `The file has ${byteLength} bytes; a ZIP archive has at least ${END.bytes}.`,
      0,
    )
  }
  // Archives of arrays have no comment: the end record is the last 22 bytes.
  for (const length of [END.bytes, Math.min(byteLength, END.bytes + MAX_COMMENT_BYTES)]) {
    const tailStart = byteLength - length
    const tail = viewOf(await source.read(tailStart, byteLength))
    const candidates = endsIn(tail)
    const [at] = candidates
    if (at === undefined) continue
    if (candidates.length > 1) {
      const message = 'The file has several valid end records; readers would see different archives.'
      return broken(report, 'ERR_HEADER', message, tailStart + at)
    }
    if (tail.byteLength > at + END.bytes) {
      const message = `An archive comment of ${tail.byteLength - at - END.bytes} bytes follows the end record.`
      report.deviation('ERR_GAP', message, { path: 'end', offset: tailStart + at + END.bytes })
    }
    return plainEnd(tail, at, tailStart, report)
  }
  const message =
    'The file does not end in the end record of a ZIP archive: it is truncated, or not an archive.'
  return broken(report, 'ERR_TRUNCATED', message, byteLength)
}

/** Offsets of end records whose comment ends exactly at the end of the file. */
function endsIn(tail: DataView): number[] {
  const found: number[] = []
  for (let at = tail.byteLength - END.bytes; at >= 0; at--) {
    if (tail.getUint32(at, true) !== END.signature) continue
    if (at + END.bytes + tail.getUint16(at + 20, true) === tail.byteLength) found.push(at)
  }
  return found
}

function plainEnd(tail: DataView, at: number, tailStart: number, report: Report): EndRecord | undefined {
  const [disk, directoryDisk] = [tail.getUint16(at + 4, true), tail.getUint16(at + 6, true)]
  const [countHere, count] = [tail.getUint16(at + 8, true), tail.getUint16(at + 10, true)]
  const isSpanned =
    (disk !== 0 && disk !== U16_ESCAPE) || (directoryDisk !== 0 && directoryDisk !== U16_ESCAPE)
  if (isSpanned || countHere !== count) return spanned(report, tailStart + at)
  return {
    count,
    byteLength: tail.getUint32(at + 12, true),
    start: tail.getUint32(at + 16, true),
    at: tailStart + at,
  }
}

function spanned(report: Report, offset: number): undefined {
  return broken(
    report,
    'ERR_UNSUPPORTED',
    'The archive has several parts; only single-part archives can be read.',
    offset,
  )
}

async function readZip64End(
  source: ByteSource,
  plain: EndRecord,
  report: Report,
): Promise<EndRecord | undefined> {
  const locatorAt = plain.at - ZIP64_LOCATOR.bytes
  if (locatorAt < 0) return plain
  const locator = viewOf(await source.read(locatorAt, plain.at))
  if (locator.getUint32(0, true) !== ZIP64_LOCATOR.signature) return plain
  if (locator.getUint32(4, true) !== 0 || locator.getUint32(16, true) > 1) return spanned(report, locatorAt)
  const at = u64At(locator, 8)
  if (at > locatorAt - ZIP64_END.bytes) {
    return broken(
      report,
      'ERR_OFFSET_RANGE',
      `The zip64 end record is at ${at}; it must precede its locator at ${locatorAt}.`,
      locatorAt,
    )
  }
  const start = at as number
  const end = viewOf(await source.read(start, start + ZIP64_END.bytes))
  if (end.getUint32(0, true) !== ZIP64_END.signature) {
    return broken(
      report,
      'ERR_HEADER',
      `There is no zip64 end record at ${at}, the offset in its locator.`,
      start,
    )
  }
  if (u64At(end, 4) !== locatorAt - start - 12) {
    return broken(report, 'ERR_HEADER', 'The zip64 end record does not end at its locator.', start)
  }
  if (end.getUint32(16, true) !== 0 || end.getUint32(20, true) !== 0) return spanned(report, start)
  const [countHere, count] = [u64At(end, 24), u64At(end, 32)]
  if (countHere !== count) return spanned(report, start)
  const record = { count, byteLength: u64At(end, 40), start: u64At(end, 48), at: start }
  const agrees =
    (plain.count === U16_ESCAPE || plain.count === record.count) &&
    (plain.byteLength === U32_ESCAPE || plain.byteLength === record.byteLength) &&
    (plain.start === U32_ESCAPE || plain.start === record.start)
  if (agrees) return record
  return broken(
    report,
    'ERR_HEADER',
    'The end record and the zip64 end record describe different directories.',
    plain.at,
  )
}

function checkExtent(
  { count, byteLength, start, at }: EndRecord,
  report: Report,
): DirectoryExtent | undefined {
  const end = BigInt(start) + BigInt(byteLength)
  if (end > at) {
    const message = `The directory has ${byteLength} bytes at ${start}; the end record is at ${at}.`
    return broken(report, 'ERR_OFFSET_RANGE', message, at)
  }
  if (count > Number(byteLength) / DIRECTORY_ENTRY.bytes) {
    const message = `The directory has ${count} entries; its ${byteLength} bytes are too few for them.`
    return broken(report, 'ERR_TRUNCATED', message, at)
  }
  if (end < at) {
    const message = `${BigInt(at) - end} bytes separate the directory from the end record.`
    report.deviation('ERR_GAP', message, { path: 'end', offset: Number(end) })
  }
  return { start: Number(start), end: Number(end), count: Number(count) }
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** An unsigned 64-bit number: exact, as a bigint above 2^53 - 1. */
export function u64At(view: DataView, at: number): number | bigint {
  const exact = view.getBigUint64(at, true)
  return exact <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(exact) : exact
}
