/**
 * A dense tensor as a range of a source: element type, shape, order in memory, where it starts. Making one reads
 * nothing; its bytes are read when someone asks, and kept by nobody.
 */

import { asyncOnlyError, checkRange } from '../bytes/check_range.js'
import { fillMemory, fillMemorySync, readInto } from '../bytes/fill_memory.js'
import type { ByteRange, ByteSource } from '../bytes/source.js'
import { bytesOfView } from '../bytes/view_bytes.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkOptions, readInput } from '../caller_input.js'
import type { CastStep } from '../dtype/cast_step.js'
import { decodeAll, decodeCodes, decodeElement, packedByteLength, typedArrayFor } from '../dtype/decode.js'
import { DTYPES, type Dtype, isNarrowFloat, resolveDtype } from '../dtype/dtypes.js'
import { type Float16Numbers, float16Array } from '../dtype/float16_array.js'
import { TileworkError } from '../errors.js'
import type { Layout } from '../layout/layout.js'
import { parseLayout } from '../layout/parse_layout.js'
import { joinLayouts } from '../layout/plan.js'
import { BaseTensor } from './base_tensor.js'
import { FusedSource } from './fused_source.js'
import { isPadded } from './plain_storage.js'
import type { QuantizationParameters } from './quantization.js'
import { checkIndex, checkShape, sizeOf } from './shape.js'
import type { DenseStorage, DenseTensor, TypedArray, TypedArrayOptions } from './tensor.js'
import { TensorSource } from './tensor_source.js'

/** Where a tensor's storage lies and how it is to be understood. */
export interface StoredTensorInit {
  readonly source: ByteSource
  /** Byte offset of the first storage byte in `source`. */
  readonly start: number
  readonly dtype: Dtype
  /** Logical extents, slowest axis first. */
  readonly shape: readonly number[]
  readonly name?: string
  /** Order in memory; `row_major` by default. */
  readonly layout?: string | Layout
  /** Explicit padding, one count an axis of `shape`; for data layouts and row_major. */
  readonly lower?: readonly number[]
  readonly upper?: readonly number[]
  /** What these make together, from one who has bound the layout already. */
  readonly storage?: DenseStorage
  readonly doc?: string
  readonly metadata?: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
}

/** What the elements of types become that no typed array of every Node holds. Each number is exact there. */
const UNPACKED_AS: Partial<Record<Dtype, Dtype>> = Object.fromEntries(
  Object.values(DTYPES).flatMap(({ name, bits, kind }): [Dtype, Dtype][] => {
    if (isNarrowFloat(name)) return [[name, 'float32']]
    if (bits >= 8 || (kind !== 'int' && kind !== 'uint')) return []
    return [[name, kind === 'int' ? 'int8' : 'uint8']]
  }),
)

/** From so many elements on a cast by the addon is done before a loop in JavaScript would be. */
const FEWEST_NATIVE = 4096

function exactCast(from: Dtype, to: Dtype): CastStep {
  return { from, to, mode: 'spec', saturate: true, round: 'up' }
}

const NO_METADATA: ReadonlyMap<string, string> = new Map()

export class StoredTensor extends BaseTensor implements DenseTensor {
  readonly kind = 'dense'
  readonly hasData: boolean = true
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
  readonly quantization?: QuantizationParameters
  /** The source that holds the storage, for those who copy or map it as a whole. */
  readonly source: ByteSource
  /** Byte offset of the storage in `source`. */
  readonly start: number
  /** Absent for row-major without padding, whose offsets need no layout. */
  readonly #layout: Layout | undefined
  readonly #lower: readonly number[]
  readonly #upper: readonly number[]
  #storage: DenseStorage | undefined

