/** Shapes of operators that move elements, or take some of them. */
import type { OperatorParams } from '../../../formats/tmfile/operators.js'
import { append } from '../../../long_lists.js'
import { countOf, one, type RuleCase, type Shape } from './shape_rule.js'

type Params<Name extends keyof OperatorParams> = OperatorParams[Name]

/** An axis counted from the first; undefined where the shape does not have it. */
export function axisOf(axis: number, { length }: Shape): number | undefined {
  const counted = axis < 0 ? axis + length : axis
  return counted >= 0 && counted < length ? counted : undefined
}

const withExtent = (shape: Shape, axis: number, extent: number): Shape =>
  shape.map((each, at) => (at === axis ? extent : each))

export function concat({ inputs, params }: RuleCase<Params<'Concat'>>) {
  const first = inputs[0]!
  const axis = axisOf(params.axis, first)
  if (axis === undefined) return undefined
  const isJoined = inputs.every(
    (shape) =>
      shape.length === first.length && shape.every((extent, at) => at === axis || extent === first[at]),
  )
  const extent = inputs.reduce((sum, shape) => sum + shape[axis]!, 0)
  return isJoined ? one(withExtent(first, axis, extent)) : undefined
}

/** Always two axes: the first, and the product of the named ones. */
export function flatten({ inputs: [input], params }: RuleCase<Params<'Flatten'>>) {
  const end = params.end_axis < 0 ? params.end_axis + input!.length : params.end_axis
  const flat = countOf(input!.slice(params.axis, end + 1))
  return params.axis >= 0 && input![0]! * flat === countOf(input!) ? one([input![0]!, flat]) : undefined
}

/** Two orders only. */
export function permute({ inputs: [input], params }: RuleCase<Params<'Permute'>>) {
  const order = permuteOrder(params, input!.length)
  return order && one(order.map((axis) => input![axis]!))
}

/** The order that a Permute has in the runtime, which knows two. */
export function permuteOrder(params: Params<'Permute'>, rank: number): readonly number[] | undefined {
  const order = String([params.order0, params.order1, params.order2, params.order3])
  if (order === '0,2,3,1' && rank === 4) return [0, 2, 3, 1]
  return order.startsWith('1,0,2,') && rank === 3 ? [1, 0, 2] : undefined
}

export function transpose({ inputs: [input], params }: RuleCase<Params<'Transpose'>>) {
  const order = params.tr_shape
  const isPermutation = [...(order ?? [])].sort((a, b) => a - b).every((axis, at) => axis === at)
  if (!order || !isPermutation || order.length !== input!.length) return undefined
  return one(order.map((axis) => input![axis]!))
}

export function swapAxis({ inputs: [input], params }: RuleCase<Params<'SwapAxis'>>) {
  const [first, second] = [params.dim_0, params.dim_1]
  if (axisOf(first, input!) !== first || axisOf(second, input!) !== second || first === second)
    return undefined
  const shape = [...input!]
  shape[first] = input![second]!
  shape[second] = input![first]!
  return one(shape)
}

/**
 * The target of a Reshape: 0 copies the extent at its position (in models of ONNX and MXNet; else it is 1 in the first
 * position, and nothing in others), -1 takes what is left, -2 copies the other extents, -3 merges two, and -4 splits one
 * into the two numbers that follow.
 */
export function reshape({ inputs: [input], params }: RuleCase<Params<'Reshape'>>) {
  if (!params.re_shape || params.re_shape.length === 0) return undefined
  const shape = expandTarget(params.re_shape, input!, params.is_mxnet !== 0 || params.is_onnx !== 0)
  const open = shape.indexOf(-1)
  if (open >= 0) shape[open] = countOf(input!) / -countOf(shape)
  if (params.reverse !== 0) shape.reverse()
  return countOf(shape) === countOf(input!) ? one(shape) : undefined
}

