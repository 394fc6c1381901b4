/** The offset of every element of a shape, in logical row-major order. */
import { type Layout, type StorageOptions, TileworkError } from '../../index.js'

/** Maximum length of the list: 10 MB of JSON and a few seconds. Programs compute larger tables with the library. */
export const MAX_OFFSETS = 1_000_000

/**
 * Offsets in elements (nibbles for 4-bit types), the last axis of `shape` fastest.
 *
 * @throws TileworkError ERR_LIMIT above {@link MAX_OFFSETS} elements, and what `Layout.offsetOf` throws
 */
export function listOffsets(layout: Layout, shape: readonly number[], options: StorageOptions): number[] {
  checkElements(shape)
  const offsets: number[] = []
  for (const index of coordinates(shape)) offsets.push(layout.offsetOf(shape, index, options))
  return offsets
}

function checkElements(shape: readonly number[]): void {
  // Zeros are tested first: the list is empty, although the product of the other dimensions may exceed the exact range.
  if (shape.includes(0)) return
  const elements = shape.reduce((product, extent) => product * extent, 1)
  if (elements <= MAX_OFFSETS) return
  throw new TileworkError(
    'ERR_LIMIT',
    `The shape [${shape.join(', ')}] has ${elements} elements; --offsets lists at most ${MAX_OFFSETS}.`,
  )
}

/** Every coordinate in row-major order; the array is reused. One empty coordinate for a scalar. */
export function* coordinates(shape: readonly number[]): Generator<readonly number[]> {
  if (shape.includes(0)) return
  const index = shape.map(() => 0)
  for (;;) {
    yield index
    let axis = shape.length - 1
    while (axis >= 0 && index[axis] === shape[axis]! - 1) index[axis--] = 0
    if (axis < 0) return
    index[axis]!++
  }
}
