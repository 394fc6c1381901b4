/** Narrows a tensor of a file, whose element type the compiler cannot know. */
import { type CanonicalDtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { isDenseTensor } from './check_tensor.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/**
 * True for a dense tensor of this element type. TypeScript then knows the array of `toTypedArray()` and the type that `at()`
 * gives: after `isDtype(tensor, 'float32')` a `Float32Array` and a number.
 *
 * @param dtype - a dtype or one of its aliases
 * @throws TileworkError ERR_DTYPE for an unknown dtype
 */
export function isDtype<Name extends DtypeName>(
  tensor: AnyTensor,
  dtype: Name,
): tensor is DenseTensor<CanonicalDtype<Name>> {
  const wanted = resolveDtype(dtype)
  return isDenseTensor(tensor) && tensor.dtype === wanted
}
