/** Bytes of any source into memory of the caller: straight where the source can, else by a copy. */
import { lostBytesError } from './check_range.js'
import type { ByteSource } from './source.js'

/** Fills `target` with the bytes from `start` on. Errors: as `read` of the source. */
export async function readInto(source: ByteSource, start: number, target: Uint8Array): Promise<void> {
  if (source.readInto) return source.readInto(start, target)
  const bytes = await source.read(start, start + target.byteLength)
  if (bytes.byteLength !== target.byteLength) throw lostBytesError(source.label)
  target.set(bytes)
}
