/**
 * Elements of small tensors that describe shapes, as far as they follow: `Shape`, and arithmetic of its results. Elements are
 * numbers, symbolic dimensions, or null.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { ownEntry } from '../../../own_entry.js'
import {
  axisOf,
  type Dim,
  type Dims,
  differenceOf,
  isKnown,
  productOf,
  productOfAll,
  quotientOf,
  sumOf,
} from './dims.js'
import { range, shapeRange, sliceLength } from './movement.js'
import { MAX_SHAPE_VALUES, type NodeView } from './node_view.js'

/**
 * The elements of output 0; undefined where they are not followed. A number that the element type does not hold is unknown:
 * integers wrap, and floats are rounded, in ways that the rules do not follow.
 */
export function valuesOfOutput(node: NodeView, dtype: Dtype | number): Dims | undefined {
  const values = ownEntry(RULES, node.opType)?.(node)
  if (!values || values.length > MAX_SHAPE_VALUES) return undefined
  const holds = HOLDS.get(dtype)
  return values.map((value) => (!isKnown(value) || holds?.(value) ? value : null))
}

/** Whether a type holds a number. Values of other types are not followed. */
const HOLDS: ReadonlyMap<Dtype | number, (value: number) => boolean> = new Map<
  Dtype,
  (value: number) => boolean
>([
  ['bool', (value) => value === 0 || value === 1],
  ['int32', (value) => value === (value | 0)],
  ['int64', Number.isSafeInteger],
  ['float32', (value) => Number.isFinite(value) && value === Math.fround(value)],
  ['float64', Number.isFinite],
])

const RULES: Readonly<Record<string, (node: NodeView) => Dims | undefined>> = {
  Shape: (node) => node.dims(0) && shapeRange(node),
  Size: (node) => node.dims(0) && [productOfAll(node.dims(0)!)],
  Identity: (node) => node.values(0),
  Cast: (node) => converted(node.values(0), node.dtype(0), DTYPE_OF_CODE.get(node.int('to', 0))),
  CastLike: (node) => converted(node.values(0), node.dtype(0), node.dtype(1)),
  Squeeze: (node) => node.values(0),
  Unsqueeze: (node) => (node.dims(0)?.length === 0 ? node.values(0) : undefined),
  Reshape: (node) => ((node.values(1)?.length ?? 2) < 2 ? node.values(0) : undefined),
  Concat: concat,
  Gather: gather,
  Slice: slice,
  Add: (node) => elementwise(node, sumOf, (one, other) => one + other),
  Sub: (node) => elementwise(node, differenceOf, (one, other) => one - other),
  Mul: (node) => elementwise(node, productOf, (one, other) => one * other),
  Div: (node) => elementwise(node, quotient, (one, other) => one / other),
  Min: (node) => extremes(node, Math.min),
  Max: (node) => extremes(node, Math.max),
  Floor: (node) => node.values(0)?.map((value) => (isKnown(value) ? Math.floor(value) : value)),
  Ceil: (node) => node.values(0)?.map((value) => (isKnown(value) ? Math.ceil(value) : value)),
  Equal: (node) => elementwise(node, equalOnes, (one, other) => Number(one === other)),
  Where: where,
  ConstantOfShape: constantOfShape,
  Expand: expand,
  Range: rangeOf,
  ReduceProd: (node) =>
    node.dims(0)?.length === 1 && node.values(0) ? [productOfAll(node.values(0)!)] : undefined,
}

const INTEGERS: ReadonlySet<unknown> = new Set(['int32', 'int64'])

/** Integers have no 0 with a sign. */
const integerOf = (value: number): number => Math.trunc(value) + 0

/** Numbers stay between the types of shapes and floats that hold them; other conversions are not followed. */
function converted(
  values: Dims | undefined,
  from: Dtype | number | undefined,
  to: Dtype | number | undefined,
): Dims | undefined {
  if (!values || !(INTEGERS.has(to) || to === 'float32' || to === 'float64')) return undefined
  if (!(INTEGERS.has(from) || from === 'float32' || from === 'float64')) return undefined
  return values.map((value) => {
    if (!isKnown(value)) return value
    const number = INTEGERS.has(to) ? integerOf(value) : to === 'float32' ? Math.fround(value) : value
    return Number.isFinite(number) ? number : null
  })
}

function concat(node: NodeView): Dims | undefined {
  const lists: Dims[] = []
  let count = 0
  for (const input of node.inputs.keys()) {
    const list = node.values(input)
    // An element that is not known still has its place.
    const length = node.dims(input)?.length === 1 ? node.dims(input)![0] : undefined
    if (!isKnown(length) || length > MAX_SHAPE_VALUES) return undefined
    lists.push(list ?? Array(length).fill(null))
    count += length
    if (count > MAX_SHAPE_VALUES) return undefined
  }
  return lists.flat()
}

function gather(node: NodeView): Dims | undefined {
  const [values, indices] = [node.values(0), node.integers(1)]
  if (!values || !indices || node.dims(0)?.length !== 1 || (node.dims(1)?.length ?? 2) > 1) return undefined
  const found = indices.map((index) => axisOf(index, values.length))
  return found.includes(undefined) ? undefined : found.map((at) => values[at!]!)
}

