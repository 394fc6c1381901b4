/** Reads the central directory of an archive and checks every number in it against the file. */
import { ByteReader } from '../bytes/reader.js'
import type { ByteSource } from '../bytes/source.js'
import { type ErrorCode, TileworkError } from '../errors.js'
import type { Budget } from '../formats/budget.js'
import { quote } from '../formats/quote.js'
import type { Place, Report } from '../formats/report.js'
import { type DirectoryExtent, readEnd, viewOf } from './end.js'
import { resolveZip64 } from './extra.js'
import {
  DEFLATED,
  DIRECTORY_ENTRY,
  FLAG_ENCRYPTED,
  FLAG_MASKED,
  FLAG_PATCH,
  FLAG_STRONG_ENCRYPTION,
  FLAG_UTF8,
  LOCAL_HEADER,
  MAX_DEFLATE_RATIO,
  STORED,
  U16_ESCAPE,
} from './schema.js'

/** A checked directory entry: the member's sizes and offset are possible in this file. */
export interface DirectoryEntry {
  /** Index in the directory. */
  readonly index: number
  readonly name: string
  readonly flags: number
  readonly method: typeof STORED | typeof DEFLATED
  readonly crc: number
  readonly compressedBytes: number
  readonly bytes: number
  readonly localOffset: number
}

export interface Directory extends DirectoryExtent {
  /** Members that can be read, in the order of the directory. */
  readonly entries: readonly DirectoryEntry[]
}

/** Undefined when there is no directory or it is damaged, which is reported. */
export async function readDirectory(
  source: ByteSource,
  budget: Budget,
  report: Report,
): Promise<Directory | undefined> {
  const extent = await readEnd(source, report)
  if (!extent) return undefined
  if (!isWithinLimits(extent, budget, report)) return undefined
  const entries: DirectoryEntry[] = []
  const reader = new ByteReader(source)
  reader.seek(extent.start)
  for (let index = 0; index < extent.count; index++) {
    const place = { path: `members[${index}]`, offset: reader.position }
    const fields = await readFields(reader, extent.end, index, place, report)
    // Entries have variable length, so the one after a damaged entry cannot be found.
    if (!fields) return undefined
    const entry = checkEntry(fields, extent, place, report)
    if (entry) entries.push(entry)
  }
  if (reader.position !== extent.end) {
    const message = `The directory has ${extent.count} entries, which end at ${reader.position}; it ends at ${extent.end}.`
    report.broken('ERR_HEADER', message, { path: 'end', offset: reader.position })
    return undefined
  }
  return { ...extent, entries }
}

function isWithinLimits({ start, end, count }: DirectoryExtent, budget: Budget, report: Report): boolean {
  const excess = budget.spend('tensors', count) ?? budget.spend('headerBytes', end - start)
  if (excess === undefined) return true
  report.broken('ERR_LIMIT', excess, { path: 'end', offset: end })
  return false
}

/** An entry as the file has it. */
interface EntryFields {
  readonly index: number
  readonly fixed: DataView
  readonly nameBytes: Uint8Array
  readonly extra: Uint8Array
}

async function readFields(
  reader: ByteReader,
  directoryEnd: number,
  index: number,
  place: Place,
  report: Report,
): Promise<EntryFields | undefined> {
  const takes = async (count: number): Promise<Uint8Array | undefined> => {
    if (reader.position + count > directoryEnd) {
      const message = `members[${index}]: the entry exceeds the directory, which ends at ${directoryEnd}.`
      report.broken('ERR_TRUNCATED', message, place)
      return undefined
    }
    if (!reader.holds(count)) await reader.load(count)
    return reader.bytes(count)
  }
  const bytes = await takes(DIRECTORY_ENTRY.bytes)
  if (!bytes) return undefined
  const fixed = viewOf(bytes)
  if (fixed.getUint32(0, true) !== DIRECTORY_ENTRY.signature) {
    report.broken('ERR_HEADER', `members[${index}]: there is no directory entry at ${place.offset}.`, place)
    return undefined
  }
  const [nameLength, extraLength] = [fixed.getUint16(28, true), fixed.getUint16(30, true)]
  const variable = await takes(nameLength + extraLength + fixed.getUint16(32, true))
  if (!variable) return undefined
  // Views of the reader's window, which are dropped when the entry is checked.
  const nameBytes = variable.subarray(0, nameLength)
  return { index, fixed, nameBytes, extra: variable.subarray(nameLength, nameLength + extraLength) }
}

