/** Adds elements of one value around a tensor, lazily. */
import { checkOptions, readInput } from '../caller_input.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { encodeElement } from '../dtype/encode.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { checkOnlyDense } from './check_tensor.js'
import { joined } from './concat.js'
import { ConstantTensor, elementPattern } from './constant.js'
import { asStored, type StoredTensor } from './dense.js'
import { checkShape, sizeOf } from './shape.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/** What `pad` takes for one axis: elements before the first and after the last, or one number for both. */
export type PadWidth = number | readonly [before: number, after: number] | null | undefined

export interface PadOptions {
  /** The value of the new elements, converted to the element type as by `tensor`. Default 0. */
  readonly value?: number | bigint | boolean
}

/**
 * A dense tensor with elements of one value before and after its own, as numpy's `pad` in the mode `constant`. They belong
 * to the shape; padding of the storage alone is an option of `reorder`. Lazy, as `concat`, and with its rule for the layout.
 *
 * @param widths - one entry per axis, outermost first: `[before, after]`, or one number for both ends. `null`, `undefined` and
 * missing entries add nothing
 * @returns shape: the tensor's, with the widths added
 * @throws TileworkError at once: ERR_ARGUMENT for malformed widths and a value that does not fit the element type; ERR_DTYPE for
 * complex types and a value other than 0; ERR_UNSUPPORTED, ERR_NO_DATA, ERR_OVERFLOW
 */
export function pad<D extends Dtype>(
  tensor: AnyTensor<D>,
  widths: readonly PadWidth[],
  options?: PadOptions,
): DenseTensor<D>
export function pad(tensor: AnyTensor, widths: readonly PadWidth[], options: PadOptions = {}): DenseTensor {
  const dense = checkOnlyDense(tensor, 'pad', 'can be padded')
  checkOptions(options, 'pad', ['value'])
  const pairs = readInput('The widths', () => widthsOf(widths, dense.shape.length))
  const value = readInput('The options of pad', () => options.value ?? 0)
  const element = elementOf(dense.dtype, value)
  sizeOf(checkShape(dense.shape.map((extent, axis) => pairs[axis]![0] + extent + pairs[axis]![1])))
  // From the last axis on, so that later parts are whole rows, planes and so on.
  return pairs.reduceRight<StoredTensor>((inner, [before, after], axis) => {
    if (before === 0 && after === 0) return inner
    const around = (extent: number): StoredTensor => {
      const shape = inner.shape.map((own, at) => (at === axis ? extent : own))
      return new ConstantTensor(element, { dtype: dense.dtype, shape, name: dense.name })
    }
    return joined([around(before), inner, around(after)], axis)
  }, asStored(dense))
}

function widthsOf(widths: readonly PadWidth[], rank: number): (readonly [number, number])[] {
  if (!Array.isArray(widths)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `widths is ${valueText(widths)}; it must be a list with one entry per axis.`,
    )
  }
  if (widths.length > rank) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `widths has ${widths.length} entries; the tensor has rank ${rank}.`,
    )
  }
  return Array.from({ length: rank }, (_, axis) => widthOf(widths[axis], `widths[${axis}]`))
}

function widthOf(width: PadWidth, name: string): readonly [number, number] {
  if (width === undefined || width === null) return [0, 0]
  if (!Array.isArray(width)) {
    const both = checkCount(width, name)
    return [both, both]
  }
  if (width.length !== 2) {
    throw new TileworkError('ERR_ARGUMENT', `${name} has ${width.length} entries; a list is [before, after].`)
  }
  const [before, after] = width
  return [checkCount(before, `${name}[0]`), checkCount(after, `${name}[1]`)]
}

function checkCount(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number from 0.`)
}

function elementOf(dtype: Dtype, value: number | bigint | boolean): Uint8Array {
  const { bits, kind } = DTYPES[dtype]
  const element = new Uint8Array(Math.max(1, bits / 8))
  const isZero = value === 0 || value === 0n || value === false
  if (kind !== 'complex' || !isZero) encodeElement(dtype, element, 0, value, { where: () => 'value' })
  return elementPattern(element, dtype)
}
