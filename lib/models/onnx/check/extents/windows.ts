/** Dimensions and attributes of convolutions and pooling. */
import { isKnown } from '../../evaluate/dims.js'
import type { NodeView } from '../../infer/node_view.js'
import { type ExtentRule, firstOf, rankProblem } from './rule.js'

/** Lists that have an entry for each spatial axis, or two, and the smallest entry. */
function listProblem(node: NodeView, name: string, count: number, least: number): string | undefined {
  const values = node.ints(name)
  // Readers take a list without entries for an attribute that is there.
  if (!values || node.attribute(name)?.type !== 'INTS') return undefined
  if (values.length !== count) return `has ${values.length} entries in ${name}; it takes ${count}`
  const bad = values.find((value) => value < least)
  return bad === undefined ? undefined : `has ${bad} in ${name}; at least ${least} is needed`
}

/** A window over all axes but the first two. @param weights - input that has the size of the window; undefined for pooling */
function windowRule(weights: number | undefined): ExtentRule {
  return (node) => {
    const dims = node.dims(0)
    const kernel = weights === undefined ? undefined : node.dims(weights)
    if (!dims || (weights !== undefined && !kernel)) return undefined
    const axes = dims.length - 2
    return (
      rankProblem(node, 0, 3, Number.POSITIVE_INFINITY) ??
      (/^(AveragePool|LpPool)$/.test(node.opType) && node.opset < 18
        ? undefined
        : listProblem(node, 'dilations', axes, 1)) ??
      listProblem(node, 'strides', axes, 1) ??
      listProblem(node, 'kernel_shape', axes, 1) ??
      kernelProblem(node, weights, axes) ??
      listProblem(node, 'pads', 2 * axes, 0)
    )
  }
}

function kernelProblem(node: NodeView, weights: number | undefined, axes: number): string | undefined {
  const kernel = weights === undefined ? undefined : node.dims(weights)
  if (!kernel || node.attribute('kernel_shape')) return undefined
  const sizes = kernel.slice(2)
  if (!sizes.every(isKnown)) return undefined
  if (kernel.length - 2 !== axes)
    return `has ${Math.max(0, kernel.length - 2)} spatial axes in input ${weights}, and ${axes} in input 0`
  return sizes.includes(0) ? `has an empty window in input ${weights}` : undefined
}

const transposed: ExtentRule = (node) => {
  const [dims, kernel] = [node.dims(0), node.dims(1)]
  if (!dims || !kernel) return undefined
  const [group, channels, axes] = [node.int('group', 1), dims[1], dims.length - 2]
  if (group <= 0) return `has the group ${group}; at least 1 is needed`
  const early =
    rankProblem(node, 0, 3, Number.POSITIVE_INFINITY) ?? rankProblem(node, 1, 3, Number.POSITIVE_INFINITY)
  if (early !== undefined) return early
  if (isKnown(channels) && channels % group !== 0)
    return `has ${channels} channels, which ${group} groups do not divide`
  const isPadded = (node.text('auto_pad') ?? 'NOTSET') !== 'NOTSET' && node.ints('pads') !== undefined
  return (
    listProblem(node, 'dilations', axes, 1) ??
    listProblem(node, 'strides', axes, 1) ??
    listProblem(node, 'kernel_shape', axes, 1) ??
    kernelProblem(node, 1, axes) ??
    listProblem(node, 'pads', 2 * axes, 0) ??
    (isPadded ? 'has both pads and auto_pad' : undefined) ??
    listProblem(node, 'output_shape', axes, 0) ??
    listProblem(node, 'output_padding', axes, 0)
  )
}

const unpooling: ExtentRule = (node) => {
  const dims = node.dims(0)
  if (!dims) return undefined
  const axes = dims.length - 2
  const anything = Number.NEGATIVE_INFINITY
  const size = node.dims(2)
  if (size && (size.length !== 1 || (isKnown(size[0]) && size[0] !== dims.length)))
    return `needs ${dims.length} elements in input 2`
  return (
    rankProblem(node, 0, 2, Number.POSITIVE_INFINITY) ??
    listProblem(node, 'pads', 2 * axes, anything) ??
    listProblem(node, 'strides', axes, anything) ??
    listProblem(node, 'kernel_shape', axes, anything) ??
    (node.has(2) ? undefined : rankProblem(node, 1, 2, Number.POSITIVE_INFINITY))
  )
}

const gridSample: ExtentRule = (node) => {
  const [dims, grid] = [node.dims(0), node.dims(1)]
  if (!dims || !grid) return undefined
  if (dims.length !== grid.length)
    return `has the ranks ${dims.length} and ${grid.length}, which must be equal`
  const last = grid.at(-1)
  if (dims.length < 3) return rankProblem(node, 0, 3, Number.POSITIVE_INFINITY)
  const [one, other] = [dims[0], grid[0]]
  if (isKnown(one) && isKnown(other) && one !== other)
    return `has the batches ${one} and ${other}, which must be equal`
  return isKnown(last) && last !== dims.length - 2
    ? `has ${last} coordinates; it takes ${dims.length - 2}`
    : undefined
}

const pooledShape: ExtentRule = (node) => listProblem(node, 'pooled_shape', 2, 1)

export const WINDOW_RULES: Readonly<Record<string, ExtentRule>> = {
  Conv: windowRule(1),
  ConvInteger: windowRule(1),
  QLinearConv: windowRule(3),
  DeformConv: windowRule(1),
  AveragePool: windowRule(undefined),
  LpPool: windowRule(undefined),
  MaxPool: windowRule(undefined),
  ConvTranspose: transposed,
  MaxUnpool: unpooling,
  GridSample: gridSample,
  MaxRoiPool: firstOf([pooledShape]),
}
