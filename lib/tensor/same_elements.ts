/** Whether two tensors have the same elements for certain, judged without reading them. */
import { isDeepStrictEqual } from 'node:util'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import type { Tensor } from './tensor.js'

/** True for one range of one source, with the same conversions of its elements. False where that cannot be told. */
export function haveSameElements(one: Tensor, other: Tensor): boolean {
  if (!(one instanceof StoredTensor) || !(other instanceof StoredTensor)) return false
  const formOf = ({ dtype, shape, storage }: StoredTensor) => [
    dtype,
    shape,
    storage.layout,
    storage.lower,
    storage.upper,
  ]
  if (!isDeepStrictEqual(formOf(one), formOf(other))) return false
  if (one instanceof FusedTensor && other instanceof FusedTensor) {
    const { base, ...steps } = one.recipe
    const { base: otherBase, ...otherSteps } = other.recipe
    return isDeepStrictEqual(steps, otherSteps) && haveSameElements(base, otherBase)
  }
  return one.source === other.source && one.start === other.start
}
