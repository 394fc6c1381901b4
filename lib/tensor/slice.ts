/**
 * Takes a part of a tensor lazily: a range and a step along each axis, by the rules of ONNX's Slice operator and of
 * Python. A slice of a slice is one slice, and a slice of a reorder reads the tensor below once.
 */
import { readInput } from '../caller_input.js'
import type { Dtype } from '../dtype/dtypes.js'
import { checkOnlyDense } from './check_tensor.js'
import { ConstantTensor } from './constant.js'
import type { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { JoinedTensor } from './joined.js'
import { type Region, regionOfRegion, type SliceRange, sliceRegion, wholeRegion } from './region.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/**
 * A part of a dense tensor, with its name, element type and layout, without explicit padding. Lazy. Where the part is one
 * range of the storage, its bytes are never copied.
 *
 * @param tensor - a dense tensor in any layout
 * @param ranges - one entry per axis, outermost first: `[start, stop]`, `[start, stop, step]` or `{ start, end, step }`.
 * `null`, `undefined` and missing entries take the whole axis. The rank does not change
 * @returns shape: the number of indices that each range has
 * @throws TileworkError at once: ERR_UNSUPPORTED for a tensor that is not dense or has elements of 2 bits, ERR_ARGUMENT for
 * a malformed range or for more ranges than axes, ERR_LAYOUT_SHAPE when the layout cannot store the part, ERR_NO_DATA
 */
export function slice<D extends Dtype>(tensor: AnyTensor<D>, ranges: readonly SliceRange[]): DenseTensor<D>
export function slice(tensor: AnyTensor, ranges: readonly SliceRange[]): DenseTensor {
  const dense = checkOnlyDense(tensor, 'slice', 'can be sliced')
  return takeRegion(
    dense,
    readInput('The ranges', () => sliceRegion(wholeRegion(dense.shape), ranges)),
  )
}

function takeRegion(tensor: DenseTensor, region: Region): StoredTensor {
  if (tensor instanceof ConstantTensor) return tensor.reshaped(region.shape)
  const joined = tensor instanceof JoinedTensor ? tensor.takeRegion(region, takeRegion) : undefined
  if (joined) return joined
  const recipe = FusedTensor.recipeOf(tensor)
  const inBase = regionOfRegion(recipe.region, region)
  return new FusedTensor({ ...recipe, region: inBase, to: { layout: tensor.storage.layout } })
}
