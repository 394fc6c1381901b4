/** Values of small tensors: typed arrays where every element is known, dimensions where some are symbolic or unknown. */
import { decodeAll, decodeFloatCode } from '../../../dtype/decode.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { encodeFloatCode } from '../../../dtype/encode.js'
import { asStored } from '../../../tensor/dense.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import { isPlain } from '../../../tensor/plain_storage.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { type Dim, type Dims, isKnown } from './dims.js'

/** The array that holds the elements of each dtype. Floats of 16 bits are float32 with values that the dtype holds. */
export const ARRAYS = {
  ...{ float16: Float32Array, bfloat16: Float32Array, float32: Float32Array, float64: Float64Array },
  ...{ int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array },
  ...{
    uint8: Uint8Array,
    uint16: Uint16Array,
    uint32: Uint32Array,
    uint64: BigUint64Array,
    bool: Uint8Array,
  },
} as const

/** The dtypes of which elements are computed. */
export type ValueDtype = keyof typeof ARRAYS

export function isValueDtype(dtype: Dtype | number | undefined): dtype is ValueDtype {
  return typeof dtype === 'string' && Object.hasOwn(ARRAYS, dtype)
}

export type NumberArray =
  | (Float32Array | Float64Array)
  | (Int8Array | Int16Array | Int32Array)
  | (Uint8Array | Uint16Array | Uint32Array)
export type BigIntArray = BigInt64Array | BigUint64Array
export type KnownElements = NumberArray | BigIntArray
/** In row-major order. A list of dimensions where not all elements are numbers. */
export type Elements = KnownElements | Dims

/** Longest list that is followed where elements are symbolic or unknown, or describe a shape: shapes have at most 255 axes. */
export const MAX_SHAPE_VALUES = 256

/** Whether elements are bigints. */
export function isBig(dtype: ValueDtype): boolean {
  return dtype === 'int64' || dtype === 'uint64'
}

/** An array in which each element is that of a function: integers wrap, and floats are rounded once. */
export function filled(
  dtype: ValueDtype,
  count: number,
  valueAt: (at: number) => number | bigint,
): KnownElements {
  const elements = new ARRAYS[dtype](count)
  const slots = elements as { [at: number]: number | bigint }
  if (dtype === 'float16' || dtype === 'bfloat16')
    for (let at = 0; at < count; at++) slots[at] = roundedTo(dtype, valueAt(at) as number)
  else for (let at = 0; at < count; at++) slots[at] = valueAt(at)
  return elements
}

function roundedTo(dtype: 'float16' | 'bfloat16', value: number): number {
  return decodeFloatCode(dtype, encodeFloatCode(dtype, value))
}

export function hasNegativeZero(elements: KnownElements): boolean {
  return (elements as NumberArray).some((element) => Object.is(element, -0))
}

export function isPartial(elements: Elements): elements is Dims {
  return Array.isArray(elements)
}

/** A tensor whose elements are known, at least in part. They are read at the first use. */
export class Value {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  #read: (() => Elements | undefined) | undefined
  #elements: Elements | undefined
  #list: Dims | undefined | 'unread' = 'unread'

  /** @param elements - as many as `shape` has, or a function that reads them; undefined where they cannot be read */
  constructor(dtype: Dtype, shape: readonly number[], elements: Elements | (() => Elements | undefined)) {
    this.dtype = dtype
    this.shape = shape
    if (typeof elements === 'function') this.#read = elements
    else this.#elements = elements
  }

  /** Elements that are numbers become a typed array; undefined where they are of a dtype that is not followed. */
  static ofDims(dtype: Dtype, shape: readonly number[], dims: Dims): Value | undefined {
    const holds = HOLDS.get(dtype)
    if (!holds || !isValueDtype(dtype) || dims.length > MAX_SHAPE_VALUES) return undefined
    const held = dims.map((dim) => (!isKnown(dim) || holds(dim) ? dim : null))
    if (!held.every(isKnown)) return new Value(dtype, shape, held)
    const elements =
      dtype === 'int64' ? BigInt64Array.from(held, BigInt) : ARRAYS[dtype as 'int32'].from(held)
    return new Value(dtype, shape, elements)
  }

  /** Product of the shape. */
  get size(): number {
    return this.shape.reduce((product, extent) => product * extent, 1)
  }

  get elements(): Elements | undefined {
    if (this.#read) this.#elements = this.#read()
    this.#read = undefined
    return this.#elements
  }

  /** Whether an element is symbolic or unknown. */
  get isPartial(): boolean {
    const { elements } = this
    return elements === undefined || isPartial(elements)
  }

  /** The elements of a short list, or of a scalar; integers that a double does not hold exactly are null. */
  get list(): Dims | undefined {
    if (this.#list === 'unread') {
      const isShort = this.shape.length < 2 && this.size <= MAX_SHAPE_VALUES
      const elements = isShort ? this.elements : undefined
      this.#list = elements && dimsOf(elements)
    }
    return this.#list
  }

  /** Undefined where an element is not known. */
  toTensor(): DenseTensor | undefined {
    const { dtype, shape, elements } = this
    return this.isPartial ? undefined : tensorOf(elements as KnownElements, { shape, dtype: dtype as 'int8' })
  }
}

/** Elements as dimensions; an integer that a double does not hold exactly is unknown. */
export function dimsOf(elements: Elements): Dims {
  return isPartial(elements) ? elements : Array.from(elements as ArrayLike<number | bigint>, dimOf)
}

function dimOf(element: Dim | bigint): Dim {
  if (typeof element !== 'bigint') return element
  const value = Number(element)
  return Number.isSafeInteger(value) ? value : null
}

/** Whether a dtype of which symbolic elements are followed holds a number. */
const HOLDS: ReadonlyMap<Dtype, (value: number) => boolean> = new Map<Dtype, (value: number) => boolean>([
  ['bool', (value) => value === 0 || value === 1],
  ['int32', (value) => value === (value | 0)],
  ['int64', Number.isSafeInteger],
  ['float32', (value) => Number.isFinite(value) && value === Math.fround(value)],
  ['float64', Number.isFinite],
])

/**
 * The elements of a tensor in row-major order; undefined for bool other than 0 and 1, which has no meaning that engines agree
 * on.
 *
 * @throws TileworkError errors of reading, ERR_ASYNC_ONLY for a source without synchronous reads
 */
export function elementsOf(tensor: DenseTensor): KnownElements | undefined {
  const { dtype, size } = tensor
  const plain = isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major')
  const elements = decodeAll(dtype, asStored(plain).bytesSync(), size) as KnownElements
  return dtype === 'bool' && (elements as Uint8Array).some((element) => element > 1) ? undefined : elements
}
