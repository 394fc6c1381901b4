/** What a format that cannot name a layout stores of a tensor. */
import { parseLayout } from '../layout/parse_layout.js'
import { isPlain } from './plain_storage.js'
import type { DenseTensor } from './tensor.js'

/**
 * The shape under which a tensor's storage is a plain row-major array: its own, or that of the layout's digits.
 *
 * @throws TileworkError ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_OVERFLOW for a tensor of a user's own that is none
 */
export function storedShape({ shape, dtype, storage }: DenseTensor): readonly number[] {
  if (isPlain(storage)) return shape
  const { layout, lower, upper } = storage
  return parseLayout(layout)
    .storage(shape, { dtype, lower, upper })
    .digits.map((digit) => digit.radix)
}
