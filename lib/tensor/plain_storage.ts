/** Whether a tensor's storage is what a format without layouts expects. */
import type { DenseStorage } from './tensor.js'

/** True when there is explicit padding along any axis. */
export function isPadded({ lower, upper }: Pick<DenseStorage, 'lower' | 'upper'>): boolean {
  return [...lower, ...upper].some((count) => count !== 0)
}

/** True for row-major storage without padding: the elements and nothing else. */
export function isPlain(storage: Pick<DenseStorage, 'layout' | 'lower' | 'upper'>): boolean {
  return storage.layout === 'row_major' && !isPadded(storage)
}
