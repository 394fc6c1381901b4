/** BTF has no magic number: a file is one when its count, first offset and first record fit each other. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { DTYPE_BY_CODE, HEADER_BYTES, LAYOUT_COO_OF_DOCUMENT, MAX_RANK, U64_BYTES } from './schema.js'
import { swapBytes } from './walk.js'

/** Bytes that a look takes: enough for count and first offset, and for a record header elsewhere. */
const LOOK_BYTES = 16

/** True when the file could be BTF, also when its bytes are swapped, so that the reader can name that. */
export async function detect(source: ByteSource): Promise<boolean> {
  const { byteLength } = source
  if (byteLength < U64_BYTES) return false
  const reader = new ByteReader(source, LOOK_BYTES)
  await reader.load(U64_BYTES)
  const count = reader.u64()
  // Eight zero bytes are the empty file; a longer file that begins with zeros may be anything.
  if (count === 0) return byteLength === U64_BYTES
  if (reader.remaining < U64_BYTES) return false
  const offset = reader.u64()
  const most = Math.floor((byteLength - U64_BYTES) / U64_BYTES)
  if (count > most) return swapBytes(count) <= most && swapBytes(offset) === (swapBytes(count) + 1n) * 8n
  if (offset < U64_BYTES + U64_BYTES * Number(count) || offset > byteLength - HEADER_BYTES) return false
  reader.seek(offset as number)
  await reader.load(HEADER_BYTES)
  const isRank = reader.u64() <= MAX_RANK
  const isDtype = reader.u8() < DTYPE_BY_CODE.length
  return isRank && isDtype && reader.u8() <= LAYOUT_COO_OF_DOCUMENT
}
