/** Recognises a safetensors file by its header length and first brace, and an index of shards by its weight map. */
import type { FileHead } from '../file_head.js'
import { FORMAT_HEADER_BYTES, LENGTH_BYTES } from './schema.js'

/** The weight map of an index starts within this many bytes; only small metadata come before it. */
const MAX_WEIGHT_MAP_START = 64 * 1024

const BRACE = 0x7b

export async function detect(head: FileHead): Promise<boolean> {
  if (await isIndex(head)) return true
  const { bytes, byteLength } = head
  if (byteLength < LENGTH_BYTES + 2) return false
  const length = headerLengthOf(bytes)
  return length >= 2 && length <= byteLength - LENGTH_BYTES && bytes[LENGTH_BYTES] === BRACE
}

/** True for a truncated file: the header is longer than the file, and starts like JSON. */
export function isDamaged({ bytes, byteLength }: FileHead): boolean {
  if (byteLength <= LENGTH_BYTES || headerLengthOf(bytes) <= byteLength - LENGTH_BYTES) return false
  return /^\{(\s*("|\}|$))/.test(Buffer.from(bytes.subarray(LENGTH_BYTES)).toString('latin1'))
}

/** True for an index of shards. A safetensors file is never mistaken for one: its header would have 2^32 bytes or more. */
export async function isIndex(head: FileHead): Promise<boolean> {
  const { bytes, byteLength } = head
  if (byteLength >= LENGTH_BYTES && headerLengthOf(bytes) <= FORMAT_HEADER_BYTES) return false
  if (!/^\s*\{/.test(Buffer.from(bytes.subarray(0, LENGTH_BYTES)).toString('latin1'))) return false
  const text = await head.range(0, Math.min(MAX_WEIGHT_MAP_START, byteLength))
  return (
    text !== undefined && Buffer.from(text.buffer, text.byteOffset, text.byteLength).includes('"weight_map"')
  )
}

function headerLengthOf(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true)
}
