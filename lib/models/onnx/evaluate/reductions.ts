/** Operators that compute one element from many, and those that order elements. */
import { DTYPES } from '../../../dtype/dtypes.js'
import { countOf, type Shape, transposed } from './arrays.js'
import {
  type Call,
  FLOATS,
  INTEGERS,
  type KnownOperand,
  type Made,
  moved,
  NONE,
  NUMBERS,
  type OperatorRow,
  row,
  unknown,
} from './call.js'
import { type Dim, type Dims, productOf, sumOf } from './dims.js'
import {
  type BigIntArray,
  type Elements,
  filled,
  hasNegativeZero,
  isBig,
  isPartial,
  type KnownElements,
  type NumberArray,
  Value,
  type ValueDtype,
} from './value.js'

/** How the elements of the reduced axes become one number. */
interface Reduction {
  readonly start: number
  readonly add: (sum: number, value: number) => number
  readonly finish?: (sum: number, count: number) => number
  /** Of integers of which some may be symbolic or unknown. */
  readonly dims?: (sum: Dim, value: Dim) => Dim
}

interface Axes {
  /** The shape with the axes that are reduced last. */
  readonly perm: Shape
  readonly result: Shape
  /** Elements that become one. */
  readonly count: number
}

/** Undefined for a node that reduces nothing. */
function axesOf(call: Call, own: Shape, since: number): Axes | undefined {
  const { node } = call
  const given = call.list('axes', since, 1)
  if (!given?.length && call.opset >= since && node.int('noop_with_empty_axes', 0) !== 0) return undefined
  const all = [...own.keys()]
  const axes = new Set(given?.length ? call.axes(given, own.length) : all)
  const kept = all.filter((axis) => !axes.has(axis))
  const isKept = node.int('keepdims', 1) === 1
  return {
    perm: [...kept, ...all.filter((axis) => axes.has(axis))],
    result: call.shape((isKept ? all : kept).map((axis) => (axes.has(axis) ? 1 : own[axis]!))),
    count: countOf([...axes].map((axis) => own[axis]!)),
  }
}

/** The elements of each row that becomes one element. */
interface Rows {
  readonly dtype: ValueDtype
  readonly result: Shape
  readonly elements: Elements
  readonly count: number
}

function reduced(reduce: (call: Call, rows: Rows) => Elements, since = 18): OperatorRow['run'] {
  return (call) => {
    const { dtype, shape: own, elements } = call.input(0)
    const axes = axesOf(call, own, since)
    if (!axes) return moved(dtype, own, elements)
    const { perm, result, count } = axes
    // Of no elements engines give an error, or an identity.
    if (count === 0) return unknown()
    return moved(
      dtype,
      result,
      reduce(call, { dtype, result, elements: transposed(elements, own, perm), count }),
    )
  }
}

const reduction = (reduction: Reduction, since?: number): OperatorRow['run'] =>
  reduced((call, rows) => {
    const { elements, count, dtype, result } = rows
    if (isPartial(elements)) return sumOfDims(reduction, elements, countOf(result), count)
    // Two numbers are added in one way; of more the order is the engine's, and the sign of 0 as well.
    const isExact = !FLOATS.has(dtype) || (count <= 2 && !hasNegativeZero(elements))
    if (!isExact && !call.rounding) return unknown()
    return FLOATS.has(dtype) ? realSums(reduction, rows, elements) : integerSums(reduction, rows, elements)
  }, since)

function sumOfDims({ dims }: Reduction, elements: Dims, length: number, count: number): Dims {
  if (!dims) return unknown()
  return Array.from({ length }, (_, row) => elements.slice(row * count, (row + 1) * count).reduce(dims))
}

function realSums({ start, add, finish = (sum) => sum }: Reduction, rows: Rows, elements: KnownElements) {
  const values = elements as NumberArray
  return filled(rows.dtype, countOf(rows.result), (row) => {
    let sum = start
    for (let at = row * rows.count; at < (row + 1) * rows.count; at++) sum = add(sum, values[at]!)
    return finish(sum, rows.count)
  })
}

