/** An npy file begins with its magic. */
import type { ByteSource } from '../../bytes/source.js'
import { MAGIC } from './schema.js'

export async function detect(source: ByteSource): Promise<boolean> {
  if (source.byteLength < MAGIC.length) return false
  const bytes = await source.read(0, MAGIC.length)
  return MAGIC.every((byte, at) => bytes[at] === byte)
}
