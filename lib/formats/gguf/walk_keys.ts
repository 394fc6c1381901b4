/** Walks the keys of a file: checks every length before it is used, and keeps where each value is. */
import { isUtf8 } from 'node:buffer'
import { valueText } from '../../value_text.js'
import { type Exact, multiply } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import type { HeaderCursor } from './header_cursor.js'
import { GgufMetadata } from './metadata.js'
import { textOf } from './metadata_values.js'
import {
  ALIGNMENT_KEY,
  DEFAULT_ALIGNMENT,
  type GgufValueType,
  MAX_ARRAY_DEPTH,
  MAX_KEY_BYTES,
  MAX_KEYS,
  U32_BYTES,
  VALUE_TYPES,
} from './schema.js'

/** @throws FileFault for what cannot be read; `report` decides about the rest */
export async function walkKeys(cursor: HeaderCursor, count: Exact, report: Report): Promise<GgufMetadata> {
  const metadata = new GgufMetadata()
  if (count > MAX_KEYS) {
    throw new FileFault('ERR_LIMIT', `The file has ${count} keys; at most ${MAX_KEYS} are read.`, cursor.at)
  }
  const { isLittleEndian, isOld } = cursor
  const form = { isLittleEndian, isOld }
  for (let index = 0; index < Number(count); index++) {
    const start = cursor.at
    const range = await cursor.text(`keys[${index}]`)
    const key = cursor.bytes(range.start, range.end)
    const path = `metadata[${valueText(textOf(key))}]`
    checkKey(key, { path, offset: range.start }, report)
    const type = await typeAt(cursor, path)
    const from = cursor.at
    await skipValue(cursor, type, path, 0)
    const entry = { form, type, key, bytes: cursor.bytes(from, cursor.at) }
    if (!metadata.addStored(textOf(key), entry)) {
      const message = `${path}: the file has the key twice; readers differ on which value counts.`
      report.broken('ERR_DUPLICATE', message, { path, offset: start })
    }
  }
  return metadata
}

function checkKey(key: Uint8Array, place: { path: string; offset: number }, report: Report): void {
  if (key.byteLength === 0) report.deviation('ERR_HEADER', 'A key is empty.', place)
  if (key.byteLength > MAX_KEY_BYTES) {
    const message = `A key has ${key.byteLength} bytes; the format ends at ${MAX_KEY_BYTES}.`
    report.deviation('ERR_LIMIT', message, place)
  }
  if (!isUtf8(key)) {
    const message = `${place.path}: the key is not UTF-8; its bytes are kept, and shown as U+FFFD.`
    report.deviation('ERR_VALUE', message, place)
  }
}

async function typeAt(cursor: HeaderCursor, path: string): Promise<GgufValueType> {
  if (!cursor.holds(U32_BYTES)) await cursor.load(U32_BYTES, path)
  const offset = cursor.at
  const number = cursor.u32()
  const type = VALUE_TYPES[number]
  if (type) return type.name
  const message = `${path} has the value type ${number}; types end at ${VALUE_TYPES.length - 1}.`
  throw new FileFault('ERR_VALUE', message, offset)
}

/** Moves behind a value. Texts of an array are skipped without waiting while the cursor holds them. */
async function skipValue(
  cursor: HeaderCursor,
  type: GgufValueType,
  path: string,
  depth: number,
): Promise<void> {
  if (type === 'string') {
    await cursor.text(path)
    return
  }
  if (type !== 'array') return skipBytes(cursor, bytesOf(type), path)
  if (depth === MAX_ARRAY_DEPTH) {
    const message = `${path} has more than ${MAX_ARRAY_DEPTH} arrays in each other.`
    throw new FileFault('ERR_LIMIT', message, cursor.at)
  }
  const items = await typeAt(cursor, path)
  if (!cursor.holds(cursor.sizeBytes)) await cursor.load(cursor.sizeBytes, path)
  const count = cursor.size()
  const leastBytes = multiply(count, bytesOf(items) || cursor.sizeBytes)
  if (leastBytes > cursor.remaining) throw cursor.truncated(leastBytes, path)
  if (bytesOf(items) > 0) return skipBytes(cursor, leastBytes, path)
  for (let item = 0; item < Number(count); item++) {
    if (items === 'array') await skipValue(cursor, items, path, depth + 1)
    else if (!cursor.skipText()) await cursor.text(path)
  }
}

async function skipBytes(cursor: HeaderCursor, count: Exact, path: string): Promise<void> {
  if (!cursor.holds(Number(count))) await cursor.load(count, path)
  cursor.at += Number(count)
}

/** Bytes of a value of a fixed length; 0 for others. */
function bytesOf(type: GgufValueType): number {
  return VALUE_TYPES.find(({ name }) => name === type)!.bytes
}

/** The alignment of a file. @throws FileFault for one that no data can have */
export function alignmentOf(metadata: GgufMetadata, offset: number): number {
  const type = metadata.typeOf(ALIGNMENT_KEY)
  if (type === undefined) return DEFAULT_ALIGNMENT
  const value = type === 'array' ? undefined : metadata.get(ALIGNMENT_KEY)!.value
  if (type === 'uint32' && isPowerOfTwo(value as number)) return value as number
  const message = `${ALIGNMENT_KEY} is ${type} ${valueText(value)}; it must be uint32 and a power of two.`
  throw new FileFault('ERR_VALUE', message, offset)
}

export function isPowerOfTwo(value: number): boolean {
  return value > 0 && Number.isInteger(Math.log2(value))
}
