/** Shapes: what may be one, and how many elements it has. */
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
  // A product of extents above 0 that ends below 2^53 was exact at every step. Zeros take the exact way, because
  // an extent before them may have passed that bound.
  if (product <= Number.MAX_SAFE_INTEGER && product > 0) return product
  const exact = sizeExactOf(shape)
  if (exact <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(exact)
  throw new TileworkError(
    'ERR_OVERFLOW',
    `The tensor has ${shortNumber(exact)} elements; a number is exact up to 2^53 - 1.`,
  )
}

/** All digits, or the order of magnitude where they would fill a page. */
function shortNumber(value: bigint): string {
  const digits = value.toString()
  return digits.length > 40 ? `about 10^${digits.length - 1}` : digits
}

/** @throws TileworkError ERR_RANGE for a wrong number of indices, a negative one, or one beyond its extent */
export function checkIndex(shape: readonly number[], index: readonly number[]): void {
  if (index.length !== shape.length) {
    throw new TileworkError('ERR_RANGE', `${index.length} indices were given for ${shape.length} axes.`)
  }
  for (const [axis, at] of index.entries()) {
    if (!Number.isInteger(at) || at < 0 || at >= shape[axis]!) {
      throw new TileworkError(
        'ERR_RANGE',
        `Index ${valueText(at)} of axis ${axis} lies outside 0 to ${shape[axis]! - 1}.`,
      )
    }
  }
}
