/** Turns a lazy tensor, or one that lies in a file, into one that owns its memory. */
import { MemorySource } from '../bytes/memory.js'
import { resultBytes } from '../bytes/view_limit.js'
import { checkDense } from './check_tensor.js'
import { asStored, StoredTensor } from './dense.js'
import type { DenseTensor } from './tensor.js'

/**
 * The tensor with its storage computed once and held in memory of its own; it outlives the file it came from.
 *
 * @throws TileworkError ERR_VIEW_TOO_LARGE, ERR_LIMIT when there is no memory, and what `bytes` throws
 */
export async function materialize(tensor: DenseTensor): Promise<DenseTensor> {
  const stored = asStored(checkDense(tensor, 'materialize'))
  const { storage, name, dtype, shape, metadata, doc } = stored
  const bytes = resultBytes(storage.byteLength)
  await stored.copyTo(bytes)
  return new StoredTensor({
    source: new MemorySource(bytes),
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
