/** Turns a lazy tensor, or one that lies in a file, into one that owns its memory. */
import { MemorySource } from '../bytes/memory.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import type { DenseTensor } from './tensor.js'

/**
 * The tensor with its storage computed once and held in memory of its own; it outlives the file it came from.
 *
 * @throws TileworkError ERR_VIEW_TOO_LARGE, ERR_LIMIT when there is no memory, and what `bytes` throws
 */
export async function materialize(tensor: DenseTensor): Promise<DenseTensor> {
  const { storage, name, dtype, shape, metadata, doc } = tensor
  const bytes = await tensor.bytes()
  return new StoredTensor({
    source: new MemorySource(isFresh(tensor) ? bytes : copyOf(bytes)),
    start: 0,
    name,
    dtype,
    shape,
    metadata,
    layout: storage.layout,
    ...(doc !== undefined && { doc }),
    lower: storage.lower,
    upper: storage.upper,
  })
}

/** A reorder that computes gives memory that nobody else holds; an identity may give a view of the base. */
function isFresh(tensor: DenseTensor): boolean {
  return tensor instanceof FusedTensor && tensor.source.stored === undefined
}

function copyOf(bytes: Uint8Array): Uint8Array {
  const copy = allocateBytes(bytes.byteLength)
  copy.set(bytes)
  return copy
}
