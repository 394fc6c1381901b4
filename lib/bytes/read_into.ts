/** Bytes of any source into memory of the caller: straight where the source can, else by a copy. */
import { TileworkError } from '../errors.js'
import type { ByteSource } from './source.js'

/** Fills `target` with the bytes from `start` on. Errors: as `read` of the source. */
export async function readInto(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  if (source.readInto) return source.readInto(start, target)
  const bytes = await source.read(start, start + target.byteLength)
  if (bytes.byteLength !== target.byteLength) {
    const label = source.label ?? 'the source'
    throw new TileworkError('ERR_FILE_CHANGED', `${label} lost its bytes while it was read.`, { path: label })
  }
  target.set(bytes)
}
