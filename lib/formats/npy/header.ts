/** Reads an array's header and checks every number in it against the available bytes; prints headers as numpy does. */
import type { ByteReader } from '../../bytes/reader.js'
import { TileworkError } from '../../errors.js'
import { exactSizeOf, multiply } from '../exact_size.js'
import { quote } from '../quote.js'
import type { ArraySpan } from './array_span.js'
import { type ItemType, parseDescr } from './descr.js'
import { type Extent, type HeaderLiteral, parseHeaderLiteral, TYPE_PATH } from './literal.js'
import {
  BYTES_LIMIT,
  DATA_ALIGNMENT,
  GROWTH_DIGITS,
  LENGTH_FIELD_AT,
  MAGIC,
  MAX_RANK,
  type NpyVersion,
  SHORTEST_PREFIX_BYTES,
  VERSIONS,
} from './schema.js'

const LINE_FEED = 0x0a

/** A checked header, whose data are inside the file. */
export interface NpyHeader {
  readonly type: ItemType
  readonly isFortran: boolean
  readonly shape: readonly number[]
  /** Bytes from the magic number to the data. */
  readonly headerBytes: number
  readonly dataBytes: number
  readonly endsInLineFeed: boolean
}

/** Reads a header; undefined where it is invalid, which is reported. */
export async function readHeader(
  reader: ByteReader,
  span: ArraySpan,
  limit: number,
): Promise<NpyHeader | undefined> {
  const prefix = await readPrefix(reader, span, limit)
  if (!prefix) return undefined
  reader.seek(span.start + prefix.textAt)
  if (!reader.holds(prefix.textBytes)) await reader.load(prefix.textBytes)
  const parsed = parseText(reader.bytes(prefix.textBytes), prefix, span)
  if (!parsed) return undefined
  reportDeviations(parsed.literal, parsed.header, span)
  return checkLength(parsed.header, span) ? parsed.header : undefined
}

function parseText(
  bytes: Uint8Array,
  { version, textAt, textBytes }: Prefix,
  span: ArraySpan,
): { readonly literal: HeaderLiteral; readonly header: NpyHeader } | undefined {
  try {
    const literal = parseHeaderLiteral(decodeText(bytes, version))
    const endsInLineFeed = bytes.at(-1) === LINE_FEED
    return { literal, header: interpret(literal, { textAt, textBytes, endsInLineFeed }) }
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    const { code, message, path = 'header', offset = 0 } = error
    if (path === TYPE_PATH) span.refusedType(code, message, path, textAt + offset)
    else span.broken(code, message, path, textAt + offset)
    return undefined
  }
}

interface Prefix {
  readonly version: NpyVersion
  readonly textAt: number
  readonly textBytes: number
}

async function readPrefix(reader: ByteReader, span: ArraySpan, limit: number): Promise<Prefix | undefined> {
  const broken = (
    code: 'ERR_TRUNCATED' | 'ERR_HEADER' | 'ERR_UNSUPPORTED' | 'ERR_LIMIT',
    message: string,
    at = 0,
  ) => {
    span.broken(code, message, 'header', at)
    return undefined
  }
  const available = span.end - span.start
  if (available < SHORTEST_PREFIX_BYTES) {
    return broken(
      'ERR_TRUNCATED',
      `The array has ${available} bytes; magic, version and header length alone need 10.`,
    )
  }
  reader.seek(span.start)
  if (!reader.holds(SHORTEST_PREFIX_BYTES)) await reader.load(SHORTEST_PREFIX_BYTES)
  const bytes = reader.bytes(SHORTEST_PREFIX_BYTES)
  if (!MAGIC.every((byte, at) => bytes[at] === byte)) {
    return broken('ERR_HEADER', 'The array does not start with the magic number \\x93NUMPY.')
  }
  const [major = 0, minor = 0] = bytes.subarray(MAGIC.length)
  const version = VERSIONS.get(major)
  if (!version || minor !== 0) {
    return broken(
      'ERR_UNSUPPORTED',
      `The array has format version ${major}.${minor}; expected 1.0, 2.0 or 3.0.`,
      6,
    )
  }
  const textAt = LENGTH_FIELD_AT + version.lengthBytes
  if (available < textAt)
    return broken('ERR_TRUNCATED', `The array ends after ${available} bytes, inside its header length.`, 8)
  reader.seek(span.start + LENGTH_FIELD_AT)
  if (!reader.holds(version.lengthBytes)) await reader.load(version.lengthBytes)
  const textBytes = littleEndian(reader.bytes(version.lengthBytes))
  if (textBytes > available - textAt) {
    return broken(
      'ERR_TRUNCATED',
      `The header has ${textBytes} bytes; the array ends after ${available - textAt} of them.`,
      8,
    )
  }
  if (textBytes > limit) {
    return broken('ERR_LIMIT', `The header has ${textBytes} bytes; limits.headerBytes is ${limit}.`, 8)
  }
  return { version, textAt, textBytes }
}

