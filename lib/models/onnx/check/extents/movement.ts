/** Axes, counts and shapes of operators that move elements. */
import { axisOf, broadcast, type Dims, isKnown } from '../../evaluate/dims.js'
import type { NodeView } from '../../infer/node_view.js'
import {
  allDims,
  axesProblem,
  axisProblem,
  constantList,
  constantOf,
  type ExtentRule,
  rankProblem,
  textOfDims,
} from './rule.js'

/**
 * The attribute `axis` counts the axes of input 0.
 *
 * @param absent - without the attribute; undefined for none
 * @param more - how many axes the result has beyond those
 */
function axisRule(absent: number | undefined, more = 0): ExtentRule {
  return (node) => {
    const dims = node.dims(0)
    const axis = node.int('axis') ?? absent
    return dims && axis !== undefined ? axisProblem(axis, dims.length + more) : undefined
  }
}

/** As numpy broadcasts. */
export const broadcasting: ExtentRule = (node, since) => {
  // Before, operators broadcast on request.
  if (since < (/^(Max|Min|Mean|Sum)$/.test(node.opType) ? 8 : 7)) return undefined
  const shapes = allDims(node)
  if (!shapes || broadcast(shapes)) return undefined
  return `cannot broadcast the shapes ${shapes.map(textOfDims).join(', ')}`
}

/** A constant list of one axis. */
function listRankProblem(node: NodeView, input: number): string | undefined {
  return rankProblem(node, input, 1)
}

const concat: ExtentRule = (node, since) => {
  const shapes = allDims(node)
  const axis = node.int('axis')
  if (since < 4 || !shapes || axis === undefined) return undefined
  const rank = shapes[0]?.length ?? 0
  const wrong = since < 11 && axis < 0 ? undefined : axisProblem(axis, rank)
  const first = axisOf(axis, rank)
  if (wrong !== undefined || first === undefined) return wrong
  const common = shapes[0]!.slice()
  for (const [input, shape] of shapes.entries()) {
    if (shape.length !== rank) return `has the ranks ${rank} and ${shape.length}, which must be equal`
    for (const [at, dim] of shape.entries()) {
      if (at === first || !isKnown(dim)) continue
      const known = common[at]!
      if (isKnown(known) && known !== dim)
        return `has ${dim} for dimension ${at} of input ${input}; ${known} is needed`
      common[at] = dim
    }
  }
  return undefined
}

const split: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  const axis = node.int('axis', 0)
  if (!dims || since < 2) return undefined
  const wrong = axisProblem(axis, dims.length)
  if (wrong !== undefined) return wrong
  const length = dims[axisOf(axis, dims.length)!]!
  const [count, given] = [node.outputs.length, node.int('num_outputs')]
  if (!isKnown(length)) return undefined
  if (node.has(1) && given !== undefined) return 'has both an input with sizes and num_outputs'
  if (since >= 18 && !node.has(1) && node.attribute('num_outputs') === undefined)
    return 'has neither sizes nor num_outputs'
  if (given !== undefined && given < 1) return `has num_outputs ${given}; at least 1 is needed`
  const sizes = since < 13 ? node.ints('split') : node.has(1) ? constantOf(node, 1) : undefined
  if (!sizes)
    return since < 18 && !node.has(1) && length % count !== 0
      ? `splits an axis of ${length} into ${count} equal parts`
      : undefined
  if (sizes.length !== count) return `has ${sizes.length} sizes for ${count} outputs`
  const sum = sizes.reduce((total, size) => total + size, 0)
  return sum === length ? undefined : `has sizes with the sum ${sum} for an axis of ${length}`
}

const transpose: ExtentRule = (node) => {
  const [dims, perm] = [node.dims(0), node.ints('perm')]
  if (!dims || !perm || perm.length === 0) return undefined
  const isBad = perm.some((axis) => axis < 0 || axis >= dims.length) || new Set(perm).size < perm.length
  return isBad ? `has the perm [${perm.join(', ')}] for the rank ${dims.length}` : undefined
}

const flatten: ExtentRule = (node, since) => {
  const [dims, axis] = [node.dims(0), node.int('axis', 1)]
  if (!dims) return undefined
  const least = since < 11 ? 0 : -dims.length
  return axis < least || axis > dims.length ? `has the axis ${axis}; the rank is ${dims.length}` : undefined
}

/** Axes by attribute, or by a constant input since a version. */
function givenAxes(node: NodeView, since: number, changed: number): readonly number[] | undefined {
  return since < changed ? node.ints('axes') : constantOf(node, 1)
}

/** The axes that readers of early versions find: they count up to the rank and compare with the next in the list. */
function matched(axes: readonly number[], rank: number): number[] {
  const found: number[] = []
  for (let axis = 0; axis < rank; axis++) if (axes[found.length] === axis) found.push(axis)
  return found
}

