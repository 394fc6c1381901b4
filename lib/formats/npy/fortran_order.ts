/** The one layout beside row-major order that an npy header can name. */
import { isPadded } from '../../tensor/plain_storage.js'
import type { DenseStorage } from '../../tensor/tensor.js'

/** True for what numpy calls Fortran order. */
export function isFortranOrder(storage: DenseStorage): boolean {
  return storage.layout === 'column_major' && !isPadded(storage)
}
