/** Whether a tensor's storage is a plain array, which every format can hold. */
import type { DenseStorage } from './tensor.js'

/** True when any axis has explicit padding. */
export function isPadded({ lower, upper }: Pick<DenseStorage, 'lower' | 'upper'>): boolean {
  for (let axis = 0; axis < lower.length; axis++) {
    if (lower[axis] !== 0) return true
  }
  for (let axis = 0; axis < upper.length; axis++) {
    if (upper[axis] !== 0) return true
  }
  return false
}

/** True for row-major storage without padding. */
export function isPlain(storage: Pick<DenseStorage, 'layout' | 'lower' | 'upper'>): boolean {
  return storage.layout === 'row_major' && !isPadded(storage)
}