const squeeze: ExtentRule = (node, since) => {
  const [dims, axes] = [node.dims(0), givenAxes(node, since, 13)]
  if (!dims || !axes) return undefined
  for (const axis of since < 11 ? matched(axes, dims.length) : axes) {
    const at = axisOf(axis, dims.length)
    if (at === undefined && since >= 13) return axisProblem(axis, dims.length)
    // Readers of version 11 pass over an axis that is not there.
    const dim = at === undefined ? null : dims[at]!
    if (isKnown(dim) && dim !== 1) return `drops the axis ${axis}, which has ${dim} elements`
  }
  return undefined
}

const unsqueeze: ExtentRule = (node, since) => {
  const [dims, axes] = [node.dims(0), givenAxes(node, since, 13)]
  if (!dims || !axes) return undefined
  return since < 11 ? undefined : axesProblem(axes, dims.length + axes.length)
}

const reduce: ExtentRule = (node, since) => {
  if (since < 11 || (since === 11 && /^Reduce(Max|Min)$/.test(node.opType))) return undefined
  const changed = node.opType === 'ReduceSum' ? 13 : 18
  const [dims, axes] = [node.dims(0), givenAxes(node, since, changed)]
  const wrong = dims && axes?.find((axis) => axisOf(axis, dims.length) === undefined)
  return wrong === undefined ? undefined : axisProblem(wrong, dims!.length)
}

const slice: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  const isOld = since < 10
  const starts = isOld ? node.ints('starts') : constantOf(node, 1)
  const ends = isOld ? node.ints('ends') : constantOf(node, 2)
  const axes = isOld ? node.ints('axes') : node.has(3) ? constantOf(node, 3) : undefined
  const steps = isOld || !node.has(4) ? undefined : constantOf(node, 4)
  if (!dims || !starts || !ends || (!isOld && ((node.has(3) && !axes) || (node.has(4) && !steps))))
    return undefined
  if (starts.length !== ends.length) return `has ${starts.length} starts and ${ends.length} ends`
  if (axes && axes.length !== starts.length) return `has ${axes.length} axes for ${starts.length} starts`
  if (steps && steps.length !== starts.length) return `has ${steps.length} steps for ${starts.length} starts`
  const wrong = isOld ? undefined : axesProblem(axes ?? [...starts.keys()], dims.length)
  if (wrong !== undefined) return wrong
  return steps?.includes(0) ? 'has the step 0' : undefined
}

const gather: ExtentRule = (node) => {
  const dims = node.dims(0)
  if (!dims || !node.dims(1)) return undefined
  return rankProblem(node, 0, 1, Number.POSITIVE_INFINITY) ?? axisProblem(node.int('axis', 0), dims.length)
}

const gatherND: ExtentRule = (node) => {
  const [dims, indices] = [node.dims(0), node.dims(1)]
  if (!dims || !indices) return undefined
  const early =
    rankProblem(node, 0, 1, Number.POSITIVE_INFINITY) ?? rankProblem(node, 1, 1, Number.POSITIVE_INFINITY)
  const [last, batch] = [indices.at(-1)!, node.int('batch_dims', 0)]
  if (early !== undefined || !isKnown(last)) return early
  return last + batch > dims.length
    ? `has indices of ${last} axes behind ${batch} of the batch; the rank is ${dims.length}`
    : undefined
}

const compress: ExtentRule = (node, since) =>
  rankProblem(node, 0, 1, Number.POSITIVE_INFINITY) ?? axisRule(undefined)(node, since)

const reshape: ExtentRule = (node, since) => {
  if (since < 5) return undefined
  const [dims, shape] = [node.dims(0), constantOf(node, 1)]
  // Readers take a constant scalar for a list of one, and did not compare ranks before.
  const wrong = since < 14 || shape ? undefined : listRankProblem(node, 1)
  if (wrong !== undefined || !shape) return wrong
  const bad = shape.find((value) => value < -1)
  if (bad !== undefined) return `has ${bad} in the shape; at least -1 is needed`
  const open = shape.filter((value) => value === -1).length
  if (open > 1) return 'has -1 in the shape twice'
  const copies = node.int('allowzero', 0) === 0
  if (dims && copies && shape.some((value, at) => value === 0 && at >= dims.length))
    return `copies a dimension beyond the rank ${dims.length}`
  const known = shape.map((value, at) => (value === 0 && copies ? dims?.[at] : value))
  if (!dims?.every(isKnown) || open === 0) return undefined
  const others = known.filter((value) => value !== -1)
  if (!others.every((value) => isKnown(value as Dims[number]))) return undefined
  const product = (others as number[]).reduce((total, value) => total * value, 1)
  const size = (dims as number[]).reduce((total, value) => total * value, 1)
  if (product === 0) return 'has both 0 and -1 in the shape'
  return size % product === 0 ? undefined : `cannot divide ${size} elements by ${product}`
}

