/** Tells a file by its length and first brace, an index by its weight map. */
import { ByteReader } from '../../bytes/reader.js'
import type { ByteSource } from '../../bytes/source.js'
import { FORMAT_HEADER_BYTES, LENGTH_BYTES } from './schema.js'

/** Bytes of an index in which its weight map must have begun: the metadata before it are small. */
const LOOK_BYTES = 64 * 1024

const BRACE = 0x7b

export async function detect(source: ByteSource): Promise<boolean> {
  if (await isIndex(source)) return true
  if (source.byteLength < LENGTH_BYTES + 2) return false
  const reader = new ByteReader(source, LENGTH_BYTES + 1)
  await reader.load(LENGTH_BYTES + 1)
  const length = reader.u64()
  return length >= 2 && length <= source.byteLength - LENGTH_BYTES && reader.u8() === BRACE
}

/** True for an index of shards. No file is taken for one: its length would have to be 2^32 bytes or more. */
export async function isIndex(source: ByteSource): Promise<boolean> {
  const first = await source.read(0, Math.min(LENGTH_BYTES, source.byteLength))
  if (first.length === LENGTH_BYTES && isHeaderLength(first)) return false
  if (!/^\s*\{/.test(Buffer.from(first).toString('latin1'))) return false
  const look = await source.read(0, Math.min(LOOK_BYTES, source.byteLength))
  return Buffer.from(look.buffer, look.byteOffset, look.byteLength).includes('"weight_map"')
}

function isHeaderLength(bytes: Uint8Array): boolean {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true) <= FORMAT_HEADER_BYTES
}
