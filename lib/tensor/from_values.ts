/** Makes tensors in memory from JavaScript values: numbers, strings, nested arrays, typed arrays. */
import { MemorySource } from '../bytes/memory.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { type CanonicalDtype, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { encodeAll, encodeElement } from '../dtype/encode.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { StoredTensor } from './dense.js'
import { checkShape, MAX_AXES, sizeExactOf, sizeOf } from './shape.js'
import { stringTensor } from './string_list.js'
import type { DenseTensor, StringTensor } from './tensor.js'
import { type DtypeOfArray, dtypeOfTypedArray } from './typed_array_dtype.js'

/** One element, or nested arrays of elements that form a regular shape. */
export type NestedValues = number | bigint | boolean | readonly NestedValues[]

/** One string, or nested arrays of strings that form a regular shape. */
export type NestedStrings = string | readonly NestedStrings[]

export interface TensorOptions<Name extends DtypeName = DtypeName> {
  /** Element type. Default for a typed array: its own; required for other values. */
  readonly dtype?: Name
  /** Shape, for a flat list of values. Default: the nesting of the arrays. */
  readonly shape?: readonly number[]
  readonly name?: string
}

/**
 * A tensor of `values`, converted to the element type: floats are rounded to nearest even (8-bit floats
 * saturate), integers must fit. A typed array that has the element type already is borrowed, not copied: the tensor reads its memory
 * whenever it is read, so a change of the array is a change of the tensor. Pass a copy, `values.slice()`, to keep them apart. All
 * other values are copied. The dtype `string` takes strings, and gives a string tensor.
 *
 * @returns shape: `options.shape`, else the nesting of the arrays
 * @throws TileworkError ERR_ARGUMENT with the index of a value that does not fit or of a ragged row, for more than 255 nested
 * arrays, and for a shape of another size; ERR_DTYPE for complex types; ERR_OVERFLOW, ERR_VIEW_TOO_LARGE and ERR_LIMIT for more
 * values than memory can hold
 */
export function tensor(
  values: NestedStrings,
  options: TensorOptions & { readonly dtype: 'string' },
): StringTensor
export function tensor<Name extends Exclude<DtypeName, 'string'>>(
  values: NestedValues | ArrayBufferView,
  options: TensorOptions<Name> & { readonly dtype: Name },
): DenseTensor<CanonicalDtype<Name>>
export function tensor<Values extends ArrayBufferView>(
  values: Values,
  options?: Omit<TensorOptions, 'dtype'>,
): DenseTensor<DtypeOfArray<Values>>
export function tensor(values: NestedValues | ArrayBufferView, options?: TensorOptions): DenseTensor
export function tensor(
  values: NestedValues | NestedStrings | ArrayBufferView,
  options: TensorOptions = {},
): DenseTensor | StringTensor {
  checkOptions(options, 'tensor', ['dtype', 'shape', 'name'])
  const asked = readInput('The options of tensor', () => readOptions(options))
  const dtype = asked.dtype === undefined ? ownDtype(values) : resolveDtype(asked.dtype)
  const nesting = readInput('The values', () => nestingOf(values))
  const shape = asked.shape ?? nesting
  checkFill(shape, nesting)
  if (dtype === 'string') {
    const strings = readInput('The values', () => stringsOf(values, nesting))
    return stringTensor(strings, { shape, name: asked.name })
  }
  const bytes = readInput('The values', () =>
    ArrayBuffer.isView(values)
      ? encodeView(dtype, values)
      : encodeNested(dtype, values as NestedValues, nesting),
  )
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, name: asked.name })
}

/** Strings of one tensor: each takes at least some 30 bytes in Node, so more would exhaust memory (CWE-770). */
const MAX_STRINGS = 2 ** 27

function readOptions({ dtype, shape, name = '' }: TensorOptions): {
  dtype: unknown
  shape: readonly number[] | undefined
  name: string
} {
  return { dtype, shape: shape === undefined ? undefined : checkShape(shape), name: checkName(name) }
}

function ownDtype(values: unknown): Dtype {
  const dtype = dtypeOfTypedArray(values)
  if (dtype !== undefined) return dtype
  const message = 'A dtype is needed unless the values are a typed array that has one.'
  throw new TileworkError('ERR_ARGUMENT', message)
}

