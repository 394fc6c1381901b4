/** Shapes of operators that move, repeat or choose elements. */

import { greatest, least } from '../../../long_lists.js'
import { FAR_END, sliceRange } from '../evaluate/arrays.js'
import {
  asExtent,
  axisOf,
  broadcast,
  type Dim,
  type Dims,
  differenceOf,
  extent,
  isKnown,
  MAX_INFERRED_RANK,
  merged,
  productOf,
  productOfAll,
  quotientOf,
  sumOf,
} from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

export function transpose(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  if (!dims) return undefined
  const perm = node.ints('perm') ?? dims.map((_, axis) => dims.length - 1 - axis)
  const isOrder = perm.length === dims.length && new Set(perm).size === perm.length
  return isOrder && perm.every((axis) => axisOf(axis, dims.length) === axis)
    ? perm.map((axis) => dims[axis]!)
    : undefined
}

/** A shape given as values: negative numbers are none. */
export function fromValues(values: Dims | undefined): Dims | undefined {
  return values?.map(asExtent)
}

export function reshape(node: NodeView): Dims | undefined {
  const target = node.opset < 5 ? node.ints('shape') : node.values(1)
  if (!target) return node.opset < 5 ? undefined : unknownOf(node.dims(1))
  const source = node.dims(0)
  const allowsZero = node.int('allowzero', 0) !== 0
  const dims = target.map((value, axis): Dim | 'inferred' => {
    if (value === -1) return 'inferred'
    return value === 0 && !allowsZero ? (source?.[axis] ?? null) : asExtent(value)
  })
  const at = dims.indexOf('inferred')
  if (at < 0) return dims as Dims
  // Copied extents cancel, whether they are known or not.
  const isCopied = (axis: number): boolean => target[axis] === 0 && !allowsZero
  const taken = dims.filter((dim, axis): dim is Dim => dim !== 'inferred' && !isCopied(axis))
  const isComplete = source && taken.every((dim) => dim !== null) && dims.lastIndexOf('inferred') === at
  const inferred = isComplete
    ? quotientOf(productOfAll(source.filter((_, axis) => !isCopied(axis))), productOfAll(taken))
    : null
  return dims.map((dim) => (dim === 'inferred' ? asExtent(inferred) : dim))
}

/** A shape of which only the rank is known. @param list - shape of the list of extents */
export function unknownOf(list: Dims | undefined): Dims | undefined {
  const count = list?.length === 1 ? list[0] : undefined
  return isKnown(count) && count <= MAX_INFERRED_RANK ? Array(count).fill(null) : undefined
}

export function flatten(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const axis = dims && node.int('axis', 1)
  if (!dims || axis === undefined || axis < -dims.length || axis > dims.length) return undefined
  const at = axis < 0 ? axis + dims.length : axis
  return [productOfAll(dims.slice(0, at)), productOfAll(dims.slice(at))]
}

export function concat(node: NodeView): Dims | undefined {
  const shapes = node.inputs.map((_, input) => node.dims(input))
  return concatDims(shapes, node.int('axis', node.opset < 4 ? 1 : Number.NaN))
}

export function concatDims(shapes: readonly (Dims | undefined)[], along: number): Dims | undefined {
  const [first] = shapes
  const axis = first && axisOf(along, first.length)
  if (!first || axis === undefined) return undefined
  let result: Dim[] = [...first]
  for (const shape of shapes.slice(1)) {
    if (shape?.length !== first.length) return undefined
    const dims = result.map((dim, at) => (at === axis ? sumOf(dim, shape[at]!) : merged(dim, shape[at]!)))
    if (dims.includes(undefined)) return undefined
    result = dims as Dim[]
  }
  return result
}

export function slice(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  if (!dims) return undefined
  const isOld = node.opset < 10
  const starts = isOld ? node.ints('starts') : node.bounds(1)
  const ends = isOld ? node.ints('ends') : node.bounds(2)
  const axes = isOld ? node.ints('axes') : node.integers(3)
  const steps = isOld ? undefined : node.integers(4)
  if (!isOld && node.has(3) && !axes) return dims.map(() => null)
  const count = starts?.length ?? ends?.length ?? axes?.length
  if (count === undefined) return dims.map(() => null)
  const hasSteps = !isOld && node.has(4)
  const result: Dim[] = [...dims]
  for (let at = 0; at < count; at++) {
    const axis = axisOf(axes ? (axes[at] ?? Number.NaN) : at, dims.length)
    if (axis === undefined) return undefined
    const step = hasSteps ? (steps?.[at] ?? null) : 1
    result[axis] = sliceLength(dims[axis]!, starts?.[at] ?? null, ends?.[at] ?? null, step)
  }
  return result
}

