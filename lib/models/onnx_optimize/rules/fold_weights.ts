/**
 * Movements and casts of weights: the result replaces the weights, as a lazy tensor, so that quantizers find it. A weight that
 * others use as well stays as it is, because a second copy would make the file larger.
 */
import { DTYPES } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { withShape } from '../../../formats/onnx/tensor/rearranged.js'
import { greatest } from '../../../long_lists.js'
import { cast } from '../../../tensor/cast.js'
import { concat } from '../../../tensor/concat.js'
import { isPlain } from '../../../tensor/plain_storage.js'
import { MAX_AXES, sizeOf } from '../../../tensor/shape.js'
import { slice } from '../../../tensor/slice.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { transpose } from '../../../tensor/transpose.js'
import { FLOATS } from '../rewrite/elements.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'
import { isSameDims } from '../rewrite/same_shape.js'
import { axisOf, permOf, ruleOf } from './facts.js'
import { type Growth, pays } from './fold.js'
import { sliceOf } from './no_ops.js'

type Fold = (node: RewriteNode, weights: readonly DenseTensor[]) => DenseTensor | undefined

/** How many of the first inputs are weights; the others are lists that say how to move. */
const FOLDS: Readonly<Record<string, { readonly fold: Fold; readonly weights: 'first' | 'all' }>> = {
  Cast: { fold: converted, weights: 'first' },
  Concat: { fold: joined, weights: 'all' },
  Flatten: { fold: reshaped, weights: 'first' },
  Identity: { fold: (_, [weight]) => weight, weights: 'first' },
  Reshape: { fold: reshaped, weights: 'first' },
  Slice: { fold: sliced, weights: 'first' },
  Squeeze: { fold: reshaped, weights: 'first' },
  Transpose: { fold: transposed, weights: 'first' },
  Unsqueeze: { fold: reshaped, weights: 'first' },
}

/** Weights that are moved at most in one chain: each step is one more tensor over the others. */
const MAX_STEPS = 64

interface Moved {
  readonly tensor: DenseTensor
  readonly steps: number
}

export function foldWeightsRule(growth: Growth): NodeRule {
  // Also of nodes that stay because others use their weights: what comes behind them may use those up.
  const moved = new WeakMap<RewriteValue, Moved>()
  const movedOf = (value: RewriteValue | undefined): Moved | undefined => {
    const weight = value?.weight
    if (!weight) return value && moved.get(value)
    return isMovable(weight) ? { tensor: weight, steps: 0 } : undefined
  }
  return ruleOf('fold-weights', Object.keys(FOLDS), (node, maker) => {
    const { fold, weights } = FOLDS[node.opType]!
    const found = (weights === 'all' ? node.inputs : node.inputs.slice(0, 1)).map(movedOf)
    const inputs = found.filter((each) => each !== undefined)
    const output = node.output()
    if (!output || inputs.length === 0 || inputs.length < found.length) return undefined
    const steps = 1 + greatest(inputs.map((each) => each.steps))
    const tensors = inputs.map((each) => each.tensor)
    const tensor = steps > MAX_STEPS ? undefined : fold(node, tensors)
    if (!tensor) return undefined
    moved.set(output, { tensor, steps })
    return pays(node, [tensor], growth) ? maker.constant(tensor) : undefined
  })
}

/** Elements of whole bytes, and of 4 bits, can be moved. */
function isMovable({ dtype, shape, storage }: DenseTensor): boolean {
  return isPlain(storage) && shape.length <= MAX_AXES && DTYPES[dtype].bits >= 8
}

function reshaped(node: RewriteNode, [weight]: readonly DenseTensor[]): DenseTensor | undefined {
  const shape = node.output()?.shape
  if (!shape?.every((extent) => typeof extent === 'number')) return undefined
  return sizeOf(shape) === weight!.size ? withShape(weight!, shape) : undefined
}

function transposed(node: RewriteNode, [weight]: readonly DenseTensor[]): DenseTensor | undefined {
  const perm = permOf(node)
  return perm?.length === weight!.shape.length ? transpose(weight!, perm) : undefined
}

function sliced(node: RewriteNode, [weight]: readonly DenseTensor[]): DenseTensor | undefined {
  const axes = sliceOf(node)
  const { shape } = weight!
  if (!axes?.every(({ axis, step }) => axis < shape.length && step !== 0)) return undefined
  const ranges = shape.map((_, at) => {
    const found = axes.find(({ axis }) => axis === at)
    return found && ([found.start, found.end, found.step] as const)
  })
  const part = slice(weight!, ranges)
  return isSameDims(node.output()?.shape, part.shape) ? part : undefined
}

function joined(node: RewriteNode, weights: readonly DenseTensor[]): DenseTensor | undefined {
  const [{ dtype, shape }] = weights as [DenseTensor]
  const axis = axisOf(node.int('axis'), shape.length)
  if (axis === undefined || weights.length === 1) return undefined
  const isAlike = weights.every(
    (each) =>
      each.dtype === dtype &&
      each.shape.length === shape.length &&
      each.shape.every((extent, at) => at === axis || extent === shape[at]),
  )
  return isAlike ? concat(weights, { axis }) : undefined
}

/** Engines round floats alike; other conversions differ where numbers are out of range. */
function converted(node: RewriteNode, [weight]: readonly DenseTensor[]): DenseTensor | undefined {
  const to = DTYPE_OF_CODE.get(node.int('to') ?? 0)
  if (to === weight!.dtype) return weight
  return to !== undefined && FLOATS.has(to) && FLOATS.has(weight!.dtype) ? cast(weight!, to) : undefined
}
