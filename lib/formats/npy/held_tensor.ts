/**
 * Caches small tensors between two reads. A ZIP member's checksum precedes its data, so each tensor is read twice; the bytes of a
 * tensor that would be computed, inflated or loaded again are kept from the first read to the second.
 */
import { MemorySource } from '../../bytes/memory.js'
import { bufferWithinBudget } from '../../bytes/memory_budget.js'
import { nativeFileOf } from '../../bytes/native_file.js'
import type { ByteSource } from '../../bytes/source.js'
import { asStored, StoredTensor } from '../../tensor/dense.js'
import { FusedTensor } from '../../tensor/fused.js'
import type { Tensor } from '../../tensor/tensor.js'

/** Maximum size of a cached tensor: one window of the checksum. */
const MOST_HELD_BYTES = 2 * 1024 * 1024

const READS = 2

/** `tensor`, or a cache of it that reads it once for two consecutive readers. */
export function heldBetweenReads(tensor: Tensor): Tensor {
  // A caller's object may give another shape at each access, so it is accessed as seldom as possible.
  const isOwn = tensor instanceof StoredTensor || tensor instanceof FusedTensor
  if (!isOwn || !tensor.hasData) return tensor
  const { byteLength } = tensor.storage
  if (byteLength === 0 || byteLength > bufferWithinBudget(MOST_HELD_BYTES)) return tensor
  const stored = asStored(tensor)
  if (nativeFileOf(stored.source) || stored.source instanceof MemorySource) return tensor
  const { name, dtype, shape, metadata, storage } = stored
  const { layout, lower, upper } = storage
  const placed = { start: 0, layout, lower, upper }
  return new StoredTensor({ source: new HeldSource(stored), ...placed, name, dtype, shape, metadata })
}

class HeldSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #tensor: StoredTensor
  #bytes: Promise<Uint8Array> | undefined
  /** Bytes still to be read before the memory is released. */
  #left = 0

  constructor(tensor: StoredTensor) {
    this.byteLength = tensor.storage.byteLength
    this.label = tensor.source.label ?? tensor.name
    this.#tensor = tensor
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const bytes = await this.#held()
    this.#left -= end - start
    if (this.#left <= 0) this.#bytes = undefined
    return bytes.subarray(start, end)
  }

  #held(): Promise<Uint8Array> {
    if (this.#bytes) return this.#bytes
    this.#left = READS * this.byteLength
    this.#bytes = this.#tensor.bytes().catch((error) => {
      this.#bytes = undefined
      throw error
    })
    return this.#bytes
  }
}