function sliceLength(length: Dim, from: Dim, to: Dim, step: Dim): Dim {
  if (!isKnown(step) || step === 0) return null
  if (!isKnown(length) || !isKnown(from) || !isKnown(to)) return symbolicLength(length, from, to, step)
  // In the other direction engines differ in what the end of the axis means.
  return step < 0 && to >= FAR_END ? null : extent(sliceRange(length, from, to, step).count)
}

/** Only the whole of an axis is certain: an end may lie beyond an extent that is not a number. */
function symbolicLength(length: Dim, from: Dim, to: Dim, step: number): Dim {
  const isWhole = from === 0 && step === 1 && length !== null
  return isWhole && (to === length || (isKnown(to) && to >= FAR_END)) ? length : null
}

export function gather(node: NodeView): Dims | undefined {
  const [data, indices] = [node.dims(0), node.dims(1)]
  const axis = data && axisOf(node.int('axis', 0), data.length)
  if (!data || !indices || axis === undefined) return undefined
  return [...data.slice(0, axis), ...indices, ...data.slice(axis + 1)]
}

export function gatherND(node: NodeView): Dims | undefined {
  const [data, indices, batch] = [node.dims(0), node.dims(1), node.int('batch_dims', 0)]
  const depth = indices?.at(-1)
  if (!data || !indices || !isKnown(depth) || batch + depth > data.length || batch < 0) return undefined
  return [...indices.slice(0, -1), ...data.slice(batch + depth)]
}

/** The extents that `Shape` gives. */
export function shapeRange(node: NodeView): Dims {
  const dims = node.dims(0) ?? []
  return node.opset < 15 ? dims : dims.slice(node.int('start', 0), node.int('end'))
}

export function expand(node: NodeView): Dims | undefined {
  const [dims, target] = [node.dims(0), fromValues(node.values(1)) ?? unknownOf(node.dims(1))]
  return dims && target && broadcast([dims, target])
}

export function tile(node: NodeView): Dims | undefined {
  const [dims, repeats] = [node.dims(0), node.values(1)]
  if (!dims || node.opset < 6) return undefined
  return dims.map((dim, axis) => asExtent(productOf(dim, repeats?.[axis] ?? null)))
}

export function pad(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  if (!dims) return undefined
  const pads = node.opset < 2 ? node.ints('paddings') : node.opset < 11 ? node.ints('pads') : node.values(1)
  const given = node.opset < 18 ? undefined : node.integers(3)
  if (node.opset >= 18 && node.has(3) && !given) return dims.map(() => null)
  const axes = given ? given.map((axis) => axisOf(axis, dims.length)) : [...dims.keys()]
  if (!pads) return dims.map((dim, axis) => (axes.includes(axis) ? null : dim))
  if (axes.includes(undefined) || pads.length !== 2 * axes.length) return undefined
  const result: Dim[] = [...dims]
  for (const [at, axis] of axes.entries())
    result[axis!] = asExtent(sumOf(dims[axis!]!, sumOf(pads[at]!, pads[at + axes.length]!)))
  return result
}

export function split(node: NodeView): readonly (Dims | undefined)[] {
  const dims = node.dims(0)
  const count = node.outputs.length
  const axis = dims && axisOf(node.int('axis', 0), dims.length)
  if (!dims || axis === undefined) return []
  const given = node.opset < 13 ? node.ints('split') : node.has(1) ? (node.values(1) ?? []) : undefined
  const sizes = given ?? equalParts(dims[axis]!, count, node)
  return Array.from({ length: count }, (_, at) => dims.with(axis, asExtent(sizes?.[at] ?? null)))
}

/** Sizes of equal parts; since version 18 the last one may be smaller. */
function equalParts(dim: Dim, count: number, node: NodeView): Dims | undefined {
  if (node.opset >= 18 && node.int('num_outputs', count) !== count) return undefined
  if (!isKnown(dim)) {
    const part = quotientOf(dim, count)
    return part === null ? undefined : Array(count).fill(part)
  }
  if (node.opset < 18 && dim % count !== 0) return undefined
  const size = Math.ceil(dim / count)
  return Array.from({ length: count }, (_, at) => (at < count - 1 ? size : dim - size * (count - 1)))
}

export function oneHot(node: NodeView): Dims | undefined {
  const [indices, depth] = [node.dims(0), node.values(1)]
  const axis = indices && axisOf(node.int('axis', -1), indices.length + 1)
  if (!indices || axis === undefined) return undefined
  return indices.toSpliced(axis, 0, depth?.length === 1 ? asExtent(depth[0]!) : null)
}

