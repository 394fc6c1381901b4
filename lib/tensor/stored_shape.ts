/** The shape that a format without layouts stores for a tensor. */
import { parseLayout } from '../layout/parse_layout.js'
import { arrayShape } from '../layout/storage.js'
import { isPlain } from './plain_storage.js'
import type { DenseTensor } from './tensor.js'

/**
 * The shape of a tensor's storage as a plain row-major array: its own shape, or that of `arrayShape`.
 *
 * @throws TileworkError ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_OVERFLOW for an inconsistent tensor of the caller
 */
export function storedShape({ shape, dtype, storage }: DenseTensor): readonly number[] {
  if (isPlain(storage)) return shape
  const { layout, lower, upper } = storage
  return arrayShape(parseLayout(layout).storage(shape, { dtype, lower, upper }))
}