function littleEndian(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0)
}

function decodeText(bytes: Uint8Array, { encoding }: NpyVersion): string {
  if (encoding === 'latin1') return Buffer.from(bytes).toString('latin1')
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new TileworkError('ERR_HEADER', 'The header is not valid UTF-8, which version 3.0 requires.', {
      cause,
    })
  }
}

const KEYS = ['descr', 'fortran_order', 'shape']

function interpret(
  { entries }: HeaderLiteral,
  text: { textAt: number; textBytes: number; endsInLineFeed: boolean },
): NpyHeader {
  const unknown = [...entries.keys()].find((key) => !KEYS.includes(key))
  const missing = KEYS.find((key) => !entries.has(key))
  if (unknown !== undefined || missing !== undefined) {
    const what = missing === undefined ? `has the key ${quote(unknown ?? '')}` : `lacks the key '${missing}'`
    throw new TileworkError('ERR_HEADER', `The header ${what}; expected exactly ${KEYS.join(', ')}.`)
  }
  const [descr, fortran, extents] = KEYS.map((key) => entries.get(key))
  if (typeof descr !== 'string') throw wrongValue('descr', 'a string')
  if (typeof fortran !== 'boolean') throw wrongValue('fortran_order', 'True or False')
  if (!Array.isArray(extents)) throw wrongValue('shape', 'a tuple')
  const type = typeOf(descr)
  const { shape, dataBytes } = checkExtents(extents as readonly Extent[], type.itemBytes)
  return {
    type,
    isFortran: fortran,
    shape,
    headerBytes: text.textAt + text.textBytes,
    dataBytes,
    endsInLineFeed: text.endsInLineFeed,
  }
}

function wrongValue(key: string, expected: string): TileworkError {
  return new TileworkError('ERR_HEADER', `The value of '${key}' in the header must be ${expected}.`, {
    path: key,
  })
}

function typeOf(descr: string): ItemType {
  try {
    return parseDescr(descr)
  } catch (error) {
    const { code, message } = error as TileworkError
    throw new TileworkError(code, message, { path: TYPE_PATH })
  }
}

function checkExtents(
  extents: readonly Extent[],
  itemBytes: number,
): { readonly shape: readonly number[]; readonly dataBytes: number } {
  if (extents.length > MAX_RANK) {
    throw new TileworkError(
      'ERR_RANK',
      `The array has ${extents.length} axes; numpy takes up to ${MAX_RANK}.`,
      {
        path: 'shape',
      },
    )
  }
  for (const [axis, extent] of extents.entries()) {
    const path = `shape[${axis}]`
    if (extent < 0) {
      const message = `${path} is ${shortNumber(extent)}; a dimension must be at least 0.`
      throw new TileworkError('ERR_HEADER', message, { path })
    }
    if (typeof extent === 'bigint') {
      const message = `${path} is ${shortNumber(extent)}; the limit is 2^53 - 1.`
      throw new TileworkError('ERR_OVERFLOW', message, { path })
    }
  }
  const shape = extents as readonly number[]
  const tooMany = beyondLimit(shape, itemBytes)
  if (tooMany !== undefined) {
    const message = `The product of the non-zero dimensions needs ${tooMany} bytes; the limit is 2^63 - 1.`
    throw new TileworkError('ERR_OVERFLOW', message, { path: 'shape' })
  }
  return { shape, dataBytes: Number(exactSizeOf(shape).elements) * itemBytes }
}