/** Undefined for a member that cannot be read, which is reported; other members may be fine. */
function checkEntry(
  { index, fixed, nameBytes, extra }: EntryFields,
  extent: DirectoryExtent,
  place: Place,
  report: Report,
): DirectoryEntry | undefined {
  const [flags, method] = [fixed.getUint16(8, true), fixed.getUint16(10, true)]
  try {
    const name = decodeName(nameBytes, flags)
    const what = `members[${index}] (${quote(name)})`
    checkKind(what, flags, method)
    if (fixed.getUint16(34, true) !== 0 && fixed.getUint16(34, true) !== U16_ESCAPE) {
      throw new TileworkError(
        'ERR_UNSUPPORTED',
        `${what} is in another part of the archive; only single-part archives can be read.`,
      )
    }
    const sizes = resolveZip64(extra, {
      compressedBytes: fixed.getUint32(20, true),
      bytes: fixed.getUint32(24, true),
      localOffset: fixed.getUint32(42, true),
    })
    if ('fault' in sizes) throw new TileworkError('ERR_HEADER', `${what} ${sizes.fault}.`)
    checkSizes(what, sizes, method, extent)
    checkName(name, flags, what, place, report)
    const { bytes, compressedBytes, localOffset } = sizes as Record<keyof typeof sizes, number>
    const crc = fixed.getUint32(16, true)
    return {
      index,
      name,
      flags,
      method: method as 0 | 8,
      crc,
      bytes,
      compressedBytes,
      localOffset,
    }
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    report.broken(error.code, error.message, place)
    return undefined
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decodeName(bytes: Uint8Array, flags: number): string {
  let name: string
  try {
    name = utf8.decode(bytes)
  } catch (cause) {
    const message = `A member's name is not valid UTF-8${(flags & FLAG_UTF8) === 0 ? ' and has no other encoding that readers agree on' : ''}.`
    throw new TileworkError('ERR_HEADER', message, { cause })
  }
  // Readers in C and Python end the name there; others do not.
  if (name.includes('\0'))
    throw new TileworkError('ERR_HEADER', `The member name ${quote(name)} contains NUL.`)
  return name
}

function checkKind(what: string, flags: number, method: number): void {
  if ((flags & (FLAG_ENCRYPTED | FLAG_STRONG_ENCRYPTION | FLAG_MASKED)) !== 0) {
    throw new TileworkError('ERR_UNSUPPORTED', `${what} is encrypted.`)
  }
  if ((flags & FLAG_PATCH) !== 0)
    throw new TileworkError('ERR_UNSUPPORTED', `${what} is a patch of another file.`)
  if (method !== STORED && method !== DEFLATED) {
    const message = `${what} has compression method ${method}; expected 0 (stored) or 8 (deflated).`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
}

type Sizes = Exclude<ReturnType<typeof resolveZip64>, { fault: string }>

/** Checks sizes and offset; afterwards all three are numbers up to 2^53 - 1. */
function checkSizes(
  what: string,
  { bytes, compressedBytes, localOffset }: Sizes,
  method: number,
  extent: DirectoryExtent,
): void {
  const refuse = (code: ErrorCode, message: string): never => {
    throw new TileworkError(code, `${what} ${message}`)
  }
  if (localOffset > extent.start - LOCAL_HEADER.bytes) {
    refuse('ERR_OFFSET_RANGE', `starts at ${localOffset}; the directory starts at ${extent.start}.`)
  }
  if (compressedBytes > extent.start - Number(localOffset) - LOCAL_HEADER.bytes) {
    refuse(
      'ERR_TRUNCATED',
      `has ${compressedBytes} bytes at ${localOffset}; the directory starts at ${extent.start}.`,
    )
  }
  if (method === STORED && bytes !== compressedBytes) {
    refuse('ERR_HEADER', `is stored and has the lengths ${compressedBytes} and ${bytes}; they must be equal.`)
  }
  if (bytes > Number(compressedBytes) * MAX_DEFLATE_RATIO) {
    refuse(
      'ERR_COMPRESSED',
      `declares ${bytes} bytes in ${compressedBytes}; deflate reaches at most ${MAX_DEFLATE_RATIO} to 1.`,
    )
  }
}

function checkName(name: string, flags: number, what: string, place: Place, report: Report): void {
  // Such names are dangerous to programs that unpack the archive; here they are only names. A first `/`, which names of ONNX values
  // have, is removed by all of them.
  if (name.split(/[/\\]/).includes('..')) {
    const message = `${what} has a name that leads out of the target folder when it is unpacked.`
    report.deviation('ERR_PATH_ESCAPE', message, place)
  }
  if ((flags & FLAG_UTF8) === 0 && /[^\0-\x7f]/.test(name)) {
    const message = `${what} has no UTF-8 flag; the name is read as UTF-8, but numpy reads it as code page 437.`
    report.deviation('ERR_HEADER', message, place)
  }
}
