/**
 * A dense tensor as a range of a source: element type, shape, layout and start offset. Constructing one reads nothing; its
 * bytes are read on demand and never cached.
 */

import { asyncOnlyError, checkRange, checkReturned } from '../bytes/check_range.js'
import { fillMemory, fillMemorySync, readInto } from '../bytes/fill_memory.js'
import type { ByteRange, ByteSource } from '../bytes/source.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { checkViewLength, unfilledBytes } from '../bytes/view_limit.js'
import { checkOptions, isInstance, readInput } from '../caller_input.js'
import type { CastStep } from '../dtype/cast_step.js'
import { decodeAll, decodeCodes, decodeElement, typedArrayFor } from '../dtype/decode.js'
import { DTYPES, type Dtype, isNarrowFloat, resolveDtype } from '../dtype/dtypes.js'
import { type Float16Numbers, float16Array } from '../dtype/float16_array.js'
import { packedByteLength, placeOf } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import type { Padding } from '../layout/extents.js'
import type { Layout } from '../layout/layout.js'
import { type AnyLayoutName, parseLayout } from '../layout/parse_layout.js'
import { joinLayouts, type PlacedLayout } from '../layout/plan.js'
import { valueText } from '../value_text.js'
import { BaseTensor, NO_METADATA } from './base_tensor.js'
import { FusedSource } from './fused_source.js'
import { isPadded } from './plain_storage.js'
import type { QuantizationParameters } from './quantization.js'
import { checkIndex, checkShape, sizeOf } from './shape.js'
import type { BitsOptions, DenseStorage, DenseTensor, TypedArray, TypedArrayOptions } from './tensor.js'

/** Where a tensor's storage is, and what it means. */
export interface StoredTensorInit {
  readonly source: ByteSource
  /** Byte offset of the first storage byte in `source`. */
  readonly start: number
  readonly dtype: Dtype
  /** Logical extents, slowest axis first. */
  readonly shape: readonly number[]
  readonly name?: string
  /** Layout of the storage; `row_major` by default. */
  readonly layout?: string | Layout
  /** Explicit padding, one count per axis of `shape`; for data layouts and row_major. */
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
  /** The storage that these describe, where the caller has bound the layout already; `shape` is checked and frozen then. */
  readonly storage?: DenseStorage
  readonly doc?: string | undefined
  readonly metadata?: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
}

/** The wider type for elements that no typed array of every supported Node holds. The conversion is exact. */
const UNPACKED_AS: Partial<Record<Dtype, Dtype>> = Object.fromEntries(
  Object.values(DTYPES).flatMap(({ name, bits, kind }): [Dtype, Dtype][] => {
    if (isNarrowFloat(name)) return [[name, 'float32']]
    if (bits >= 8 || (kind !== 'int' && kind !== 'uint')) return []
    return [[name, kind === 'int' ? 'int8' : 'uint8']]
  }),
)

/** Number of elements from which a cast by the addon is faster than a loop in JavaScript. */
const MIN_NATIVE_ELEMENTS = 4096

function exactCast(from: Dtype, to: Dtype): CastStep {
  return { from, to, mode: 'spec', saturate: true, round: 'up' }
}

const NO_COUNTS: readonly number[] = Object.freeze([])
const NO_PADDING: Padding = Object.freeze({})

export class StoredTensor extends BaseTensor implements DenseTensor {
  readonly kind = 'dense'
  readonly hasData: boolean = true
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
  /** The source that holds the storage. */
  readonly source: ByteSource
  /** Byte offset of the storage in `source`. */
  readonly start: number
  /** Undefined for row-major storage without padding, whose offsets need no layout. */
  readonly #layout: Layout | undefined
  readonly #lower: readonly number[]
  readonly #upper: readonly number[]
  #storage: DenseStorage | undefined

