/** Movement of elements in row-major order, for typed arrays and lists of dimensions alike. */
import { broadcast } from './dims.js'
import { type Elements, isPartial } from './value.js'

export type Shape = readonly number[]

/** Number of elements; not exact beyond 2^53. */
export function countOf(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1)
}

export function sameShape(one: Shape, other: Shape): boolean {
  return one.length === other.length && one.every((extent, axis) => extent === other[axis])
}

/** The shape with leading ones, up to `rank`. */
export function withRank(shape: Shape, rank: number): number[] {
  return [...Array<number>(Math.max(0, rank - shape.length)).fill(1), ...shape]
}

/** Distance between neighbours of each axis, in elements. */
export function stridesOf(shape: Shape): number[] {
  const strides = Array<number>(shape.length).fill(1)
  for (let axis = shape.length - 2; axis >= 0; axis--) strides[axis] = strides[axis + 1]! * shape[axis + 1]!
  return strides
}

/** Element types differ, but elements are only moved between arrays of one kind. */
interface Slots {
  readonly length: number
  [at: number]: unknown
}

/** An array of the same kind with zeros, of a list of dimensions with holes. */
export function alike<Kind extends Elements>(elements: Kind, length: number): Kind {
  if (isPartial(elements)) return Array(length) as unknown as Kind
  return new (elements.constructor as new (count: number) => Kind)(length)
}

/** Copies elements at regular distances: `shape` is that of the result, strides and offset are in the source. */
export function strided<Kind extends Elements>(
  elements: Kind,
  shape: Shape,
  strides: Shape,
  offset = 0,
): Kind {
  const result = alike(elements, countOf(shape))
  if (result.length === 0) return result
  const [source, target] = [elements as Slots, result as Slots]
  const last = shape.length - 1
  const [length, step] = last < 0 ? [1, 1] : [shape[last]!, strides[last]!]
  const index = Array<number>(Math.max(0, last)).fill(0)
  let [from, to] = [offset, 0]
  while (to < result.length) {
    for (let at = 0; at < length; at++) target[to++] = source[from + at * step]!
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

export function transposed<Kind extends Elements>(elements: Kind, shape: Shape, perm: Shape): Kind {
  const strides = stridesOf(shape)
  return strided(
    elements,
    perm.map((axis) => shape[axis]!),
    perm.map((axis) => strides[axis]!),
  )
}

/** Repeats elements along axes of extent 1, as numpy broadcasts. */
export function broadcastTo<Kind extends Elements>(elements: Kind, from: Shape, to: Shape): Kind {
  const shape = withRank(from, to.length)
  if (sameShape(shape, to)) return elements
  const strides = stridesOf(shape).map((stride, axis) => (shape[axis] === 1 ? 0 : stride))
  return strided(elements, to, strides)
}

/** The shape of operands that are broadcast as in numpy; undefined where they cannot be. */
export function broadcastShape(shapes: readonly Shape[]): Shape | undefined {
  return broadcast(shapes) as Shape | undefined
}

/** Elements at the given positions of one axis; -1 takes `fill`. */
export function taken<Kind extends Elements>(
  elements: Kind,
  shape: Shape,
  axis: number,
  positions: ArrayLike<number>,
  fill?: Kind[number],
): Kind {
  const [outer, extent] = [countOf(shape.slice(0, axis)), shape[axis]!]
  const inner = countOf(shape.slice(axis + 1))
  const result = alike(elements, outer * positions.length * inner)
  const [source, target] = [elements as Slots, result as Slots]
  let to = 0
  for (let block = 0; block < outer; block++) {
    for (let at = 0; at < positions.length; at++) {
      const from = positions[at]! < 0 ? -1 : (block * extent + positions[at]!) * inner
      for (let k = 0; k < inner; k++) target[to++] = from < 0 ? fill : source[from + k]
    }
  }
  return result
}

/** Joins arrays along one axis. */
export function joined<Kind extends Elements>(
  parts: readonly (readonly [Kind, Shape])[],
  axis: number,
): Kind {
  const [elements, first] = parts[0]!
  const outer = countOf(first.slice(0, axis))
  const lengths = parts.map(([, shape]) => countOf(shape.slice(axis)))
  const result = alike(elements, outer * lengths.reduce((sum, length) => sum + length, 0))
  const target = result as Slots
  let to = 0
  for (let block = 0; block < outer; block++) {
    for (const [at, [part]] of parts.entries()) {
      const length = lengths[at]!
      for (let k = block * length; k < (block + 1) * length; k++) target[to++] = (part as Slots)[k]
    }
  }
  return result
}

/** Ends from here on mean the end of the axis: exporters write the largest int32 or int64. */
export const FAR_END = 2 ** 31 - 1

/** Start, number and step of the elements that a slice of ONNX takes from an axis. */
export interface SliceRange {
  readonly start: number
  readonly count: number
  readonly step: number
}

/** Clamps the bounds of a slice as ONNX does. @param step - not 0 */
export function sliceRange(extent: number, start: number, end: number, step: number): SliceRange {
  // With a negative step the first element is inside the axis, and the end may lie before it.
  const highest = step > 0 ? extent : extent - 1
  const clamp = (at: number, lowest: number): number =>
    Math.min(Math.max(at < 0 ? at + extent : at, lowest), highest)
  const [first, last] = [clamp(start, 0), clamp(end, step > 0 ? 0 : -1)]
  return { start: first, count: Math.max(0, Math.ceil((last - first) / step)), step }
}
