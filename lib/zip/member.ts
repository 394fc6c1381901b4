/**
 * Reads the local header before a member's data. It repeats the directory entry; a difference would show one array to
 * readers that use the directory and another to readers that stream the file.
 */
import type { ByteReader } from '../bytes/reader.js'
import type { ErrorCode } from '../errors.js'
import { quote } from '../formats/quote.js'
import type { Place, Report } from '../formats/report.js'
import type { DirectoryEntry } from './directory.js'
import { u64At, viewOf } from './end.js'
import { resolveZip64 } from './extra.js'
import { DESCRIPTOR_SIGNATURE, FLAG_DESCRIPTOR, FLAG_UTF8, LOCAL_HEADER } from './schema.js'

/** A member whose local header agrees with the directory. */
export interface Member {
  readonly entry: DirectoryEntry
  /** Start offset of the data, compressed or not. */
  readonly dataStart: number
  readonly dataEnd: number
  readonly place: Place
}

/**
 * Undefined when the header is damaged or differs from the directory, or the member overlaps `next`, the offset of the
 * next member or of the directory. This is reported.
 */
export async function readLocalHeader(
  reader: ByteReader,
  entry: DirectoryEntry,
  next: number,
  report: Report,
): Promise<Member | undefined> {
  const place = { path: `members[${entry.index}]`, offset: entry.localOffset }
  const what = `members[${entry.index}] (${quote(entry.name)})`
  const broken = (code: ErrorCode, message: string): undefined => {
    report.broken(code, `${what} ${message}`, place)
    return undefined
  }
  reader.seek(entry.localOffset)
  if (!reader.holds(LOCAL_HEADER.bytes)) await reader.load(LOCAL_HEADER.bytes)
  const fixed = viewOf(reader.bytes(LOCAL_HEADER.bytes))
  if (fixed.getUint32(0, true) !== LOCAL_HEADER.signature) {
    return broken('ERR_HEADER', `has no local header at ${entry.localOffset}.`)
  }
  const [nameLength, extraLength] = [fixed.getUint16(26, true), fixed.getUint16(28, true)]
  const dataStart = entry.localOffset + LOCAL_HEADER.bytes + nameLength + extraLength
  const dataEnd = dataStart + entry.compressedBytes
  // Checked before the variable parts are read, which overlapping members could make arbitrarily expensive.
  if (dataEnd > next) {
    return broken('ERR_OVERLAP', `ends at ${dataEnd}; the next member, or the directory, starts at ${next}.`)
  }
  if (!reader.holds(nameLength + extraLength)) await reader.load(nameLength + extraLength)
  const name = reader.bytes(nameLength)
  const difference = differenceOf(entry, fixed, name, reader.bytes(extraLength))
  if (difference !== undefined) return broken('ERR_HEADER', difference)
  return { entry, dataStart, dataEnd, place }
}

/** How the local header differs from the directory; undefined when they agree. */
function differenceOf(
  entry: DirectoryEntry,
  fixed: DataView,
  name: Uint8Array,
  extra: Uint8Array,
): string | undefined {
  const differs = (field: string): string =>
    `has a different ${field} in its local header and in the directory.`
  const flags = fixed.getUint16(6, true)
  if (((flags ^ entry.flags) & ~FLAG_UTF8) !== 0) return differs('set of flags')
  if (fixed.getUint16(8, true) !== entry.method) return differs('method')
  if (Buffer.compare(name, Buffer.from(entry.name)) !== 0) return differs('name')
  const sizes = resolveZip64(extra, {
    compressedBytes: fixed.getUint32(18, true),
    bytes: fixed.getUint32(22, true),
    localOffset: entry.localOffset,
  })
  if ('fault' in sizes) return `${sizes.fault}, in its local header.`
  const crc = fixed.getUint32(14, true)
  // A streaming writer leaves zeros here and writes the numbers after the data.
  const hasDescriptor = (flags & FLAG_DESCRIPTOR) !== 0
  const agrees = (local: number | bigint, directory: number): boolean =>
    local === directory || (hasDescriptor && local === 0)
  if (!agrees(crc, entry.crc)) return differs('checksum')
  if (!agrees(sizes.compressedBytes, entry.compressedBytes) || !agrees(sizes.bytes, entry.bytes)) {
    return differs('length')
  }
  return undefined
}

/** Sizes of a descriptor: with 4- or 8-byte lengths, with or without its signature. */
const DESCRIPTOR_BYTES: readonly number[] = [12, 16, 20, 24]

/**
 * End offset of a member with its descriptor. The descriptor has four forms and is identified by its size, which is the
 * distance to the next member. Without a descriptor this is the end of the data.
 */
export async function descriptorEnd(
  reader: ByteReader,
  member: Member,
  next: number,
  report: Report,
): Promise<number> {
  const { entry, dataEnd } = member
  const room = next - dataEnd
  if ((entry.flags & FLAG_DESCRIPTOR) === 0 || !DESCRIPTOR_BYTES.includes(room)) return dataEnd
  reader.seek(dataEnd)
  if (!reader.holds(room)) await reader.load(room)
  const view = viewOf(reader.bytes(room))
  const hasSignature = room % 8 === 0
  const at = hasSignature ? 4 : 0
  const isLong = room >= 20
  const sizes = isLong
    ? [u64At(view, at + 4), u64At(view, at + 12)]
    : [view.getUint32(at + 4, true), view.getUint32(at + 8, true)]
  const agrees =
    (!hasSignature || view.getUint32(0, true) === DESCRIPTOR_SIGNATURE) &&
    view.getUint32(at, true) === entry.crc &&
    sizes[0] === entry.compressedBytes &&
    sizes[1] === entry.bytes
  if (agrees) return next
  const message = `members[${entry.index}] (${quote(entry.name)}) has a descriptor that differs from the directory in checksum or length.`
  report.deviation('ERR_HEADER', message, { path: member.place.path, offset: dataEnd })
  return next
}
