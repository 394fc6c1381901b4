/** Stored tensors with their elements in another shape or transposed, as lazy tensors. */
import { asStored, StoredTensor } from '../../../tensor/dense.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor } from '../../../tensor/tensor.js'

/** The same elements, in row-major order, in another shape. */
export function withShape(tensor: DenseTensor, shape: readonly number[]): DenseTensor {
  const { source, start, dtype, name } = asStored(tensor)
  return new StoredTensor({ source, start, dtype, name, shape })
}

/** The matrix [K, N] as [N, K], row-major. */
export function transposed({
  tensor,
  k,
  n,
}: {
  readonly tensor: DenseTensor
  readonly k: number
  readonly n: number
}): DenseTensor {
  return withShape(reorder(withShape(tensor, [k, n]), 'fb'), [n, k])
}