  /**
   * @throws TileworkError ERR_DTYPE, ERR_ARGUMENT, ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_OVERFLOW; ERR_RANGE when the storage
   * does not lie inside the source
   */
  constructor(init: StoredTensorInit) {
    super()
    this.dtype = checkFixedSize(init.dtype)
    this.shape = init.storage === undefined ? checkShape(init.shape) : init.shape
    this.name = init.name ?? ''
    if (init.doc !== undefined) this.doc = init.doc
    this.metadata = init.metadata ?? NO_METADATA
    if (init.quantization !== undefined) this.quantization = init.quantization
    this.source = init.source
    this.start = init.start
    const layout = typeof init.layout === 'string' ? parseLayout(init.layout) : init.layout
    this.#lower = init.lower ?? NO_COUNTS
    this.#upper = init.upper ?? NO_COUNTS
    const placed = layout ?? parseLayout('row_major')
    this.#layout =
      placed.kind === 'row_major' && !isPadded({ lower: this.#lower, upper: this.#upper })
        ? undefined
        : placed
    this.#storage = init.storage
    // Of most tensors of a large file nobody asks for the storage, so it is not made yet.
    const byteLength =
      this.#layout || this.#storage
        ? this.storage.byteLength
        : packedByteLength(this.dtype, sizeOf(this.shape))
    if (init.start + byteLength > init.source.byteLength) {
      throw new TileworkError(
        'ERR_RANGE',
        `the tensor needs ${byteLength} bytes at offset ${init.start}; the source has ${init.source.byteLength}.`,
      )
    }
  }

  get storage(): DenseStorage {
    this.#storage ??= this.#describeStorage()
    return this.#storage
  }

  /** The layout by name with its padding, as a side of a reorder. */
  get placement(): PlacedLayout {
    return { layout: this.storage.layout as AnyLayoutName, ...this.#padding() }
  }

  async bytes(range?: ByteRange): Promise<Uint8Array> {
    const { start, end } = this.#locate(range)
    const { source } = this
    return source.view?.(start, end) ?? source.read(start, end)
  }

  bytesSync(range?: ByteRange): Uint8Array {
    const { start, end } = this.#locate(range)
    const { source } = this
    const viewed = source.view?.(start, end)
    if (viewed) return viewed
    if (!source.readSync) throw asyncOnlyError(source.label)
    return source.readSync(start, end)
  }

  async copyTo(target: Uint8Array, options: CopyOptions = {}): Promise<void> {
    const range = this.#locate(rangeFor(target, options))
    await fillMemory(this.source, range.start, target)
  }

  copyToSync(target: Uint8Array, options: CopyOptions = {}): void {
    const range = this.#locate(rangeFor(target, options))
    fillMemorySync(this.source, range.start, target)
  }

  toTypedArray(): Promise<TypedArray>
  toTypedArray(options: TypedArrayOptions): Promise<TypedArray | Float16Numbers>
  async toTypedArray(options: TypedArrayOptions = {}): Promise<TypedArray | Float16Numbers> {
    checkOptions(options, 'toTypedArray', ['float16Array', 'out'])
    const { asFloat16, out } = readInput('The options of toTypedArray', () => ({
      asFloat16: options.float16Array === true,
      out: options.out,
    }))
    if (asFloat16 && this.dtype === 'float16') {
      // Throws on runtimes without Float16Array before anything is read.
      return this.#fill(out, (count) => float16Array(unfilledBytes(2 * count).buffer))
    }
    const unpacked = UNPACKED_AS[this.dtype]
    if (unpacked && out === undefined && this.size < MIN_NATIVE_ELEMENTS) {
      return decodeAll(this.dtype, await this.#rowMajorBytes(), this.size)
    }
    const step = unpacked && exactCast(this.dtype, unpacked)
    return this.#fill(out, (count) => typedArrayFor(unpacked ?? this.dtype, count)!, step)
  }

  async bits(options: BitsOptions = {}): Promise<Uint8Array | Uint16Array> {
    checkOptions(options, 'bits', ['out'])
    const out = readInput('The options of bits', () => options.out)
    // Throws for a wrong dtype before anything is read.
    const none = decodeCodes(this.dtype, new Uint8Array(0), 0)
    if (DTYPES[this.dtype].bits >= 8) {
      const Codes = none.BYTES_PER_ELEMENT === 2 ? Uint16Array : Uint8Array
      return this.#fill(out, (count) => new Codes(unfilledBytes(Codes.BYTES_PER_ELEMENT * count).buffer))
    }
    if (out !== undefined) checkOut(out, none, this.size)
    const codes = decodeCodes(this.dtype, await this.#rowMajorBytes(), this.size)
    if (out === undefined) return codes
    out.set(codes)
    return out
  }

  /** The row-major elements, cast if requested, in `out` or in what `make` allocates for a number of elements. */
  async #fill<Values extends ArrayBufferView & { readonly length: number }, Out extends ArrayBufferView>(
    out: Out | undefined,
    make: (count: number) => Values,
    step?: CastStep,
  ): Promise<Values | Out> {
    const { source, start } = this.rowMajor(step)
    if (out === undefined) {
      const values = make(this.size)
      await readInto(source, start, new Uint8Array(values.buffer as ArrayBuffer))
      return values
    }
    // Complex numbers are pairs.
    const count = DTYPES[this.dtype].kind === 'complex' ? 2 * this.size : this.size
    await fillMemory(source, start, checkOut(out, make(0), count))
    return out
  }

  at(...index: readonly number[]): number | bigint | boolean {
    checkIndex(this.shape, index)
    const slot = this.#slotOf(index)
    const place = placeOf(this.dtype, slot)
    const element = new Uint8Array(place.end - place.start)
    this.copyToSync(element, { start: place.start })
    return decodeElement(this.dtype, element, place.slot)
  }

  /** Where the packed elements are in row-major order without holes, cast if requested: the storage itself, or a reorder. */
  protected rowMajor(cast?: CastStep): { readonly source: ByteSource; readonly start: number } {
    if (!this.#layout && !cast) return { source: this.source, start: this.start }
    const from = { layout: this.#layout ?? 'row_major', ...this.#padding() }
    const casts = cast ? [cast] : []
    const joined = joinLayouts({ dtype: this.dtype, shape: this.shape, from, to: 'row_major', casts })
    return { source: new FusedSource(this, joined, cast?.to), start: 0 }
  }

  async #rowMajorBytes(): Promise<Uint8Array> {
    const { source, start } = this.rowMajor()
    return source.read(start, start + packedByteLength(this.dtype, this.size))
  }

  #locate(range: ByteRange | undefined): ByteRange {
    const { byteLength } = this.storage
    if (!range) {
      checkViewLength(byteLength)
      return { start: this.start, end: this.start + byteLength }
    }
    const { start, end } = readInput('The range', () => ({ start: range.start, end: range.end }))
    checkRange(start, end, byteLength, `tensor "${this.name}"`)
    return { start: this.start + start, end: this.start + end }
  }

  #slotOf(index: readonly number[]): number {
    if (this.#layout) {
      return this.#layout.offsetOf(this.shape, index, { dtype: this.dtype, ...this.#padding() })
    }
    return index.reduce((slot, at, axis) => slot * this.shape[axis]! + at, 0)
  }

  #padding(): Padding {
    if (this.#lower.length === 0 && this.#upper.length === 0) return NO_PADDING
    return {
      ...(this.#lower.length > 0 && { lower: this.#lower }),
      ...(this.#upper.length > 0 && { upper: this.#upper }),
    }
  }

  #describeStorage(): DenseStorage {
    const none = this.shape.map(() => 0)
    const shared = {
      lower: this.#lower.length > 0 ? [...this.#lower] : none,
      upper: this.#upper.length > 0 ? [...this.#upper] : none,
      bitOrder: 'low-first',
    } as const
    if (this.#layout) {
      const options = { dtype: this.dtype, ...this.#padding() }
      const { elements, byteLength } = this.#layout.storage(this.shape, options)
      return { layout: this.#layout.name, elements, byteLength, ...shared }
    }
    const elements = sizeOf(this.shape)
    const byteLength = packedByteLength(this.dtype, elements)
    return { layout: 'row_major', elements, byteLength, ...shared }
  }
}

/**
 * The bytes of a caller's array that takes a result.
 *
 * @param like - an array of the class that the result has
 * @throws TileworkError ERR_ARGUMENT for another class or length, and for a transferred buffer
 */
export function checkOut(out: unknown, like: ArrayBufferView, count: number): Uint8Array {
  const name = Object.prototype.toString.call(like).slice(8, -1)
  const isArray = ArrayBuffer.isView(out) && Object.prototype.toString.call(out).slice(8, -1) === name
  const length = isArray ? (out as unknown as ArrayLike<number>).length : undefined
  if (isArray && length === count) return bytesOfView(out, 'out')
  const found = length === undefined ? valueText(out) : `a ${name} of ${length} elements`
  throw new TileworkError('ERR_ARGUMENT', `out is ${found}; it must be a ${name} of ${count} elements.`)
}

type CopyOptions = NonNullable<Parameters<DenseTensor['copyTo']>[1]>

function rangeFor(target: Uint8Array, options: CopyOptions): ByteRange {
  checkOptions(options, 'copyTo', ['start'])
  const start = readInput('The options of copyTo', () => options.start ?? 0)
  if (isInstance(target, Uint8Array) && typeof start === 'number') {
    return { start, end: start + bytesOfView(target, 'the target').byteLength }
  }
  throw new TileworkError('ERR_ARGUMENT', 'copyTo takes a Uint8Array and { start }, a byte offset.')
}

function checkFixedSize(dtype: Dtype): Dtype {
  const known = resolveDtype(dtype)
  if (known !== 'string') return known
  throw new TileworkError('ERR_DTYPE', 'dtype is string; the elements of a dense tensor have a fixed size.')
}

/** The tensor as a range of a source: itself, or a view that reads through its own methods. */
export function asStored(tensor: DenseTensor): StoredTensor {
  if (tensor instanceof StoredTensor) return tensor
  if (!tensor.hasData) {
    throw new TileworkError('ERR_NO_DATA', `tensor "${tensor.name}" has no data in its file.`)
  }
  const { name, dtype, shape, metadata, storage, doc, quantization } = tensor
  const { layout, lower, upper } = storage
  const placed = { layout, lower, upper }
  const said = { ...(doc !== undefined && { doc }), ...(quantization && { quantization }) }
  const about = { name, dtype, shape, metadata, ...said }
  return new StoredTensor({ source: new TensorSource(tensor), start: 0, ...about, ...placed })
}

/** The storage bytes of a tensor of another class, for example the caller's own, as a source. */
class TensorSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #tensor: DenseTensor

  constructor(tensor: DenseTensor) {
    this.#tensor = tensor
    this.byteLength = tensor.storage.byteLength
    this.label = `tensor "${tensor.name}"`
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    return checkReturned(await this.#tensor.bytes({ start, end }), start, end, this.label)
  }

  readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    return checkReturned(this.#tensor.bytesSync({ start, end }), start, end, this.label)
  }
}
