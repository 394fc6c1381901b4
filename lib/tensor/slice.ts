/**
 * Takes a part of a tensor, lazily: a range and a step along each axis, by the rules of ONNX's Slice operator and of
 * Python. A slice of a slice is one slice, and a slice of a reorder is one pass over the tensor below.
 */
import { readInput } from '../caller_input.js'
import { checkOnlyDense } from './check_tensor.js'
import { FusedTensor } from './fused.js'
import { sliceRegion } from './region.js'
import type { DenseTensor, Tensor } from './tensor.js'

/** The part of one axis. Negative positions count from the end; positions beyond an end are cut to it. */
export interface AxisRange {
  /** First index. Default: the first of the axis, the last for a negative step. */
  readonly start?: number
  /** Index before which the range ends. Default: all that the step reaches. */
  readonly end?: number
  /** Distance between two indices; below 0 walks backwards, 0 is refused. Default 1. */
  readonly step?: number
}

/**
 * A part of a dense tensor, in the same layout (without explicit padding), with the same name and element type. Lazy:
 * where the part is one run of the storage nothing is ever copied.
 *
 * @param tensor - a dense tensor in any layout
 * @param ranges - one entry an axis, outermost first; `null` or a missing one takes the whole axis
 * @throws TileworkError now, not later: ERR_UNSUPPORTED for a tensor that is not dense or has elements of 2 bits,
 * ERR_ARGUMENT for a range that is none or for more ranges than axes, ERR_LAYOUT_SHAPE when the layout cannot store the
 * part, ERR_NO_DATA
 */
export function slice(tensor: Tensor, ranges: readonly (AxisRange | null | undefined)[]): DenseTensor {
  const dense = checkOnlyDense(tensor, 'slice', 'can be sliced')
  const recipe = FusedTensor.recipeOf(dense)
  const region = readInput('The ranges', () => sliceRegion(recipe.region, ranges))
  return new FusedTensor({ ...recipe, region, to: { layout: dense.storage.layout } })
}
