/** Checks shapes and indices, and counts elements. */
import { TileworkError } from '../errors.js'
import { checkExtents, MAX_AXES } from '../layout/extents.js'
import { valueText } from '../value_text.js'

export { MAX_AXES }

/**
 * A frozen copy of `shape`.
 *
 * @throws TileworkError ERR_ARGUMENT unless every extent is a whole number from 0 to 2^53 - 1, and there are at most
 * {@link MAX_AXES} of them
 */
export function checkShape(shape: readonly number[]): readonly number[] {
  return checkExtents('shape', shape)
}

/** Number of elements, exact. */
export function sizeExactOf(shape: readonly number[]): bigint {
  return shape.reduce((product, extent) => product * BigInt(extent), 1n)
}

/** Number of elements. @throws TileworkError ERR_OVERFLOW above 2^53 - 1, with the exact number */
export function sizeOf(shape: readonly number[]): number {
  let product = 1
  for (const extent of shape) product *= extent
  // Extents of at least 1 whose product ends below 2^53 were exact at every step. With a zero among them, an intermediate
  // product may have exceeded that bound.
  if (product <= Number.MAX_SAFE_INTEGER && product > 0) return product
  const exact = sizeExactOf(shape)
  if (exact <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(exact)
  throw new TileworkError(
    'ERR_OVERFLOW',
    `the shape has ${shortNumber(exact)} elements; the limit is 2^53 - 1.`,
  )
}

/** All digits, or the order of magnitude where there are more than 40. */
function shortNumber(value: bigint): string {
  const digits = value.toString()
  return digits.length > 40 ? `about 10^${digits.length - 1}` : digits
}

/** @throws TileworkError ERR_RANGE for a wrong number of indices, a negative one, or one beyond its extent */
export function checkIndex(shape: readonly number[], index: readonly number[]): void {
  if (index.length !== shape.length) {
    throw new TileworkError(
      'ERR_RANGE',
      `${index.length} indices were given; the tensor has ${shape.length} axes.`,
    )
  }
  for (const [axis, at] of index.entries()) {
    if (!Number.isInteger(at) || at < 0 || at >= shape[axis]!) {
      throw new TileworkError(
        'ERR_RANGE',
        `index ${valueText(at)} of axis ${axis} is out of range; the extent is ${shape[axis]}.`,
      )
    }
  }
}