/** Engines compute in doubles, or wrap: the same where neither is needed. */
function integerSums({ start, add }: Reduction, { dtype, result, count }: Rows, elements: KnownElements) {
  const { min, max } = DTYPES[dtype].limits!
  return filled(dtype, countOf(result), (row) => {
    let [sum, bound] = [start, start]
    for (let at = row * count; at < (row + 1) * count; at++) {
      const value = Number(elements[at])
      sum = add(sum, value)
      bound = add(bound, Math.abs(value) || start)
    }
    if (!(bound <= Number.MAX_SAFE_INTEGER) || sum < min || sum > max) return unknown()
    return isBig(dtype) ? BigInt(sum) : sum
  })
}

/** Whether an element takes the place of one before it. */
type IsBetter = (one: number | bigint, other: number | bigint) => boolean

/** Position of the best element of a row; the first of equal ones. Engines differ in NaN, and in zeros of two signs. */
function bestOf(elements: KnownElements, row: number, count: number, isBetter: IsBetter): number {
  let best = row * count
  for (let at = best; at < (row + 1) * count; at++) if (isBetter(elements[at]!, elements[best]!)) best = at
  return best
}

function choice(isBetter: IsBetter): OperatorRow['run'] {
  return reduced((_, { dtype, result, elements, count }) => {
    if (isPartial(elements) || hasNaN(elements) || hasNegativeZero(elements)) return unknown()
    return filled(dtype, countOf(result), (row) => elements[bestOf(elements, row, count, isBetter)]!)
  })
}

function argument(isBetter: IsBetter): OperatorRow['run'] {
  return (call) => {
    const { shape: own, elements } = call.known(0)
    const axis = call.axis(0, own.length)
    const count = own[axis]!
    if (count === 0 || hasNaN(elements)) return unknown()
    const kept = [...own.keys()].filter((each) => each !== axis)
    const rows = transposed(elements, own, [...kept, axis])
    const isLast = call.node.int('select_last_index', 0) !== 0
    const isKept = call.node.int('keepdims', 1) === 1
    const result = call.shape(isKept ? own.with(axis, 1) : own.toSpliced(axis, 1))
    const isChosen: IsBetter = isLast ? (one, other) => !isBetter(other, one) : isBetter
    const position = (row: number): bigint => BigInt(bestOf(rows, row, count, isChosen) - row * count)
    return new Value('int64', result, filled('int64', countOf(result), position))
  }
}

function hasNaN(elements: KnownElements): boolean {
  return (elements as NumberArray).some(Number.isNaN)
}

/** Sums along an axis, each from the one before. */
function cumulativeSum(call: Call): Value {
  const { dtype, shape: own, elements } = call.known(0)
  const axis = call.axisOf(Number(call.scalar(1)), own.length)
  const [extent, inner] = [own[axis]!, countOf(own.slice(axis + 1))]
  const [isExclusive, isReverse] = [call.node.int('exclusive', 0) !== 0, call.node.int('reverse', 0) !== 0]
  call.shape(own)
  const values = elements as NumberArray
  const made = filled(dtype, values.length, () => (isBig(dtype) ? 0n : 0)) as NumberArray
  const step = isReverse ? -inner : inner
  for (let block = 0; block < values.length; block += extent * inner) {
    for (let k = 0; k < inner; k++) {
      let at = block + k + (isReverse ? (extent - 1) * inner : 0)
      if (!isExclusive) made[at] = values[at]!
      for (let count = 1; count < extent; count++, at += step)
        made[at + step] = made[at]! + values[isExclusive ? at : at + step]!
    }
  }
  return new Value(dtype, own, made)
}