export function range(node: NodeView): Dims {
  const [start, limit, delta] = [0, 1, 2].map((input) => node.values(input)?.[0] ?? null)
  if (isKnown(start) && isKnown(limit) && isKnown(delta) && delta !== 0)
    return [extent(Math.max(0, Math.ceil((limit - start) / delta)))]
  const isInteger = node.dtype(0) === 'int64' || node.dtype(0) === 'int32'
  return [isInteger && delta === 1 && limit !== undefined ? asExtent(differenceOf(limit, start!)) : null]
}

/** `Resize`, and `Upsample` before it. */
export function resize(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  if (!dims) return undefined
  const axes = node.ints('axes')?.map((axis) => axisOf(axis, dims.length)) ?? [...dims.keys()]
  if (axes.includes(undefined)) return undefined
  const unknown = dims.map((dim, axis) => (axes.includes(axis) ? null : dim))
  const policy = node.text('keep_aspect_ratio_policy') ?? 'stretch'
  const sizes = node.opset >= 11 ? node.values(3) : undefined
  if (sizes) {
    if (sizes.length !== axes.length) return unknown
    if (policy !== 'stretch') return keptAspect(dims, axes as readonly number[], sizes, policy) ?? unknown
    return dims.map((dim, axis) => (axes.includes(axis) ? asExtent(sizes[axes.indexOf(axis)]!) : dim))
  }
  // A crop changes the extents that scales give.
  const isCropped = node.text('coordinate_transformation_mode') === 'tf_crop_and_resize'
  const scales = scalesOf(node)
  if (isCropped || scales?.length !== axes.length || node.has(3)) return unknown
  return dims.map((dim, axis) => (axes.includes(axis) ? scaled(dim, scales[axes.indexOf(axis)]!) : dim))
}

/** The same scale for all axes: the smallest or the largest that the sizes ask for. */
function keptAspect(dims: Dims, axes: readonly number[], sizes: Dims, policy: string): Dims | undefined {
  const scales = axes.map((axis, at) => {
    const [dim, size] = [dims[axis]!, sizes[at]!]
    return isKnown(dim) && isKnown(size) && dim > 0 ? Math.fround(size / dim) : Number.NaN
  })
  const scale = policy === 'not_larger' ? least(scales) : greatest(scales)
  if (Number.isNaN(scale)) return undefined
  return dims.map((dim, axis) =>
    axes.includes(axis) ? extent(Math.floor(Math.fround(scale * Number(dim)) + 0.5)) : dim,
  )
}

function scalesOf(node: NodeView): readonly number[] | undefined {
  if (node.opType === 'Upsample' && node.opset < 9) {
    const scales = node.attribute('scales')?.value
    return Array.isArray(scales) ? (scales as readonly number[]) : undefined
  }
  return node.numbers(node.opType === 'Resize' && node.opset >= 11 ? 2 : 1)
}

function scaled(dim: Dim, scale: number): Dim {
  if (isKnown(dim)) return extent(Math.floor(Math.fround(dim * scale)))
  return Number.isSafeInteger(scale) ? asExtent(productOf(dim, scale)) : null
}

/** `DepthToSpace` and `SpaceToDepth`. */
export function blocks(node: NodeView): Dims | undefined {
  const [dims, block] = [node.dims(0), node.int('blocksize', 0)]
  if (dims?.length !== 4 || block <= 0) return undefined
  const [batch, channels, ...sizes] = dims as [Dim, Dim, ...Dim[]]
  return node.opType === 'DepthToSpace'
    ? [batch, quotientOf(channels, block ** 2), ...sizes.map((size) => productOf(size, block))]
    : [batch, productOf(channels, block ** 2), ...sizes.map((size) => quotientOf(size, block))]
}

export function centerCropPad(node: NodeView): Dims | undefined {
  const [dims, sizes] = [node.dims(0), node.values(1)]
  const axes = dims && (node.ints('axes')?.map((axis) => axisOf(axis, dims.length)) ?? [...dims.keys()])
  if (!axes || axes.includes(undefined) || (sizes && sizes.length !== axes.length)) return undefined
  return dims.map((dim, axis) => {
    const at = axes.indexOf(axis)
    return at < 0 ? dim : asExtent(sizes?.[at] ?? null)
  })
}

export function compress(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  const given = node.int('axis')
  if (given === undefined) return [null]
  const axis = dims && axisOf(given, dims.length)
  return axis === undefined ? undefined : dims!.with(axis, null)
}
