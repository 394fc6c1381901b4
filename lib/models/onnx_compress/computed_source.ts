/** A tensor whose bytes are computed window by window when they are read, so that a tensor of any size takes bounded memory. */
import { checkRange } from '../../bytes/check_range.js'
import type { ByteSource } from '../../bytes/source.js'
import type { Dtype } from '../../dtype/dtypes.js'
import { packedByteLength } from '../../dtype/packed_codes.js'
import { StoredTensor } from '../../tensor/dense.js'
import { sizeOf } from '../../tensor/shape.js'
import type { DenseTensor } from '../../tensor/tensor.js'

/** Computes bytes `[start, end)` of the storage. */
export type ComputeBytes = (start: number, end: number) => Promise<Uint8Array>

class ComputedSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #compute: ComputeBytes

  constructor(byteLength: number, label: string, compute: ComputeBytes) {
    this.byteLength = byteLength
    this.label = label
    this.#compute = compute
  }

  read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    return this.#compute(start, end)
  }
}

/** A row-major tensor of computed bytes. It can be read asynchronously only. */
export function computedTensor(
  { name, dtype, shape }: { readonly name: string; readonly dtype: Dtype; readonly shape: readonly number[] },
  compute: ComputeBytes,
): DenseTensor {
  const source = new ComputedSource(packedByteLength(dtype, sizeOf(shape)), `tensor "${name}"`, compute)
  return new StoredTensor({ source, start: 0, dtype, shape, name })
}