/** The largest or smallest elements along an axis, in order; of equal ones the first. */
function topK(call: Call): Made {
  const { dtype, shape: own, elements } = call.known(0)
  const { node } = call
  const k = call.opset < 10 ? (node.int('k') ?? unknown()) : Number(call.scalar(1))
  const axis = call.axis(-1, own.length)
  const [isLargest, isSorted] = [node.int('largest', 1) !== 0, node.int('sorted', 1) !== 0]
  const extent = own[axis]!
  // The order of unsorted results is the choice of the engine.
  if (!(k >= 0 && k <= extent) || !isSorted || hasNaN(elements)) return unknown()
  const result = call.shape(own.with(axis, k))
  call.work(elements.length * Math.ceil(Math.log2(extent + 1)))
  const inner = countOf(own.slice(axis + 1))
  const values = elements as NumberArray
  const [from, indices] = [new Array<number>(countOf(result)), new BigInt64Array(countOf(result))]
  for (let line = 0; line < values.length / Math.max(extent, 1); line++) {
    const start = Math.floor(line / inner) * extent * inner + (line % inner)
    const numberAt = (at: number): number => values[start + at * inner]!
    const isBefore = (one: number, other: number): boolean =>
      isLargest ? numberAt(one) > numberAt(other) : numberAt(one) < numberAt(other)
    const order = Array.from({ length: extent }, (_, at) => at).sort((one, other) =>
      isBefore(one, other) ? -1 : isBefore(other, one) ? 1 : one - other,
    )
    const target = Math.floor(line / inner) * k * inner + (line % inner)
    for (let rank = 0; rank < k; rank++) {
      from[target + rank * inner] = start + order[rank]! * inner
      indices[target + rank * inner] = BigInt(order[rank]!)
    }
  }
  const chosen = filled(dtype, from.length, (at) => values[from[at]!]!)
  return [new Value(dtype, result, chosen), new Value('int64', result, indices)]
}

/** Products of integers are exact; of floats the order of sums is the engine's. Batches are those of numpy. */
function matMul(call: Call): Value {
  const [one, other] = [call.known(0), call.known(1)]
  if (one.shape.length < 2 || other.shape.length !== 2 || one.dtype !== other.dtype) return unknown()
  const [rows, columns, depth] = [countOf(one.shape.slice(0, -1)), other.shape[1]!, other.shape[0]!]
  if (one.shape.at(-1) !== depth) return unknown()
  const result = call.shape([...one.shape.slice(0, -1), columns])
  call.work(rows * columns * depth)
  return new Value(one.dtype, result, products(one, other, rows, columns, depth))
}

function products(
  one: KnownOperand,
  other: KnownOperand,
  rows: number,
  columns: number,
  depth: number,
): KnownElements {
  const { dtype } = one
  if (isBig(dtype)) {
    const [left, right] = [one.elements as BigIntArray, other.elements as BigIntArray]
    return filled(dtype, rows * columns, (at) => {
      const [row, column] = [Math.floor(at / columns), at % columns]
      let sum = 0n
      for (let k = 0; k < depth; k++) sum += left[row * depth + k]! * right[k * columns + column]!
      return sum
    })
  }
  const [left, right] = [one.elements as NumberArray, other.elements as NumberArray]
  const multiply = INTEGERS.has(dtype) ? Math.imul : (a: number, b: number): number => a * b
  return filled(dtype, rows * columns, (at) => {
    const [row, column] = [Math.floor(at / columns), at % columns]
    let sum = 0
    for (let k = 0; k < depth; k++) sum += multiply(left[row * depth + k]!, right[k * columns + column]!)
    return sum
  })
}

const greater: IsBetter = (one, other) => one > other
const less: IsBetter = (one, other) => one < other
const plus = (sum: number, value: number): number => sum + value
const square = (sum: number, value: number): number => sum + value * value

const rounds = { rounded: FLOATS }

export const REDUCTIONS: readonly OperatorRow[] = [
  row('ReduceMax', NUMBERS, choice(greater)),
  row('ReduceMin', NUMBERS, choice(less)),
  row('ReduceSum', NUMBERS, reduction({ start: 0, add: plus, dims: sumOf }, 13)),
  row(
    'ReduceProd',
    NUMBERS,
    reduction({ start: 1, add: (product, value) => product * value, dims: productOf }),
  ),
  row('ReduceMean', FLOATS, reduction({ start: 0, add: plus, finish: (sum, count) => sum / count })),
  row('ReduceL1', NONE, reduction({ start: 0, add: (sum, value) => sum + Math.abs(value) }), rounds),
  row('ReduceL2', NONE, reduction({ start: 0, add: square, finish: Math.sqrt }), rounds),
  row('ReduceSumSquare', NONE, reduction({ start: 0, add: square }), rounds),
  row('ArgMax', NUMBERS, argument(greater)),
  row('ArgMin', NUMBERS, argument(less)),
  row('CumSum', new Set(['float32', 'float64', 'int32', 'int64', 'uint32', 'uint64']), cumulativeSum),
  row('TopK', NUMBERS, topK),
  row('MatMul', INTEGERS, matMul, rounds),
]
