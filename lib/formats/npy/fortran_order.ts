/** Fortran order, the only layout besides row-major that an npy header can express. */
import { isPadded } from '../../tensor/plain_storage.js'
import type { DenseStorage } from '../../tensor/tensor.js'

/** True for column-major storage without padding: numpy's Fortran order. */
export function isFortranOrder(storage: DenseStorage): boolean {
  return storage.layout === 'column_major' && !isPadded(storage)
}
