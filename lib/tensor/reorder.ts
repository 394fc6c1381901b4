/** Moves a tensor to another layout, lazily. A reorder of a reorder moves the base to the last layout directly. */
import { checkOptions, readInput } from '../caller_input.js'
import type { Dtype } from '../dtype/dtypes.js'
import { checkPadding } from '../layout/extents.js'
import type { Layout } from '../layout/layout.js'
import { type AnyLayoutName, toLayout } from '../layout/parse_layout.js'
import { checkOnlyDense } from './check_tensor.js'
import { FusedTensor } from './fused.js'
import { inLayout, JoinedTensor } from './joined.js'
import { isPadded } from './plain_storage.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

export interface ReorderOptions {
  /** Explicit padding before the first element, one count per axis; zeros. Data layouts and row_major only. */
  readonly lower?: readonly number[]
  /** Explicit padding after the last element, one count per axis; zeros. Data layouts and row_major only. */
  readonly upper?: readonly number[]
  /** `weights` joins a data and a weights layout of the same rank by axis position (`b` is `o`, `f` is `i`). */
  readonly as?: 'weights'
}

/**
 * The tensor in another layout, with the same name, element type and logical shape. Lazy.
 *
 * @param tensor - a dense tensor in any layout
 * @param layout - a layout name (see `parseLayout`) or a parsed layout; `row_major` takes a blocked tensor back
 * @throws TileworkError at once: ERR_UNSUPPORTED for a tensor that is not dense or has elements of 2 bits, ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_LAYOUT_JOIN, ERR_ARGUMENT, ERR_NO_DATA
 */
export function reorder<D extends Dtype>(
  tensor: AnyTensor<D>,
  layout: AnyLayoutName | Layout,
  options?: ReorderOptions,
): DenseTensor<D>
export function reorder(
  tensor: AnyTensor,
  layout: AnyLayoutName | Layout,
  options: ReorderOptions = {},
): DenseTensor {
  const dense = checkOnlyDense(tensor, 'reorder', 'have a layout')
  checkOptions(options, 'reorder', ['lower', 'upper', 'as'])
  const recipe = FusedTensor.recipeOf(dense)
  const target = toLayout(layout)
  const { as = recipe.as, padding } = readInput('The options of reorder', () => ({
    as: options.as,
    padding: checkPadding(options),
  }))
  if (dense instanceof JoinedTensor && as === undefined && !isPadded({ lower: [], upper: [], ...padding })) {
    const parts = dense.mapParts((part) => inLayout(part, target), target)
    if (parts) return parts
  }
  const { base, region, casts, device } = recipe
  return new FusedTensor({ base, region, to: { layout: target, ...padding }, as, casts, device })
}