function checkFill(shape: readonly number[], nesting: readonly number[]): void {
  const needed = sizeExactOf(shape)
  const given = sizeExactOf(nesting)
  if (needed !== given) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${given} values were given; the shape [${shape}] has ${needed} elements.`,
    )
  }
  // A flat list may take any shape; nested arrays have one already.
  if (nesting.length > 1 && nesting.join() !== shape.join()) {
    throw new TileworkError('ERR_ARGUMENT', `the arrays have the shape [${nesting}]; shape is [${shape}].`)
  }
}

/** The shape of nested arrays, by the first entry of each depth. */
function nestingOf(values: unknown): readonly number[] {
  if (ArrayBuffer.isView(values)) {
    // Throws for an array on a detached buffer, which looks empty.
    bytesOfView(values, 'the values')
    const { length } = values as unknown as ArrayLike<unknown>
    if (typeof length === 'number') return checkShape([length])
    throw new TileworkError('ERR_ARGUMENT', 'a DataView has no elements; pass a typed array.')
  }
  const shape: number[] = []
  for (let level: unknown = values; Array.isArray(level); level = level[0]) {
    // An array that contains itself nests without end.
    if (shape.length === MAX_AXES) {
      throw new TileworkError('ERR_ARGUMENT', `the arrays are nested deeper than the limit of ${MAX_AXES}.`)
    }
    shape.push(level.length)
  }
  return checkShape(shape)
}

function encodeView(dtype: Dtype, values: ArrayBufferView): Uint8Array {
  if (dtypeOfTypedArray(values) !== dtype) {
    const list = values as unknown as ArrayLike<unknown>
    return encodeAll(dtype, list, { name: (index) => `values[${index}]` })
  }
  return bytesOfView(values, 'the values')
}

/**
 * Encodes value by value into memory that was allocated for all of them first: a few arrays that contain each other repeatedly
 * denote more values than any memory holds, and must fail before work starts.
 */
function encodeNested(dtype: Dtype, values: NestedValues, shape: readonly number[]): Uint8Array {
  const bytes = allocateBytes(packedByteLength(dtype, sizeOf(shape)))
  let element = 0
  eachValue(values, shape, (value, where) => encodeElement(dtype, bytes, element++, value, { where }))
  return bytes
}

function stringsOf(values: unknown, shape: readonly number[]): readonly string[] {
  if (sizeOf(shape) > MAX_STRINGS) {
    throw new TileworkError('ERR_LIMIT', `${sizeOf(shape)} strings were given; the limit is ${MAX_STRINGS}.`)
  }
  const strings: string[] = []
  eachValue(values, shape, (value, where) => {
    if (typeof value !== 'string') {
      throw new TileworkError('ERR_ARGUMENT', `${where()} is ${valueText(value)}; it must be a string.`)
    }
    strings.push(value)
  })
  return strings
}

/** Calls `take` with each value in row-major order. @param take - `where()` is the value's path, for example `values[2][0]` */
function eachValue(
  values: unknown,
  shape: readonly number[],
  take: (value: unknown, where: () => string) => void,
): void {
  const index: number[] = []
  const where = (): string => pathText(index)
  const visit = (level: unknown): void => {
    const extent = shape[index.length]
    if (extent === undefined) {
      if (Array.isArray(level)) throw ragged(index, `an array of ${level.length}`, 'a value')
      take(level, where)
      return
    }
    if (!Array.isArray(level)) throw ragged(index, valueText(level), `an array of ${extent}`)
    if (level.length !== extent) throw ragged(index, `an array of ${level.length}`, `an array of ${extent}`)
    // Not forEach, which skips the holes of a sparse array; a hole is a missing value.
    for (let at = 0; at < extent; at++) {
      index.push(at)
      visit(level[at])
      index.pop()
    }
  }
  visit(values)
}

function ragged(index: readonly number[], found: string, expected: string): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `${pathText(index)} is ${found}; its neighbours require ${expected}.`,
  )
}

/** For example `values[2][0]`. */
function pathText(index: readonly number[]): string {
  return `values${index.map((at) => `[${at}]`).join('')}`
}
