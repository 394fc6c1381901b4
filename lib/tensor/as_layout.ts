/** Declares the layout of stored bytes: formats that cannot name a layout store a blocked tensor as a plain array. */

import { checkOptions, readInput } from '../caller_input.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { checkPadding } from '../layout/extents.js'
import type { Digit, Layout } from '../layout/layout.js'
import { type AnyLayoutName, toLayout } from '../layout/parse_layout.js'
import { checkDense } from './check_tensor.js'
import { asStored, StoredTensor } from './dense.js'
import { checkShape } from './shape.js'
import type { DenseTensor } from './tensor.js'

export interface AsLayoutOptions {
  /** Explicit padding before the first element, one count per axis. */
  readonly lower?: readonly number[]
  /** Explicit padding after the last element, one count per axis. */
  readonly upper?: readonly number[]
}

/**
 * The same storage bytes as a tensor of `shape` in `layout`. Nothing is read or moved.
 *
 * @param stored - a row-major tensor with as many elements as the layout stores for the shape, in any shape
 * @param shape - logical extents, slowest axis first
 * @throws TileworkError ERR_LAYOUT_SHAPE when the element counts differ or `stored` is not row-major;
 * ERR_LAYOUT_NAME, ERR_ARGUMENT, ERR_OVERFLOW
 */
export function asLayout<D extends Dtype>(
  stored: DenseTensor<D>,
  layout: AnyLayoutName | Layout,
  shape: readonly number[],
  options?: AsLayoutOptions,
): DenseTensor<D>
export function asLayout(
  stored: DenseTensor,
  layout: AnyLayoutName | Layout,
  shape: readonly number[],
  options: AsLayoutOptions = {},
): DenseTensor {
  const parsed = toLayout(layout)
  checkDense(stored, 'asLayout')
  checkOptions(options, 'asLayout', ['lower', 'upper'])
  const padding = readInput('The options of asLayout', () => checkPadding(options))
  if (stored.storage.layout !== 'row_major') {
    throw new TileworkError(
      'ERR_LAYOUT_SHAPE',
      `tensor "${stored.name}" has the layout ${stored.storage.layout}; asLayout takes row_major tensors.`,
    )
  }
  const extents = readInput('The shape', () => checkShape(shape))
  const { elements, digits } = parsed.storage(extents, { dtype: stored.dtype, ...padding })
  if (elements !== stored.storage.elements) {
    throw new TileworkError(
      'ERR_LAYOUT_SHAPE',
      `${parsed.name} stores ${elements} elements for the shape [${extents}]; tensor "${stored.name}" has ${stored.storage.elements}.`,
    )
  }
  warnOfShape(parsed, stored.shape, extents, digits)
  const { source, start } = asStored(stored)
  const { name, dtype, metadata, doc } = stored
  const about = { name, dtype, metadata, ...(doc !== undefined && { doc }) }
  return new StoredTensor({ source, start, shape: extents, layout: parsed, ...padding, ...about })
}

let hasWarned = false

/** The shape that the elements have in memory, given as the logical one, scrambles them without an error. */
function warnOfShape(
  { name, axes }: Layout,
  stored: readonly number[],
  shape: readonly number[],
  digits: readonly Digit[] = [],
): void {
  const isPermuted = digits.length === shape.length && digits.every(({ axes }) => axes.length === 1)
  if (hasWarned || !isPermuted || stored.join() !== shape.join()) return
  const inMemory = digits.map(({ radix }) => radix)
  const long = (extents: readonly number[]): string => extents.filter((extent) => extent !== 1).join()
  if (long(inMemory) === long(stored)) return
  hasWarned = true
  const logical = digits.map((_, axis) => stored[digits.findIndex(({ positions }) => positions[0] === axis)])
  process.emitWarning(
    `asLayout takes the shape in the order of the axes, ${axes}, whatever the layout: [${shape}] in ${name} is an array of [${inMemory}]. For an array of [${stored}] it is [${logical}].`,
    { code: 'TILEWORK_LAYOUT_SHAPE' },
  )
}
