/** Lists of one whole number an axis: shapes, paddings, indices. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { MAX_AXES } from './limits.js'

export { MAX_AXES }

/** As `copyExtents`, frozen. */
export function checkExtents(name: string, extents: readonly number[]): readonly number[] {
  return Object.freeze(copyExtents(name, extents))
}

/**
 * A copy of a list of one count an axis.
 *
 * @param name - names the list in messages
 * @throws TileworkError ERR_ARGUMENT unless every one is a whole number from 0 to 2^53 - 1, and there are at most
 * {@link MAX_AXES} of them
 */
export function copyExtents(name: string, extents: readonly number[]): number[] {
  if (!Array.isArray(extents)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${name} must be an array of numbers; it is ${valueText(extents)}.`,
    )
  }
  // Plain loops here: shapes are checked once a tensor, and files may have a million of them. Each extent is read
  // once, so that a getter cannot give one number to the check and another to the copy.
  const copy: number[] = []
  const rank = checkRank(name, extents)
  for (let axis = 0; axis < rank; axis++) {
    const extent = extents[axis]!
    if (!Number.isSafeInteger(extent) || extent < 0) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `${name}[${axis}] is ${valueText(extent)}; it must be a whole number from 0 to 2^53 - 1.`,
      )
    }
    copy.push(extent)
  }
  return copy
}

/**
 * The length of a list of one number an axis, before anybody walks over it or copies it.
 *
 * @throws TileworkError ERR_ARGUMENT above {@link MAX_AXES}
 */
export function checkRank(name: string, list: readonly unknown[]): number {
  const { length } = list
  if (length <= MAX_AXES) return length
  throw new TileworkError('ERR_ARGUMENT', `${name} has ${valueText(length)} axes; the limit is ${MAX_AXES}.`)
}

/** Padding before and after the elements of each axis. */
export interface Padding {
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
}

/** Frozen copies of what is given of a padding. @throws TileworkError ERR_ARGUMENT, as `copyExtents` */
export function checkPadding({ lower, upper }: Padding): Padding {
  return {
    ...(lower !== undefined && { lower: checkExtents('lower', lower) }),
    ...(upper !== undefined && { upper: checkExtents('upper', upper) }),
  }
}