const expand: ExtentRule = (node, since) => {
  const [dims, shape] = [node.dims(0), constantOf(node, 1)]
  if (!dims || !node.dims(1)) return undefined
  const wrong = since >= 13 && shape ? undefined : listRankProblem(node, 1)
  if (wrong !== undefined || !shape) return wrong
  return broadcast([dims, shape])
    ? undefined
    : `cannot broadcast the shape ${textOfDims(dims)} to ${textOfDims(shape)}`
}

const tile: ExtentRule = (node, since) => {
  const [dims, repeats] = [node.dims(0), constantOf(node, 1)]
  if (since < 6 || !dims || !repeats) return undefined
  const wrong = listRankProblem(node, 1)
  if (wrong !== undefined) return wrong
  if (repeats.length !== dims.length) return `has ${repeats.length} repeats for the rank ${dims.length}`
  const bad = repeats.find((value) => value < 0)
  return bad === undefined ? undefined : `has ${bad} repeats`
}

const pad: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  if (!dims) return undefined
  const axes = node.has(3) ? constantOf(node, 3) : [...dims.keys()]
  const pads = since < 11 ? node.ints('pads') : constantOf(node, 1)
  if (!axes) return undefined
  const wrong = axesProblem(axes, dims.length)
  if (wrong !== undefined || !pads || (axes.length === 0 && since >= 11)) return wrong
  const early = since < 11 ? undefined : listRankProblem(node, 1)
  if (early !== undefined) return early
  return pads.length === 2 * axes.length ? undefined : `has ${pads.length} pads; it takes ${2 * axes.length}`
}

const blocks: ExtentRule = (node) => {
  const size = node.int('blocksize')
  if (size !== undefined && size <= 0) return `has the blocksize ${size}; at least 1 is needed`
  return rankProblem(node, 0, 4)
}

const oneHot: ExtentRule = (node, since) => {
  const [depth, count] = [node.dims(1), constantOf(node, 1)?.[0]]
  if (depth && (depth.length > 1 || (isKnown(depth[0]) && depth[0] > 1)))
    return `has the shape ${textOfDims(depth)} for the depth`
  if (count !== undefined && count < 0) return `has the depth ${count}; at least 0 is needed`
  return axisRule(-1, 1)(node, since)
}

const topK: ExtentRule = (node, since) => {
  const [dims, axis] = [node.dims(0), node.int('axis', -1)]
  if (!dims) return undefined
  const wrong = axisProblem(axis, dims.length)
  if (wrong !== undefined) return wrong
  const length = dims[axisOf(axis, dims.length)!]!
  const k = since < 10 ? node.int('k') : constantOf(node, 1)?.[0]
  const isConstant = since < 10 || constantList(node, 1) !== undefined
  const shape = since < 10 ? undefined : node.dims(1)
  if (k !== undefined && since < 10 && k <= 0) return `takes ${k} elements; at least 1 is needed`
  if (isConstant && isKnown(length) && shape && (shape.length !== 1 || shape[0] !== 1))
    return `has the shape ${textOfDims(shape)} for the number of elements; it takes [1]`
  return since >= 10 && isKnown(length) && k !== undefined && k > length
    ? `takes ${k} of ${length} elements`
    : undefined
}

/** The axis of operators that took any before version 11. */
function laterAxisRule(absent: (since: number) => number, least: number): ExtentRule {
  return (node, since) => {
    const isTooEarly = since < 11 || (node.dims(0)?.length ?? 0) < least
    return isTooEarly ? undefined : axisRule(absent(since))(node, since)
  }
}

/** Readers take any axis of a scalar. */
const argReduce: ExtentRule = laterAxisRule(() => 0, 1)
const softmax: ExtentRule = laterAxisRule((since) => (since < 13 ? 1 : -1), 0)

