/** Splits a tensor along an axis into slices. */
import { checkOptions, readInput } from '../caller_input.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { checkOnlyDense } from './check_tensor.js'
import { type ConcatOptions, resolveAxis } from './concat.js'
import { slice } from './slice.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/** Parts of one split. Each is an object of its own, so a huge number would exhaust memory before any byte is read. */
const MAX_PARTS = 2 ** 20

/**
 * Parts of a dense tensor along one axis, as numpy's `split`. Each is a lazy slice with the tensor's name, element type and layout.
 *
 * @param sections - a number of equal parts, or the indices along the axis at which parts begin, beside the first:
 * `[2, 5]` gives `[0, 2)`, `[2, 5)` and `[5, extent)`. A negative index counts from the end; an index beyond an end is clamped
 * @throws TileworkError at once: ERR_ARGUMENT for a number that does not divide the extent, for indices that are not whole
 * numbers, and for an axis that the tensor lacks; ERR_LIMIT for more than 2^20 parts; as `slice`
 */
export function split<D extends Dtype>(
  tensor: AnyTensor<D>,
  sections: number | readonly number[],
  options?: ConcatOptions,
): DenseTensor<D>[]
export function split(
  tensor: AnyTensor,
  sections: number | readonly number[],
  options: ConcatOptions = {},
): DenseTensor[] {
  const dense = checkOnlyDense(tensor, 'split', 'can be split')
  checkOptions(options, 'split', ['axis'])
  const axis = readInput('The options of split', () => resolveAxis(options.axis ?? 0, dense.shape.length))
  const extent = dense.shape[axis]!
  const cuts = readInput('The sections', () => cutsOf(sections, extent))
  return [0, ...cuts].map((start, part) => {
    const end = cuts[part] ?? extent
    const ranges = dense.shape.map((_, at) => (at === axis ? { start, end: Math.max(start, end) } : null))
    return slice(dense, ranges)
  })
}

function cutsOf(sections: number | readonly number[], extent: number): number[] {
  if (Array.isArray(sections)) {
    checkCount(sections.length + 1)
    return sections.map((index: unknown, at) => {
      if (!Number.isSafeInteger(index)) {
        throw new TileworkError(
          'ERR_ARGUMENT',
          `sections[${at}] is ${valueText(index)}; it must be a whole number.`,
        )
      }
      const position = (index as number) < 0 ? (index as number) + extent : (index as number)
      return Math.min(extent, Math.max(0, position))
    })
  }
  if (!Number.isSafeInteger(sections) || (sections as number) < 1) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `sections is ${valueText(sections)}; it must be a number of parts or a list of indices.`,
    )
  }
  const count = sections as number
  if (extent % count !== 0) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `sections is ${count}, which does not divide the extent ${extent}.`,
    )
  }
  checkCount(count)
  return Array.from({ length: count - 1 }, (_, part) => (extent / count) * (part + 1))
}

function checkCount(count: number): void {
  if (count <= MAX_PARTS) return
  throw new TileworkError('ERR_LIMIT', `split would make ${count} parts; the limit is ${MAX_PARTS}.`)
}
