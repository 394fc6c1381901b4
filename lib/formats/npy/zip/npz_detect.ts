/** Many formats are ZIP archives: one is npz when its first member is an array, or when it has no member. */
import type { ByteSource } from '../../../bytes/source.js'
import { viewOf } from './zip_end.js'
import { END, LOCAL_HEADER, MEMBER_ENDING } from './zip_schema.js'

/** Longer names are legal and not looked at. */
const MAX_NAME_BYTES = 1024

export async function detect(source: ByteSource): Promise<boolean> {
  const { byteLength } = source
  if (byteLength < END.bytes) return false
  const bytes = await source.read(0, Math.min(byteLength, LOCAL_HEADER.bytes + MAX_NAME_BYTES))
  const view = viewOf(bytes)
  const signature = view.getUint32(0, true)
  if (signature === END.signature) return byteLength === END.bytes
  if (signature !== LOCAL_HEADER.signature || byteLength < LOCAL_HEADER.bytes) return false
  const name = bytes.subarray(LOCAL_HEADER.bytes, LOCAL_HEADER.bytes + view.getUint16(26, true))
  return Buffer.from(name).toString('latin1').endsWith(MEMBER_ENDING)
}
