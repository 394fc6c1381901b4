/**
 * Dimensions of shapes that are partly known: numbers, symbolic names or sums of them, and null for unknown ones. The rules
 * are those of onnx.shape_inference: a name stays where it is certain, and nothing is guessed.
 */

import { greatest } from '../../../long_lists.js'
import type { Dimension } from '../document/types.js'
import { addSymbols, divideSymbols, multiplySymbols } from './symbolic.js'

/** A shape of known rank. Extents beyond 2^53 - 1 are unknown. */
export type Dims = readonly (number | string | null)[]
export type Dim = Dims[number]

/**
 * Ranks above are not followed: a chain of `Unsqueeze`, and a thousand inputs of one value with a thousand axes, cost no more
 * than their nodes.
 */
export const MAX_INFERRED_RANK = 255

/** Shape of a declared type; names that are empty, and negative extents, say nothing. */
export function dimsOf(shape: readonly Dimension[] | undefined): Dims | undefined {
  if (!shape || shape.length > MAX_INFERRED_RANK) return undefined
  return shape.every(isDim) ? shape : shape.map((extent) => (isDim(extent) ? extent : null))
}

function isDim(extent: Dimension): extent is Dim {
  return typeof extent === 'number' ? extent >= 0 : typeof extent !== 'bigint' && extent !== ''
}

export function isKnown(dim: Dim | undefined): dim is number {
  return typeof dim === 'number'
}

/** The number, or null where it is no extent. */
export function extent(value: number): Dim {
  return Number.isSafeInteger(value) && value >= 0 ? value : null
}

/** As `extent`, for a dimension that arithmetic gave. */
export function asExtent(dim: Dim): Dim {
  return isKnown(dim) ? extent(dim) : dim
}

export function sumOf(one: Dim, other: Dim): Dim {
  if (one === 0) return other
  if (other === 0) return one
  return one === null || other === null ? null : integer(addSymbols(one, other, 1))
}

export function differenceOf(one: Dim, other: Dim): Dim {
  if (other === 0) return one
  return one === null || other === null ? null : integer(addSymbols(one, other, -1))
}

export function productOf(one: Dim, other: Dim): Dim {
  if (one === 1) return other
  if (other === 1) return one
  return one === null || other === null ? null : integer(multiplySymbols(one, other))
}

/** Null where a remainder is possible. */
export function quotientOf(one: Dim, other: Dim): Dim {
  if (other === 1) return one
  return one === null || other === null || other === 0 ? null : integer(divideSymbols(one, other))
}

export function productOfAll(dims: Dims): Dim {
  return dims.reduce(productOf, 1)
}

const integer = (dim: Dim): Dim => (isKnown(dim) && !Number.isSafeInteger(dim) ? null : dim)

/** The shape of operands that are broadcast as in numpy; undefined where they cannot be. */
export function broadcast(shapes: readonly Dims[]): Dims | undefined {
  const rank = Math.max(0, greatest(shapes.map(({ length }) => length)))
  const result: Dim[] = []
  for (let axis = 0; axis < rank; axis++) {
    let number: number | undefined
    let other: Dim | undefined
    for (const shape of shapes) {
      const at = axis - (rank - shape.length)
      const dim = at < 0 ? 1 : shape[at]!
      if (!isKnown(dim)) other = other === undefined || other === dim ? dim : null
      else if (dim !== 1) {
        if (number !== undefined && number !== dim) return undefined
        number = dim
      }
    }
    result.push(number ?? (other === undefined ? 1 : other))
  }
  return result
}

/** What is known of one extent from two sources: a number wins, then the first name; undefined for two numbers. */
export function merged(one: Dim, other: Dim): Dim | undefined {
  if (isKnown(one) && isKnown(other)) return one === other ? one : undefined
  if (isKnown(other)) return other
  return one ?? other
}

/** What holds of both shapes; undefined for different ranks. */
export function commonDims(one: Dims | undefined, other: Dims | undefined): Dims | undefined {
  if (!one || one.length !== other?.length) return undefined
  return one.map((dim, axis) => (dim === other[axis] ? dim : null))
}

/** An axis counted from the end where negative; undefined where the rank has no such axis. */
export function axisOf(axis: number, rank: number): number | undefined {
  const at = axis < 0 ? axis + rank : axis
  return Number.isSafeInteger(at) && at >= 0 && at < rank ? at : undefined
}
