/** The name of an archive's first member, by which a format recognises its archives without reading the directory. */
import type { FileHead } from '../formats/file_head.js'
import { LOCAL_HEADER } from './schema.js'

/** Offset of the length of the name in a local header. */
const NAME_LENGTH_AT = 26

/** As Latin-1 text, cut at the end of the head; undefined unless the file starts with a local header. */
export function firstMember({ bytes, byteLength }: FileHead): string | undefined {
  if (byteLength < LOCAL_HEADER.bytes) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (view.getUint32(0, true) !== LOCAL_HEADER.signature) return undefined
  const end = LOCAL_HEADER.bytes + view.getUint16(NAME_LENGTH_AT, true)
  return Buffer.from(bytes.subarray(LOCAL_HEADER.bytes, end)).toString('latin1')
}