function expandTarget(target: readonly number[], input: Shape, copiesZeros: boolean): number[] {
  const shape: number[] = []
  let from = 0
  for (let at = 0; at < target.length; at += 1) {
    const extent = target[at]!
    if (extent === -2) {
      append(shape, input.slice(from))
      from = input.length
    } else if (extent === -3) {
      shape.push((input[from] ?? 0) * (input[from + 1] ?? 0))
      from += 2
    } else if (extent === -4) {
      shape.push(target[at + 1] === -1 ? 1 : (target[at + 1] ?? 0), target[at + 2] ?? 0)
      at += 2
      from += 1
    } else {
      if (extent !== 0) shape.push(extent)
      else if (copiesZeros) shape.push(input[from] ?? 0)
      else if (at === 0) shape.push(1)
      from += 1
    }
  }
  return shape
}

/** Numbers of axes mean n, h, w, c whatever the layout; only axes with one index go. */
const SQUEEZE_AXES: readonly number[] = [0, 2, 3, 1]

export function squeeze({ inputs: [input], params }: RuleCase<Params<'Squeeze'>>) {
  const named = [params.dim_0, params.dim_1, params.dim_2, params.dim_3].filter((axis) => axis !== -2)
  if (named.some((axis) => axis < 0 || axis > 3)) return undefined
  const axes = named.length === 0 ? input!.map((_, at) => at) : named.map((axis) => SQUEEZE_AXES[axis]!)
  const shape = input!.filter((extent, axis) => extent !== 1 || !axes.includes(axis))
  return one(shape.length === 0 ? [1] : shape)
}

export function unsqueeze({ inputs: [input], params }: RuleCase<Params<'Unsqueeze'>>) {
  const axes = params.axises
  if (!axes || axes.length === 0) return undefined
  const rank = input!.length + axes.length
  // A single negative axis counts from the end of the input.
  const counted = axes.map((axis) => (axis < 0 && axes.length === 1 ? axis + input!.length : axis))
  if (counted.some((axis) => axis < 0 || axis >= rank) || new Set(counted).size < counted.length)
    return undefined
  const old = [...input!]
  return one(Array.from({ length: rank }, (_, axis) => (counted.includes(axis) ? 1 : old.shift()!)))
}

export function expandDims({ inputs: [input], params: { axis } }: RuleCase<Params<'Expanddims'>>) {
  if (axis < 0 || axis > input!.length) return undefined
  return one([...input!.slice(0, axis), 1, ...input!.slice(axis)])
}

/** The part of one axis that a Slice takes. */
export interface SlicedRange {
  readonly axis: number
  readonly begin: number
  readonly end: number
  readonly step: number
}

/** The ranges of each output of a Slice: of one axis, or of all of them for a Slice with `begins` and `sizes`. */
export function slicedRanges({
  inputs: [input],
  params,
  outputs,
}: RuleCase<Params<'Slice'>>): readonly (readonly SlicedRange[])[] | undefined {
  const axis = axisOf(params.axis, input!)
  if (axis === undefined) return undefined
  const extent = input![axis]!
  if (params.iscaffe !== 0) {
    const points = caffePoints(params.slice_points ?? [], extent, outputs)
    return points?.slice(1).map((end, at) => [{ axis, begin: points[at]!, end, step: 1 }])
  }
  if (params.ismxnet !== 0 || params.isonnx !== 0) {
    const end = Math.min(params.end, extent)
    const step = params.isonnx !== 0 && params.step > 1 ? params.step : 1
    const range = { axis, begin: params.begin, end: end > 0 ? end : extent + end, step }
    return [[range]]
  }
  const { begins, sizes } = params
  if (begins?.length !== input!.length || sizes?.length !== input!.length) return undefined
  return [
    begins.map((begin, at) => {
      const end = sizes[at] === -1 ? input![at]! : begin + sizes[at]!
      return { axis: at, begin, end, step: 1 }
    }),
  ]
}

/** The limits of the parts; without points they are equal. */
function caffePoints(
  points: readonly number[],
  extent: number,
  outputs: number,
): readonly number[] | undefined {
  if (points.length > 0) return points.length === outputs - 1 ? [0, ...points, extent] : undefined
  if (extent % outputs !== 0) return undefined
  return Array.from({ length: outputs + 1 }, (_, at) => (at * extent) / outputs)
}