  /**
   * @throws TileworkError ERR_DTYPE, ERR_ARGUMENT, ERR_LAYOUT_NAME; ERR_LAYOUT_SHAPE, ERR_OVERFLOW and ERR_RANGE when
   * the storage cannot be or does not lie inside the source
   */
  constructor(init: StoredTensorInit) {
    super()
    this.dtype = checkFixedSize(init.dtype)
    this.shape = checkShape(init.shape)
    this.name = init.name ?? ''
    if (init.doc !== undefined) this.doc = init.doc
    this.metadata = init.metadata ?? NO_METADATA
    if (init.quantization !== undefined) this.quantization = init.quantization
    this.source = init.source
    this.start = init.start
    const layout = typeof init.layout === 'string' ? parseLayout(init.layout) : init.layout
    this.#lower = init.lower ?? []
    this.#upper = init.upper ?? []
    const placed = layout ?? parseLayout('row_major')
    this.#layout =
      placed.kind === 'row_major' && !isPadded({ lower: this.#lower, upper: this.#upper })
        ? undefined
        : placed
    this.#storage = init.storage
    const { byteLength } = this.storage
    if (init.start + byteLength > init.source.byteLength) {
      throw new TileworkError(
        'ERR_RANGE',
        `The tensor needs ${byteLength} bytes at ${init.start} and the source has ${init.source.byteLength}.`,
      )
    }
  }

  get storage(): DenseStorage {
    this.#storage ??= this.#describeStorage()
    return this.#storage
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
    checkOptions(options, 'toTypedArray', ['float16Array'])
    const asFloat16 = readInput('The options of toTypedArray', () => options.float16Array === true)
    if (asFloat16 && this.dtype === 'float16') return this.#float16Array()
    const unpacked = UNPACKED_AS[this.dtype]
    if (unpacked && this.size < FEWEST_NATIVE) {
      return decodeAll(this.dtype, await this.#rowMajorBytes(), this.size)
    }
    const values = typedArrayFor(unpacked ?? this.dtype, this.size)!
    const { source, start } = this.rowMajor(unpacked && exactCast(this.dtype, unpacked))
    await readInto(source, start, new Uint8Array(values.buffer))
    return values
  }

  async #float16Array(): Promise<Float16Numbers> {
    // Refuses where there are no such arrays before anything is read.
    const values = float16Array(allocateBytes(2 * this.size).buffer)
    const { source, start } = this.rowMajor()
    await readInto(source, start, new Uint8Array(values.buffer))
    return values
  }

  async bits(): Promise<Uint8Array | Uint16Array> {
    // Refuses a wrong dtype before anything is read.
    decodeCodes(this.dtype, new Uint8Array(0), 0)
    return decodeCodes(this.dtype, await this.#rowMajorBytes(), this.size)
  }

  at(...index: readonly number[]): number | bigint | boolean {
    checkIndex(this.shape, index)
    const slot = this.#slotOf(index)
    const { bits } = DTYPES[this.dtype]
    const perByte = Math.max(1, 8 / bits)
    const start = Math.floor(slot / perByte) * Math.max(1, bits / 8)
    const element = new Uint8Array(Math.max(1, bits / 8))
    this.copyToSync(element, { start })
    return decodeElement(this.dtype, element, slot % perByte)
  }

  /**
   * Where the packed elements lie in row-major order without holes, with another type where one is asked for: the storage
   * itself, or a reorder of it.
   */
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
    const { start, end } = range
      ? readInput('The range', () => ({ start: range.start, end: range.end }))
      : { start: 0, end: byteLength }
    checkRange(start, end, byteLength, `tensor "${this.name}"`)
    return { start: this.start + start, end: this.start + end }
  }

  #slotOf(index: readonly number[]): number {
    if (this.#layout) {
      return this.#layout.offsetOf(this.shape, index, { dtype: this.dtype, ...this.#padding() })
    }
    return index.reduce((slot, at, axis) => slot * this.shape[axis]! + at, 0)
  }

  #padding(): { lower?: readonly number[]; upper?: readonly number[] } {
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

/** Storage bytes from `start` on (default 0), as many as the target has. */
type CopyOptions = NonNullable<Parameters<DenseTensor['copyTo']>[1]>

function rangeFor(target: Uint8Array, options: CopyOptions): ByteRange {
  checkOptions(options, 'copyTo', ['start'])
  const start = readInput('The options of copyTo', () => options.start ?? 0)
  if (target instanceof Uint8Array && typeof start === 'number') {
    return { start, end: start + bytesOfView(target, 'the target').byteLength }
  }
  throw new TileworkError('ERR_ARGUMENT', 'copyTo takes a Uint8Array and the byte to start from.')
}

function checkFixedSize(dtype: Dtype): Dtype {
  const known = resolveDtype(dtype)
  if (known !== 'string') return known
  throw new TileworkError('ERR_DTYPE', 'Strings have no fixed size and cannot be a dense tensor.')
}

/** Any dense tensor as one that lies in a source: itself, or a view of it that reads through it. */
export function asStored(tensor: DenseTensor): StoredTensor {
  if (tensor instanceof StoredTensor) return tensor
  if (!tensor.hasData) {
    throw new TileworkError('ERR_NO_DATA', `Tensor "${tensor.name}" has no data in its file.`)
  }
  const { name, dtype, shape, metadata, storage, doc, quantization } = tensor
  const { layout, lower, upper } = storage
  const placed = { layout, lower, upper }
  const said = { ...(doc !== undefined && { doc }), ...(quantization && { quantization }) }
  const about = { name, dtype, shape, metadata, ...said }
  return new StoredTensor({ source: new TensorSource(tensor), start: 0, ...about, ...placed })
}
