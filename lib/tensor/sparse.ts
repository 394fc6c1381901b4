/**
 * Sparse tensors as coordinate lists (COO): index rows and values, each in a range of a source. Entries are read in windows, so
 * a list of any length takes bounded memory. Indices are checked on every read, because a file may change.
 */
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { decodeElement } from '../dtype/decode.js'
import { DTYPES, type Dtype, isDtypeName } from '../dtype/dtypes.js'
import { packedByteLength, storeCode } from '../dtype/packed_codes.js'
import { type ErrorPlace, TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { BaseTensor, NO_METADATA } from './base_tensor.js'
import { checkDense } from './check_tensor.js'
import { decodeIndices, IndexRows, type IndexWindow } from './coo_indices.js'
import { asStored, StoredTensor } from './dense.js'
import { unpackCodes } from './element_codes.js'
import { GatheredEntries } from './gather_entries.js'
import { isPlain } from './plain_storage.js'
import { reorder } from './reorder.js'
import { checkShape } from './shape.js'
import type { DenseTensor, SparseEntry, SparseTensor } from './tensor.js'

/** Bytes of entries per read: large enough to hide the cost of a call, small relative to memory. */
const WINDOW_BYTES = 1024 * 1024

/** Bytes of one index: 64 bits in every supported COO format. */
const INDEX_BYTES = 8

export interface CooTensorInit {
  readonly source: ByteSource
  /** Byte offset of the `[entryCount, rank]` 64-bit indices. */
  readonly indicesStart: number
  /** Byte offset of the packed values. */
  readonly valuesStart: number
  readonly entryCount: number
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly name?: string
  /** Whether unsorted or repeated entries are an error when they are read. Default false. */
  readonly requiresOrder?: boolean
  /** Location of the indices, for errors. */
  readonly place?: ErrorPlace
}

/** A window of entries. */
interface EntryWindow extends IndexWindow {
  readonly values: Uint8Array
}

export class CooTensor extends BaseTensor implements SparseTensor {
  readonly kind = 'sparse'
  readonly hasData = true
  readonly metadata = NO_METADATA
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly entryCount: number
  readonly #init: CooTensorInit
  /** Bits of one element. */
  readonly #bits: number

  /** @throws TileworkError ERR_UNSUPPORTED for strings; ERR_ARGUMENT */
  constructor(init: CooTensorInit) {
    super()
    this.#init = init
    this.dtype = init.dtype
    this.#bits = elementBits(init.dtype)
    this.shape = checkShape(init.shape)
    this.name = init.name ?? ''
    this.entryCount = init.entryCount
  }

  /** @throws TileworkError ERR_COO_INDEX; ERR_DTYPE for complex types, whose values are pairs of numbers */
  async *entries(): AsyncGenerator<SparseEntry> {
    const rank = this.shape.length
    for await (const window of this.#windows()) {
      for (let entry = 0; entry < window.count; entry++) {
        const index = Array.from(window.indices.subarray(entry * rank, (entry + 1) * rank))
        yield { index, value: decodeElement(this.dtype, window.values, entry) }
      }
    }
  }

  async indices(): Promise<BigInt64Array> {
    for await (const window of this.#checkedWindows()) void window
    return (await this.storage().indices.toTypedArray()) as BigInt64Array
  }

  async values(): Promise<Uint8Array> {
    for await (const window of this.#checkedWindows()) void window
    return this.storage().values.bytes()
  }

  async toDense(options: { readonly maxBytes: number }): Promise<DenseTensor> {
    // Without type checks a caller may omit the limit, which must not mean "unlimited".
    const maxBytes = readInput('The options of toDense', () => options?.maxBytes)
    checkMaxBytes(maxBytes)
    const needed = (this.sizeExact * BigInt(this.#bits) + 7n) / 8n
    // A number and a bigint compare exactly, infinity included.
    if (needed > maxBytes) {
      const message = `tensor "${this.name}" needs ${needed} bytes as a dense tensor; maxBytes is ${maxBytes}.`
      throw new TileworkError('ERR_LIMIT', message)
    }
    const bytes = allocateBytes(Number(needed))
    for await (const window of this.#windows()) this.#scatter(window, bytes)
    const { dtype, shape, name } = this
    return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape, name })
  }

  /**
   * Reads all indices and checks that they lie in the shape.
   *
   * @returns the error for the first entry that repeats or sorts before its predecessor, for the caller to throw or ignore
   * @throws TileworkError ERR_COO_INDEX
   */
  async firstDisorder(): Promise<TileworkError | undefined> {
    let disorder: TileworkError | undefined
    for await (const { rows, window } of this.#indexWindows()) disorder ??= rows.findDisorder(window)
    return disorder
  }

  /** Indices (`[entryCount, rank]` int64) and values (`[entryCount]`) as tensors over the source, for writers. Unchecked. */
  storage(): { readonly indices: StoredTensor; readonly values: StoredTensor } {
    const { source, indicesStart, valuesStart, entryCount } = this.#init
    const rank = this.shape.length
    return {
      indices: new StoredTensor({ source, start: indicesStart, dtype: 'int64', shape: [entryCount, rank] }),
      values: new StoredTensor({ source, start: valuesStart, dtype: this.dtype, shape: [entryCount] }),
    }
  }

  #scatter(window: EntryWindow, dense: Uint8Array): void {
    const rank = this.shape.length
    const bits = this.#bits
    const codes = bits < 8 ? unpackCodes(bits, window.values, window.count) : undefined
    for (let entry = 0, at = 0; entry < window.count; entry++) {
      let slot = 0
      for (let axis = 0; axis < rank; axis++, at++) slot = slot * this.shape[axis]! + window.indices[at]!
      if (codes) storeCode(bits, dense, slot, codes[entry]!)
      else copyElement(bits / 8, window.values, entry, dense, slot)
    }
  }

  async *#windows(): AsyncGenerator<EntryWindow> {
    const { source, valuesStart } = this.#init
    for await (const window of this.#checkedWindows()) {
      const start = valuesStart + (window.first * this.#bits) / 8
      const end = start + packedByteLength(this.dtype, window.count)
      yield { ...window, values: await source.read(start, end) }
    }
  }

  /** Windows with all checks that callers rely on: the range, and the order where it is required. */
  async *#checkedWindows(): AsyncGenerator<IndexWindow> {
    for await (const { rows, window } of this.#indexWindows()) {
      const disorder = this.#init.requiresOrder ? rows.findDisorder(window) : undefined
      if (disorder) throw disorder
      yield window
    }
  }

  async *#indexWindows(): AsyncGenerator<{ rows: IndexRows; window: IndexWindow }> {
    const { source, indicesStart, place = {} } = this.#init
    const rowBytes = INDEX_BYTES * this.shape.length
    const rows = new IndexRows(this.shape, this.name, indicesStart, place)
    // A multiple of 8 entries: every window of packed sub-byte values then starts at a whole byte.
    const step = 8 * Math.max(1, Math.floor(WINDOW_BYTES / (8 * rowBytes + this.#bits)))
    for (let first = 0; first < this.entryCount; first += step) {
      const count = Math.min(step, this.entryCount - first)
      const start = indicesStart + first * rowBytes
      const bytes = await source.read(start, start + count * rowBytes)
      const window = { first, count, bytes, indices: decodeIndices(bytes) }
      rows.checkRange(window)
      yield { rows, window }
    }
  }
}

/** Bits of one element. @throws TileworkError ERR_UNSUPPORTED for strings, which have no fixed size */
export function elementBits(dtype: Dtype): number {
  const bits: number = isDtypeName(dtype) ? DTYPES[dtype].bits : 0
  if (bits > 0) return bits
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `dtype is ${valueText(dtype)}; a sparse tensor holds elements of a fixed size.`,
  )
}

function copyElement(size: number, values: Uint8Array, entry: number, dense: Uint8Array, slot: number): void {
  for (let byte = 0; byte < size; byte++) dense[slot * size + byte] = values[entry * size + byte]!
}

function checkMaxBytes(maxBytes: unknown): void {
  if (typeof maxBytes === 'number' && maxBytes >= 0) return
  throw new TileworkError('ERR_ARGUMENT', `maxBytes is ${valueText(maxBytes)}; it must be a number of bytes.`)
}

export interface SparseFromDenseOptions {
  /** Default: the dense tensor's name. */
  readonly name?: string
  /** Whether zeros become entries too. Default false. */
  readonly keepZeros?: boolean
}

/**
 * The sparse tensor of the nonzero elements of a dense one, in lexicographic order and in memory. Zero means that all bits are
 * zero: -0.0 and NaN are kept, so that `toDense` restores every value.
 *
 * Reads the dense tensor once, in windows of 1 MiB. Peak memory is twice the entries: 8 bytes per index and axis, plus the
 * element.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_VIEW_TOO_LARGE and ERR_LIMIT for more entries than memory can hold; and what reading
 * the tensor throws
 */
export async function sparseFromDense<D extends Dtype>(
  dense: DenseTensor<D>,
  options?: SparseFromDenseOptions,
): Promise<SparseTensor<D>>
export async function sparseFromDense(
  dense: DenseTensor,
  options: SparseFromDenseOptions = {},
): Promise<SparseTensor> {
  const checked = checkDense(dense, 'sparseFromDense')
  checkOptions(options, 'sparseFromDense', ['name', 'keepZeros'])
  const { keepZeros, name } = readInput('The options of sparseFromDense', () => ({
    keepZeros: options.keepZeros === true,
    name: checkName(options.name ?? checked.name),
  }))
  const { dtype, shape } = checked
  const bits = elementBits(dtype)
  const rowMajor = isPlain(checked.storage) ? asStored(checked) : reorder(checked, 'row_major')
  const { byteLength } = rowMajor.storage
  const gathered = new GatheredEntries(shape, bits, keepZeros)
  // Eight elements are `bits` bytes.
  const step = WINDOW_BYTES - (WINDOW_BYTES % bits)
  const window = allocateBytes(Math.min(step, byteLength))
  for (let start = 0; start < byteLength; start += step) {
    const bytes = window.subarray(0, Math.min(byteLength - start, step))
    await rowMajor.copyTo(bytes, { start })
    gathered.add(bytes, Math.min(checked.size - (8 * start) / bits, (8 * bytes.byteLength) / bits))
  }
  return new CooTensor({ ...gathered.finish(), dtype, shape, name })
}