export function slice(given: RuleCase<Params<'Slice'>>) {
  const [input] = given.inputs
  return slicedRanges(given)?.map((ranges) =>
    ranges.reduce<Shape>(
      (shape, { axis, begin, end, step }) => withExtent(shape, axis, Math.ceil((end - begin) / step)),
      input!,
    ),
  )
}

/** The extents of the parts of a Split; undefined where they do not fill the axis. */
export function splitSizes({ inputs: [input], params, outputs }: RuleCase<Params<'Split'>>) {
  const axis = params.is_onnx === 0 ? 0 : params.axis
  const extent = input![axis]
  if (extent === undefined) return undefined
  const sizes = params.split_sizes?.length
    ? params.split_sizes
    : Array.from({ length: outputs }, () => extent / outputs)
  const isFilled = sizes.length === outputs && sizes.reduce((sum, size) => sum + size, 0) === extent
  return isFilled ? { axis, sizes } : undefined
}

export function split(given: RuleCase<Params<'Split'>>) {
  const { inputs, params, outputs } = given
  if (params.is_caffe !== 0) return Array.from({ length: outputs }, () => inputs[0]!)
  const parts = splitSizes(given)
  return parts?.sizes.map((size) => withExtent(inputs[0]!, parts.axis, size))
}

export function stridedSlice({ inputs: [input], params }: RuleCase<Params<'StridedSlice'>>) {
  const ranges = [
    [params.begin_n, params.end_n, params.stride_n],
    [params.begin_c, params.end_c, params.stride_c],
    [params.begin_h, params.end_h, params.stride_h],
    [params.begin_w, params.end_w, params.stride_w],
  ] as const
  if (input!.length > 4) return undefined
  // The extent is what is left without as many elements as lie between begin and end; an end is negative, or 0.
  const extents = input!.map((extent, axis) => {
    const [begin, end, stride] = ranges[axis]!
    return stride < 1 ? 0 : Math.ceil((extent - Math.abs(end - begin)) / stride) || 1
  })
  return one(extents)
}

export function gather({ inputs: [input, indices], params }: RuleCase<Params<'Gather'>>) {
  const { axis, indices_num, is_onnx } = params
  if (axisOf(axis, input!) !== axis || !indices) return undefined
  if (is_onnx === 0) return input!.length === 4 ? one(withExtent(input!, axis, indices_num)) : undefined
  if (axis === 0) return one(input!.slice(1))
  return one([...input!.slice(0, axis), ...indices, ...input!.slice(axis + 1)])
}

export function embedding({ inputs: [input], params }: RuleCase<Params<'Embedding'>>) {
  return one([countOf(input!), params.num_output])
}

export function topK({ inputs: [input], params: { k } }: RuleCase<Params<'TopKV2'>>) {
  if (k > input!.at(-1)!) return undefined
  const shape = [...input!.slice(0, -1), k]
  return [shape, shape]
}

/** The axes of a Reduction; all where no slot is used. */
export function reducedAxes(params: Params<'Reduction'>, input: Shape): readonly number[] | undefined {
  const slots = [params.dim_0, params.dim_1, params.dim_2, params.dim_3].filter((axis) => axis !== -2)
  if (slots.length === 0) return input.map((_, axis) => axis)
  const axes = slots.map((axis) => axisOf(axis, input))
  return axes.includes(undefined) ? undefined : (axes as readonly number[])
}

export function reduction({ inputs: [input], params }: RuleCase<Params<'Reduction'>>) {
  const axes = reducedAxes(params, input!)
  return axes && one(withoutAxes(input!, axes, params.keepdim !== 0))
}

/** Reduces every axis from `axis` on. */
export function reduceL2({ inputs: [input], params }: RuleCase<Params<'ReduceL2'>>) {
  const axis = axisOf(params.axis, input!)
  if (axis === undefined || params.keepdim === 0) return undefined
  return one(input!.map((extent, at) => (at < axis ? extent : 1)))
}

function withoutAxes(shape: Shape, axes: readonly number[], keeps: boolean): Shape {
  if (keeps) return shape.map((extent, axis) => (axes.includes(axis) ? 1 : extent))
  const left = shape.filter((_, axis) => !axes.includes(axis))
  return left.length === 0 ? [1] : left
}
