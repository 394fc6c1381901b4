/** The one layout beside row-major order that an npy header can name. */
import type { DenseStorage } from '../../tensor/tensor.js'

/** True for what numpy calls Fortran order. */
export function isFortranOrder({ layout, lower, upper }: DenseStorage): boolean {
  return layout === 'column_major' && [...lower, ...upper].every((count) => count === 0)
}
