/** Arithmetic on small arrays in row-major order: what constants need before the engine gets them. */
import { RUNTIME_LIMITS } from '../../../formats/tmfile/schema.js'
import { refuse } from './refusal.js'

/** Elements of a constant. Integers are exact up to 2^53; bool is 0 and 1. */
export type Numbers = Float32Array | Float64Array

export type Shape = readonly number[]

export function sizeOf(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1)
}

export function sameShape(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((extent, axis) => extent === other[axis])
}

/** The shape with leading ones, up to `rank`. */
export function withRank(shape: Shape, rank: number): number[] {
  return [...Array<number>(Math.max(0, rank - shape.length)).fill(1), ...shape]
}

/** Why the engine has no tensor of a shape; undefined where it has. */
export function whyNotShape(shape: Shape): string | undefined {
  const { dims, elements } = RUNTIME_LIMITS
  if (shape.length > dims) return `rank ${shape.length}; the engine has at most ${dims}`
  if (shape.includes(0)) return 'the result is empty'
  const size = sizeOf(shape)
  if (!shape.every((extent) => extent > 0 && Number.isSafeInteger(extent))) return `the shape [${shape}]`
  return size < elements ? undefined : `${size} elements; the engine has less than ${elements} in a tensor`
}

/** Distance between neighbours of each axis, in elements. */
export function stridesOf(shape: Shape): number[] {
  const strides = Array<number>(shape.length).fill(1)
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1]! * shape[axis + 1]!
  return strides
}

/** An uninitialised array of the same element type. */
export function alike(numbers: Numbers, length: number): Numbers {
  return numbers instanceof Float32Array ? new Float32Array(length) : new Float64Array(length)
}

/** Copies elements at regular distances: `shape` is that of the result, strides and offset are in the source. */
export function strided(numbers: Numbers, shape: Shape, strides: Shape, offset = 0): Numbers {
  const result = alike(numbers, sizeOf(shape))
  if (result.length === 0) return result
  const last = shape.length - 1
  const [length, step] = last < 0 ? [1, 1] : [shape[last]!, strides[last]!]
  const index = Array<number>(Math.max(0, last)).fill(0)
  let [from, to] = [offset, 0]
  while (to < result.length) {
    for (let at = 0; at < length; at++) result[to++] = numbers[from + at * step]!
    for (let axis = last - 1; axis >= 0; axis--) {
      from += strides[axis]!
      index[axis]! += 1
      if (index[axis]! < shape[axis]!) break
      from -= strides[axis]! * shape[axis]!
      index[axis] = 0
    }
  }
  return result
}

export function transposed(numbers: Numbers, shape: Shape, perm: Shape): Numbers {
  const strides = stridesOf(shape)
  return strided(
    numbers,
    perm.map((axis) => shape[axis]!),
    perm.map((axis) => strides[axis]!),
  )
}

/** Repeats elements along axes of extent 1, as numpy broadcasts. */
export function broadcastTo(numbers: Numbers, from: Shape, to: Shape): Numbers {
  const shape = withRank(from, to.length)
  if (sameShape(shape, to)) return numbers
  const strides = stridesOf(shape).map((stride, axis) => (shape[axis] === 1 ? 0 : stride))
  return strided(numbers, to, strides)
}

/** Elements at the given positions of one axis. */
export function taken(numbers: Numbers, shape: Shape, axis: number, indices: ArrayLike<number>): Numbers {
  const [outer, extent] = [sizeOf(shape.slice(0, axis)), shape[axis]!]
  const inner = sizeOf(shape.slice(axis + 1))
  const result = alike(numbers, outer * indices.length * inner)
  let to = 0
  for (let block = 0; block < outer; block++) {
    for (let at = 0; at < indices.length; at++) {
      const from = (block * extent + indices[at]!) * inner
      result.set(numbers.subarray(from, from + inner), to)
      to += inner
    }
  }
  return result
}

/** Positions along one axis that a conversion lists, so that a small file cannot ask for gigabytes (CWE-770). */
const MAX_POSITIONS = 2 ** 22

/** One number for each of `count` positions along an axis. */
export function positions(count: number, numberAt: (at: number) => number): number[] {
  if (count > MAX_POSITIONS) refuse(`${count} positions along an axis; at most ${MAX_POSITIONS} are listed`)
  return Array.from({ length: count }, (_, at) => numberAt(at))
}

/** Joins arrays along one axis. */
export function joined(parts: readonly (readonly [Numbers, Shape])[], axis: number): Numbers {
  const [numbers, first] = parts[0]!
  const outer = sizeOf(first.slice(0, axis))
  const lengths = parts.map(([, shape]) => sizeOf(shape.slice(axis)))
  const result = alike(numbers, outer * lengths.reduce((sum, length) => sum + length, 0))
  let to = 0
  for (let block = 0; block < outer; block++) {
    for (const [at, [part]] of parts.entries()) {
      const length = lengths[at]!
      result.set(part.subarray(block * length, (block + 1) * length), to)
      to += length
    }
  }
  return result
}

/** The axis counted from the front; undefined where the rank has no such axis. */
export function positiveAxis(axis: number, rank: number): number | undefined {
  const at = axis < 0 ? axis + rank : axis
  return Number.isInteger(at) && at >= 0 && at < rank ? at : undefined
}

/** Start, number and step of the elements that a slice of ONNX takes from an axis. */
export interface SliceRange {
  readonly start: number
  readonly count: number
  readonly step: number
}

/** Clamps the bounds of a slice as ONNX does. */
export function sliceRange(extent: number, start: number, end: number, step: number): SliceRange {
  const [lowest, highest] = step > 0 ? [0, extent] : [-1, extent - 1]
  const clamp = (at: number, low: number): number =>
    Math.min(Math.max(at < 0 ? at + extent : at, low), highest)
  // With a negative step the first element is inside the axis, and the end may lie before it.
  const first = clamp(start, step > 0 ? 0 : 0)
  const last = clamp(end, lowest)
  return { start: first, count: Math.max(0, Math.ceil((last - first) / step)), step }
}