function slice(node: NodeView): Dims | undefined {
  const values = node.values(0)
  const isOld = node.opset < 10
  const [starts, ends] = isOld
    ? [node.ints('starts'), node.ints('ends')]
    : [node.integers(1), node.integers(2)]
  const steps = isOld || !node.has(4) ? [1] : node.integers(4)
  const [start, end, step] = [starts?.[0], ends?.[0], steps?.[0]]
  const isList = node.dims(0)?.length === 1 && starts?.length === 1
  if (!values || !isList || start === undefined || end === undefined || !step) return undefined
  const length = sliceLength(values.length, start, end, step)
  if (!isKnown(length)) return undefined
  const last = step > 0 ? values.length : values.length - 1
  const from = Math.min(Math.max(start < 0 ? start + values.length : start, 0), last)
  return Array.from({ length }, (_, at) => values[from + at * step]!)
}

/**
 * Applies an operation to pairs of elements.
 *
 * @param symbolic - for two integers or symbols
 * @param plain - for floats
 */
function elementwise(
  node: NodeView,
  symbolic: (one: Dim, other: Dim) => Dim,
  plain: (one: number, other: number) => number,
): Dims | undefined {
  const dtype = node.dtype(0)
  const isInteger = INTEGERS.has(dtype)
  if (!isInteger && dtype !== 'float32' && dtype !== 'float64') return undefined
  if (node.inputs.length !== 2) return undefined
  return paired(node, 0, 1, (one, other) => {
    if (one === null || other === null) return null
    if (isInteger && !(isKnown(one) && isKnown(other))) return symbolic(one, other)
    if (!isKnown(one) || !isKnown(other)) return null
    const value = plain(one, other)
    if (isInteger) return integerOf(value)
    const rounded = dtype === 'float32' ? Math.fround(value) : value
    return Number.isFinite(rounded) ? rounded : null
  })
}

/** Of any number of inputs. */
function extremes(node: NodeView, pick: (one: number, other: number) => number): Dims | undefined {
  const dtype = node.dtype(0)
  if (!INTEGERS.has(dtype) && dtype !== 'float32' && dtype !== 'float64') return undefined
  const lists = node.inputs.map((_, input) => node.values(input))
  if (!lists.every((list) => list !== undefined)) return undefined
  const length = broadcastLength(lists)
  if (length === undefined) return undefined
  return Array.from({ length }, (_, at) =>
    lists
      .map((list) => elementAt(list, at))
      .reduce((one, other) => (isKnown(one) && isKnown(other) ? pick(one, other) : equalOnly(one, other))),
  )
}

const equalOnly = (one: Dim, other: Dim): Dim => (one === other ? one : null)
const equalOnes = (one: Dim, other: Dim): Dim =>
  one === other ? 1 : isNegative(one) || isNegative(other) ? 0 : null
const isNegative = (dim: Dim): boolean => isKnown(dim) && dim < 0

/** Extents are not negative, so that only a quotient without remainder is certain. */
const quotient = (one: Dim, other: Dim): Dim => quotientOf(one, other)

function paired(
  node: NodeView,
  first: number,
  second: number,
  apply: (one: Dim, other: Dim, at: number) => Dim,
): Dims | undefined {
  const [left, right] = [node.values(first), node.values(second)]
  if (!left || !right || node.opset < 7) return undefined
  const length = broadcastLength([left, right])
  if (length === undefined) return undefined
  return Array.from({ length }, (_, at) => apply(elementAt(left, at), elementAt(right, at), at))
}

const elementAt = (list: Dims, at: number): Dim => list[list.length === 1 ? 0 : at]!

function broadcastLength(lists: readonly Dims[]): number | undefined {
  const lengths = new Set(lists.map(({ length }) => length).filter((length) => length !== 1))
  return lengths.size > 1 ? undefined : ([...lengths][0] ?? 1)
}

function where(node: NodeView): Dims | undefined {
  const conditions = node.values(0)
  if (!conditions || !INTEGERS.has(node.dtype(1))) return undefined
  const both = paired(node, 1, 2, equalOnly)
  const lists = [1, 2].map((input) => node.values(input))
  if (!both || !lists[0] || !lists[1]) return undefined
  const length = broadcastLength([conditions, lists[0], lists[1]])
  if (length === undefined) return undefined
  return Array.from({ length }, (_, at) => {
    const condition = elementAt(conditions, at)
    return condition === null ? elementAt(both, at) : elementAt(lists[condition === 0 ? 1 : 0]!, at)
  })
}

function constantOfShape(node: NodeView): Dims | undefined {
  const counts = node.integers(0)
  const tensor = node.attribute('value')?.tensors[0]
  if (!counts || counts.length > 1 || tensor?.kind !== 'dense' || !INTEGERS.has(tensor.dtype))
    return undefined
  const count = counts[0] ?? 1
  if (!tensor.hasData || tensor.size !== 1 || count < 0 || count > MAX_SHAPE_VALUES) return undefined
  // biome-ignore lint/plugin: an index has one number per axis, of which a shape has at most 255
  const value = Number(tensor.at(...tensor.shape.map(() => 0)))
  return Number.isSafeInteger(value) ? Array(count).fill(value) : undefined
}

function expand(node: NodeView): Dims | undefined {
  const [values, counts] = [node.values(0), node.integers(1)]
  if (values?.length !== 1 || !counts || counts.length > 1) return undefined
  const count = counts[0] ?? 1
  return count < 0 || count > MAX_SHAPE_VALUES ? undefined : Array(count).fill(values[0]!)
}

function rangeOf(node: NodeView): Dims | undefined {
  const [count] = range(node)
  const [start, , delta] = [0, 1, 2].map((input) => node.integers(input)?.[0])
  const isFollowed = INTEGERS.has(node.dtype(0)) && isKnown(count) && count <= MAX_SHAPE_VALUES
  if (!isFollowed || start === undefined || delta === undefined) return undefined
  return Array.from({ length: count }, (_, at) => start + at * delta)
}