const resize: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  if (!dims) return undefined
  if (node.opType === 'Upsample' || since < 11) return upsample(node, since, dims)
  const [scales, sizes] = [
    node.has(2) ? constantOf(node, 2) : undefined,
    node.has(3) ? constantOf(node, 3) : undefined,
  ]
  const sizeCount = sizes?.length ?? node.dims(3)?.[0]
  const shape = node.dims(3)
  if (shape && !(since < 13 && sizes)) {
    const wrong = rankProblem(node, 3, 1)
    if (wrong !== undefined) return wrong
  }
  const hasScales = node.has(2) && scales?.length !== 0
  const hasSizes = node.has(3) && sizeCount !== 0
  if (since >= 13 && hasScales === hasSizes)
    return hasScales ? 'has both scales and sizes' : 'has neither scales nor sizes'
  const policy = node.text('keep_aspect_ratio_policy') ?? 'stretch'
  if (!/^(stretch|not_larger|not_smaller)$/.test(policy)) return `has an unknown keep_aspect_ratio_policy`
  if (hasScales && policy !== 'stretch') return 'has scales, whose keep_aspect_ratio_policy must be stretch'
  const axes = node.ints('axes')
  const wrong = axes && axesProblem(axes, dims.length)
  if (wrong !== undefined) return wrong
  const count = axes && axes.length > 0 ? axes.length : dims.length
  if (hasSizes && isKnown(sizeCount) && sizeCount !== count)
    return `has ${sizeCount} sizes; it takes ${count}`
  return !hasSizes && scales && scales.length > 0 && scales.length !== count
    ? `has ${scales.length} scales; it takes ${count}`
    : undefined
}

function upsample(node: NodeView, since: number, dims: Dims): string | undefined {
  const scales = since < 9 ? floats(node, 'scales') : constantOf(node, 1)
  if (since < 7 || !scales || scales.length === dims.length) return undefined
  return `has ${scales.length} scales; it takes ${dims.length}`
}

function floats(node: NodeView, name: string): readonly number[] | undefined {
  const value = node.attribute(name)?.value
  return Array.isArray(value) ? (value as readonly number[]) : undefined
}

const centerCropPad: ExtentRule = (node) => {
  const [dims, sizes] = [node.dims(0), constantOf(node, 1)]
  if (!dims || !sizes) return undefined
  const axes = node.ints('axes') ?? [...dims.keys()]
  const wrong = axesProblem(axes, dims.length)
  if (wrong !== undefined) return wrong
  return sizes.length === axes.length ? undefined : `has ${sizes.length} sizes; it takes ${axes.length}`
}

const tensorScatter: ExtentRule = (node) => {
  const [cache, update] = [node.dims(0), node.dims(1)]
  if (!cache || !update) return undefined
  if (cache.length !== update.length)
    return `has the ranks ${cache.length} and ${update.length}, which must be equal`
  const given = node.int('axis', -2)
  const axis = given < 0 ? given + cache.length : given
  if (axis <= 0 || axis >= cache.length) return `has the axis ${given}; the rank is ${cache.length}`
  const at = cache.findIndex(
    (dim, each) => each !== axis && isKnown(dim) && isKnown(update[each]) && dim !== update[each],
  )
  return at < 0 ? undefined : `has ${update[at]} for dimension ${at} of input 1; ${cache[at]} is needed`
}

const constantOfShape: ExtentRule = (node) => {
  const shape = constantOf(node, 0)
  const bad = shape?.find((value) => value < 0)
  if (bad !== undefined) return `has ${bad} in the shape; at least 0 is needed`
  const value = node.attribute('value')?.tensors[0]
  if (value && value.shape.length !== 1)
    return `has a value of the shape ${textOfDims(value.shape)}; it takes one axis`
  return rankProblem(node, 0, 1)
}

const generatedShape: ExtentRule = (node) => {
  const bad = node.ints('shape')?.find((value) => value < 0)
  return bad === undefined ? undefined : `has ${bad} in the shape; at least 0 is needed`
}

export const MOVEMENT_RULES: Readonly<Record<string, ExtentRule>> = {
  ArgMax: argReduce,
  ArgMin: argReduce,
  CenterCropPad: centerCropPad,
  Compress: compress,
  Concat: concat,
  ConstantOfShape: constantOfShape,
  DepthToSpace: blocks,
  Expand: expand,
  Flatten: flatten,
  Gather: gather,
  GatherND: gatherND,
  Hardmax: softmax,
  LogSoftmax: softmax,
  OneHot: oneHot,
  Pad: pad,
  RandomNormal: generatedShape,
  RandomUniform: generatedShape,
  Reshape: reshape,
  Resize: resize,
  Slice: slice,
  Softmax: softmax,
  SpaceToDepth: blocks,
  Split: split,
  Squeeze: squeeze,
  TensorScatter: tensorScatter,
  Tile: tile,
  TopK: topK,
  Transpose: transpose,
  Unique: axisRule(undefined),
  Unsqueeze: unsqueeze,
  Upsample: resize,
  ...Object.fromEntries(
    'L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare'
      .split(' ')
      .map((name) => [`Reduce${name}`, reduce]),
  ),
  ...Object.fromEntries(
    `Add Sub Mul Div Pow Mod And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual BitShift BitwiseAnd BitwiseOr BitwiseXor
    Max Min Mean Sum Where SwiGLU`
      .split(/\s+/)
      .map((name) => [name, broadcasting]),
  ),
}