/**
 * The bytes that numpy finds too many, as text; undefined where it takes the shape. It multiplies all non-zero dimensions, even where
 * another one is 0, and refuses an overflow.
 */
export function beyondLimit(shape: readonly number[], itemBytes: number): string | undefined {
  const nonZeroBytes = multiply(exactSizeOf(shape).nonZero, itemBytes)
  return nonZeroBytes < BYTES_LIMIT ? undefined : shortNumber(nonZeroBytes)
}

/** Truncates a number for messages: in a header it may have thousands of digits. */
function shortNumber(value: Extent): string {
  const digits = String(value)
  return digits.length > 40 ? `${digits.slice(0, 40)}… (${digits.length} digits)` : digits
}

function reportDeviations(literal: HeaderLiteral, { type }: NpyHeader, span: ArraySpan): void {
  if (literal.hasLongSuffix) {
    const message =
      'A number in the shape has the suffix L of Python 2, which few readers besides numpy accept.'
    span.deviation('ERR_HEADER', message, 'shape', LENGTH_FIELD_AT)
  }
  if (type.isOrderUnknown) {
    const message = 'The type has no byte order for items of several bytes; they are read as little-endian.'
    span.note('ERR_DTYPE', message, TYPE_PATH, LENGTH_FIELD_AT)
  }
}

function checkLength({ headerBytes, dataBytes }: NpyHeader, span: ArraySpan): boolean {
  const available = span.end - span.start - headerBytes
  if (dataBytes > available) {
    const message = `Type and shape need ${dataBytes} bytes of data; the array has ${available}.`
    span.broken('ERR_TRUNCATED', message, 'data', headerBytes)
    return false
  }
  if (dataBytes < available) {
    const message = `${available - dataBytes} bytes follow the ${dataBytes} bytes of data that type and shape need.`
    span.deviation('ERR_GAP', message, 'data', headerBytes + dataBytes)
  }
  return true
}

/** Reports legal but unusual headers: old versions of numpy align data to 16 bytes, and other writers do not align them. */
export function noteHeaderForm({ headerBytes, endsInLineFeed }: NpyHeader, span: ArraySpan): void {
  if (headerBytes % DATA_ALIGNMENT !== 0) {
    const message = `The data start ${headerBytes} bytes into the array; numpy aligns them to ${DATA_ALIGNMENT}.`
    span.note('ERR_MISALIGNED', message, 'header', headerBytes)
  }
  if (!endsInLineFeed) {
    span.note('ERR_HEADER', 'The header does not end in a line feed.', 'header', headerBytes)
  }
}

/** The content of a header. */
export interface HeaderFields {
  readonly descr: string
  readonly isFortran: boolean
  readonly shape: readonly number[]
}

/** Magic, version, length and header, byte for byte as numpy writes them; version 1.0 suffices for 64 axes. */
export function printHeader({ descr, isFortran, shape }: HeaderFields): Uint8Array {
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(', ')
  const order = isFortran ? 'True' : 'False'
  const literal = `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': (${extents}), }`
  const growing = shape.at(isFortran ? -1 : 0)
  const room = growing === undefined ? 0 : GROWTH_DIGITS - String(growing).length
  const prefixBytes = LENGTH_FIELD_AT + 2
  const used = prefixBytes + literal.length + room + 1
  // numpy adds 64 bytes of padding to a header that is aligned already.
  const padding = DATA_ALIGNMENT - (used % DATA_ALIGNMENT)
  const text = `${literal}${' '.repeat(room + padding)}\n`
  const header = Buffer.alloc(prefixBytes + text.length)
  header.set(MAGIC)
  header[MAGIC.length] = 1
  header.writeUInt16LE(text.length, LENGTH_FIELD_AT)
  header.write(text, prefixBytes, 'latin1')
  return new Uint8Array(header.buffer, header.byteOffset, header.byteLength)
}
