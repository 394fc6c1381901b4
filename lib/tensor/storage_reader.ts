/** How the pipeline reads a tensor's storage from front to back without doing a window's preparation again. */
import type { ByteSource } from '../bytes/source.js'
import { asStored } from './dense.js'
import { ReorderedTensor } from './reordered.js'
import type { DenseTensor } from './tensor.js'

export interface StorageReader {
  read(start: number, end: number): Promise<Uint8Array>
  /** Where the storage lies as it is, so that it can go from descriptor to descriptor. */
  readonly range?: { readonly source: ByteSource; readonly start: number }
}

/** @throws TileworkError as `bytes` of the tensor */
export async function storageReader(tensor: DenseTensor): Promise<StorageReader> {
  if (tensor instanceof ReorderedTensor) return tensor.source.hold()
  // A tensor of another kind is read through a source that checks what it gives.
  const { source, start } = asStored(tensor)
  return { read: (from, to) => source.read(start + from, start + to), range: { source, start } }
}
