/** Checks lists of one whole number per axis: shapes, paddings, indices. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { MAX_AXES } from './limits.js'

export { MAX_AXES }

/** A frozen copy. @throws TileworkError as `copyExtents` */
export function checkExtents(name: string, extents: readonly number[]): readonly number[] {
  return Object.freeze(copyExtents(name, extents))
}

/**
 * A checked copy of a list of one count per axis.
 *
 * @param name - the list in an error
 * @throws TileworkError ERR_ARGUMENT unless each is a whole number from 0 to 2^53 - 1 and there are at most {@link MAX_AXES}
 */
export function copyExtents(name: string, extents: readonly number[]): number[] {
  if (!Array.isArray(extents)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${name} is ${valueText(extents)}; it must be an array of numbers`,
    )
  }
  // A plain loop, because a file may have a million shapes. Each element is read once, so that a getter cannot return one
  // number to the check and another to the copy.
  const rank = checkRank(name, extents)
  // Allocated with its length: V8 reserves 17 elements for an array that grows, and 4 for `new Array(0)`.
  const copy: number[] = rank === 0 ? [] : new Array(rank)
  for (let axis = 0; axis < rank; axis++) {
    const extent = extents[axis]!
    if (!Number.isSafeInteger(extent) || extent < 0) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${name}[${axis}] is ${valueText(extent)}; it must be a whole number from 0 to 2^53 - 1`,
      )
    }
    copy[axis] = extent
  }
  return copy
}

/**
 * The length of a list of one number per axis, checked before it is iterated or copied.
 *
 * @throws TileworkError ERR_ARGUMENT above {@link MAX_AXES}
 */
export function checkRank(name: string, list: readonly unknown[]): number {
  const { length } = list
  if (length <= MAX_AXES) return length
  throw new TileworkError('ERR_ARGUMENT', `${name} has ${valueText(length)} axes; the limit is ${MAX_AXES}`)
}

/** Padding before and after the elements of each axis. */
export interface Padding {
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
}

const NO_PADDING: Padding = Object.freeze({})

/** Frozen copies of the given counts. @throws TileworkError as `copyExtents` */
export function checkPadding({ lower, upper }: Padding): Padding {
  if (lower === undefined && upper === undefined) return NO_PADDING
  return {
    ...(lower !== undefined && { lower: checkExtents('lower', lower) }),
    ...(upper !== undefined && { upper: checkExtents('upper', upper) }),
  }
}
