/** Makes a tensor in memory from JavaScript values: numbers, nested arrays, typed arrays. */
import { MemorySource } from '../bytes/memory.js'
import { type Dtype, isDtype } from '../dtype/dtypes.js'
import { encodeAll } from '../dtype/encode.js'
import { TileworkError } from '../errors.js'
import { StoredTensor } from './dense.js'
import { checkShape, sizeExactOf } from './shape.js'
import type { DenseTensor } from './tensor.js'
import { dtypeOfTypedArray } from './typed_array_dtype.js'

/** One element, or arrays of them nested to any depth, all of one shape. */
export type NestedValues = number | bigint | boolean | readonly NestedValues[]

export interface TensorOptions {
  /** Element type. May be left out for a typed array, whose own is then taken. */
  readonly dtype?: Dtype
  /** Shape, for a flat list of values. Default: the nesting of the arrays. */
  readonly shape?: readonly number[]
  readonly name?: string
}

/**
 * A tensor that owns a copy of `values`. Values are converted: floats are rounded to nearest even (saturating for
 * 8-bit floats), integers must fit.
 *
 * @throws TileworkError ERR_ARGUMENT naming the index of a value that does not fit, of a ragged row, or for a shape
 * that the number of values does not fill; ERR_DTYPE for complex and string types
 */
export function tensor(values: NestedValues | ArrayBufferView, options: TensorOptions = {}): DenseTensor {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TileworkError('ERR_ARGUMENT', 'The second argument of tensor is { dtype, shape, name }.')
  }
  const { name = '' } = options
  const dtype = options.dtype ?? dtypeOfTypedArray(values)
  if (!isDtype(dtype)) throw missingDtype(dtype)
  const { flat, shape: nesting } = flatten(values)
  const shape = checkShape(options.shape ?? nesting)
  checkFill(shape, nesting, flat.length)
  const nameOf = (index: number): string => `values${indexText(index, nesting)}`
  const bytes = encodeAll(dtype, flat, { name: nameOf })
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, name })
}

function missingDtype(dtype: unknown): TileworkError {
  if (dtype !== undefined) {
    return new TileworkError('ERR_DTYPE', `${String(dtype)} is no known element type.`)
  }
  return new TileworkError(
    'ERR_ARGUMENT',
    'A dtype is needed unless the values are a typed array that has one.',
  )
}

function checkFill(shape: readonly number[], nesting: readonly number[], count: number): void {
  const needed = sizeExactOf(shape)
  if (needed !== BigInt(count)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The shape [${shape}] has ${needed} elements and ${count} values were given.`,
    )
  }
  // A flat list may take any shape; rows that say their shape must not be read as another by accident.
  if (nesting.length > 1 && nesting.join() !== shape.join()) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The arrays have the shape [${nesting}] and [${shape}] was asked for.`,
    )
  }
}

function flatten(values: NestedValues | ArrayBufferView): { flat: ArrayLike<unknown>; shape: number[] } {
  if (ArrayBuffer.isView(values)) {
    const { length } = values as unknown as ArrayLike<unknown>
    if (typeof length === 'number') return { flat: values as unknown as ArrayLike<unknown>, shape: [length] }
    throw new TileworkError('ERR_ARGUMENT', 'A DataView has no elements; pass a typed array.')
  }
  const shape: number[] = []
  for (let level: unknown = values; Array.isArray(level); level = level[0]) shape.push(level.length)
  const flat: unknown[] = []
  collect(values, shape, [], flat)
  return { flat, shape }
}

function collect(values: unknown, shape: readonly number[], index: number[], flat: unknown[]): void {
  const axis = index.length
  if (axis === shape.length) {
    if (Array.isArray(values)) throw ragged(index, `an array of ${values.length}`, 'a value')
    flat.push(values)
    return
  }
  if (!Array.isArray(values)) throw ragged(index, typeof values, `an array of ${shape[axis]}`)
  if (values.length !== shape[axis]) {
    throw ragged(index, `an array of ${values.length}`, `an array of ${shape[axis]}`)
  }
  // Not forEach: it skips the holes of a sparse array, which must be refused like any other missing value.
  for (let i = 0; i < values.length; i++) {
    index.push(i)
    collect(values[i], shape, index, flat)
    index.pop()
  }
}

function ragged(index: readonly number[], found: string, expected: string): TileworkError {
  const where = `values${index.map((at) => `[${at}]`).join('')}`
  return new TileworkError('ERR_ARGUMENT', `${where} is ${found} and its neighbours make it ${expected}.`)
}

/** `[2][0]` for a position in row-major order. */
function indexText(position: number, shape: readonly number[]): string {
  let rest = position
  const parts: string[] = []
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    parts.unshift(`[${rest % shape[axis]!}]`)
    rest = Math.floor(rest / shape[axis]!)
  }
  return parts.join('')
}
