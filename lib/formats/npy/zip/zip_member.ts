/**
 * The local header of a member, in front of its data. It says again what the directory says; a difference would show
 * one array to readers that go by the directory and another to those that go from front to back.
 */
import type { ByteReader } from '../../../bytes/reader.js'
import type { ErrorCode } from '../../../errors.js'
import type { Place, Report } from '../../report.js'
import { quote } from '../literal.js'
import type { DirectoryEntry } from './zip_directory.js'
import { u64At, viewOf } from './zip_end.js'
import { resolveZip64 } from './zip_extra.js'
import { DESCRIPTOR_SIGNATURE, FLAG_DESCRIPTOR, FLAG_UTF8, LOCAL_HEADER } from './zip_schema.js'

/** A member whose local header agrees with the directory. */
export interface Member {
  readonly entry: DirectoryEntry
  /** First byte of the data, compressed or not. */
  readonly dataStart: number
  readonly dataEnd: number
  readonly place: Place
}

/**
 * Undefined when the header is damaged or disagrees, or the member reaches into `next`: the next member, or the
 * directory. That is then reported.
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
  // Before the parts of variable length are read: overlapping members could make that most of the work.
  if (dataEnd > next) {
    return broken(
      'ERR_OVERLAP',
      `reaches to ${dataEnd}; the next member, or the directory, starts at ${next}.`,
    )
  }
  if (!reader.holds(nameLength + extraLength)) await reader.load(nameLength + extraLength)
  const name = reader.bytes(nameLength)
  const difference = differenceOf(entry, fixed, name, reader.bytes(extraLength))
  if (difference !== undefined) return broken('ERR_HEADER', difference)
  return { entry, dataStart, dataEnd, place }
}

/** What the local header says otherwise than the directory; undefined when they agree. */
function differenceOf(
  entry: DirectoryEntry,
  fixed: DataView,
  name: Uint8Array,
  extra: Uint8Array,
): string | undefined {
  const differs = (field: string): string => `has another ${field} in its local header than in the directory.`
  const flags = fixed.getUint16(6, true)
  if (((flags ^ entry.flags) & ~FLAG_UTF8) !== 0) return differs('set of flags')
  if (fixed.getUint16(8, true) !== entry.method) return differs('method')
  if (Buffer.compare(name, entry.nameBytes) !== 0) return differs('name')
  const sizes = resolveZip64(extra, {
    compressedBytes: fixed.getUint32(18, true),
    bytes: fixed.getUint32(22, true),
    localOffset: entry.localOffset,
  })
  if ('fault' in sizes) return `${sizes.fault}, in its local header.`
  const crc = fixed.getUint32(14, true)
  // A writer that could not go back leaves zeros here and writes the numbers behind the data.
  const isLater = (flags & FLAG_DESCRIPTOR) !== 0
  const agrees = (local: number | bigint, directory: number): boolean =>
    local === directory || (isLater && local === 0)
  if (!agrees(crc, entry.crc)) return differs('checksum')
  if (!agrees(sizes.compressedBytes, entry.compressedBytes) || !agrees(sizes.bytes, entry.bytes)) {
    return differs('length')
  }
  return undefined
}

/** Bytes of a descriptor: with sizes of 4 or 8 bytes, with or without its signature. */
const DESCRIPTOR_BYTES: readonly number[] = [12, 16, 20, 24]

/**
 * The end of a member with its descriptor, which may be written in four ways and is known by the room for it: up to
 * the next member. The data's end for a member that has none, or one that disagrees with the directory.
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
  const isRight =
    (!hasSignature || view.getUint32(0, true) === DESCRIPTOR_SIGNATURE) &&
    view.getUint32(at, true) === entry.crc &&
    sizes[0] === entry.compressedBytes &&
    sizes[1] === entry.bytes
  if (isRight) return next
  const message = `members[${entry.index}] (${quote(entry.name)}) has another checksum or length behind its data than in the directory.`
  report.deviation('ERR_HEADER', message, { path: member.place.path, offset: dataEnd })
  return next
}
