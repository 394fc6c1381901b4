/** Sorts the entries of a sparse tensor into the form that writers need: lexicographic order without duplicates. */
import { MemorySource } from '../bytes/memory.js'
import { systemError } from '../bytes/system_error.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkName, readInput } from '../caller_input.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { StoredTensor } from './dense.js'
import { packCodes, unpackCodes } from './element_codes.js'
import { DIGIT_BITS, digitsOf, radixSort } from './radix_sort.js'
import { checkShape } from './shape.js'
import { CooTensor, elementBits } from './sparse.js'
import type { SparseTensor } from './tensor.js'

/** Bytes of one index, and of one radix digit of it. */
const INDEX_BYTES = 8
const DIGIT_BYTES = DIGIT_BITS / 8

/** Entries that can be sorted: their order, 4 bytes each, must fit into one typed array on every supported Node. */
export const MAX_SORTED_ENTRIES = 2 ** 30

/**
 * The tensor itself when its entries are in order, which is checked in windows; otherwise a sorted copy in memory that keeps
 * the last of entries with equal indices.
 *
 * Sorting takes memory for two copies of the entries (8 bytes per index and axis, plus the element), one copy for a source in
 * memory, and 10 bytes per entry. Its time is linear in the number of entries, whatever their order.
 *
 * @throws TileworkError ERR_COO_INDEX; ERR_ARGUMENT for a caller's tensor that contradicts its own counts; ERR_LIMIT for more
 * than 2^30 unsorted entries; and what the tensor's source throws
 */
export async function sortEntries(tensor: SparseTensor): Promise<CooTensor> {
  const owned = tensor instanceof CooTensor ? tensor : await copyEntries(tensor)
  return (await owned.firstDisorder()) ? sortedCopy(owned) : owned
}

/** A copy in memory of a caller's own sparse tensor. */
async function copyEntries(tensor: SparseTensor): Promise<CooTensor> {
  const label = `tensor "${tensor.name}"`
  const indices: unknown = await systemError.wrapAsync(label, () => tensor.indices())
  const values: unknown = await systemError.wrapAsync(label, () => tensor.values())
  return readInput('The sparse tensor', () => {
    const { entryCount, dtype, name } = tensor
    const shape = checkShape(tensor.shape)
    const isWhole =
      Number.isSafeInteger(entryCount) &&
      indices instanceof BigInt64Array &&
      values instanceof Uint8Array &&
      indices.length === entryCount * shape.length &&
      values.length === packedByteLength(dtype, entryCount)
    if (!isWhole) {
      const message = `tensor ${valueText(name)} declares ${valueText(entryCount)} entries; its indices() and values() have other lengths.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    const entries = allocateBytes(indices.byteLength + values.byteLength)
    entries.set(new Uint8Array(indices.buffer, indices.byteOffset, indices.byteLength))
    entries.set(values, indices.byteLength)
    return inMemory({ dtype, shape, name: checkName(name) }, entryCount, entries)
  })
}

async function sortedCopy(tensor: CooTensor): Promise<CooTensor> {
  const { entryCount, shape } = tensor
  if (entryCount > MAX_SORTED_ENTRIES) {
    const message = `tensor "${tensor.name}" has ${entryCount} unsorted entries; the limit is ${MAX_SORTED_ENTRIES}.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const { indices, values } = tensor.storage()
  const rows = new IndexRows(await copyOf(indices), shape)
  const bits = elementBits(tensor.dtype)
  const packed = await copyOf(values)
  const items = bits < 8 ? unpackCodes(bits, packed, entryCount) : packed
  const order = new Uint32Array(allocateBytes(4 * entryCount).buffer)
  for (let entry = 0; entry < entryCount; entry++) order[entry] = entry
  const sorted = radixSort(order, rows.digits, (entry, digit) => rows.digitOf(entry, digit))
  const kept = keepLast(sorted, rows)
  const valuesStart = rows.rowBytes * kept.length
  const entries = allocateBytes(valuesStart + packedByteLength(tensor.dtype, kept.length))
  pick(rows.bytes, rows.rowBytes, kept, entries)
  if (bits >= 8) pick(items, bits / 8, kept, entries.subarray(valuesStart))
  else {
    const codes = allocateBytes(kept.length)
    pick(items, 1, kept, codes)
    packCodes(bits, codes, entries.subarray(valuesStart))
  }
  return inMemory(tensor, kept.length, entries)
}

async function copyOf(tensor: StoredTensor): Promise<Uint8Array> {
  const bytes = allocateBytes(tensor.storage.byteLength)
  await tensor.copyTo(bytes)
  return bytes
}

/** Index rows as sort keys. Indices are little-endian, so radix digits are read from their bytes directly. */
class IndexRows {
  readonly bytes: Uint8Array
  readonly rowBytes: number
  readonly #view: DataView
  /** Byte offset in a row of each digit, the lowest digit of the last axis first. */
  readonly #offsets: readonly number[]

  constructor(bytes: Uint8Array, shape: readonly number[]) {
    this.bytes = bytes
    this.rowBytes = INDEX_BYTES * shape.length
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    // Indices are below their extent, so the digits above those of the largest index are 0 in every row.
    this.#offsets = shape.flatMap((_, back) => {
      const axis = shape.length - 1 - back
      const count = digitsOf(Math.max(0, shape[axis]! - 1))
      return Array.from({ length: count }, (_, digit) => INDEX_BYTES * axis + DIGIT_BYTES * digit)
    })
  }

  get digits(): number {
    return this.#offsets.length
  }

  digitOf(entry: number, digit: number): number {
    return this.#view.getUint16(entry * this.rowBytes + this.#offsets[digit]!, true)
  }

  isSame(one: number, other: number): boolean {
    const [at, against] = [one * this.rowBytes, other * this.rowBytes]
    for (let byte = 0; byte < this.rowBytes; byte++) {
      if (this.bytes[at + byte] !== this.bytes[against + byte]) return false
    }
    return true
  }
}

/** Keeps the last of entries with equal indices, which are adjacent and in file order. Reuses the memory of `sorted`. */
function keepLast(sorted: Uint32Array, rows: IndexRows): Uint32Array {
  let kept = 0
  for (let at = 0; at < sorted.length; at++) {
    const entry = sorted[at]!
    const isLast = at + 1 === sorted.length || !rows.isSame(entry, sorted[at + 1]!)
    if (isLast) sorted[kept++] = entry
  }
  return sorted.subarray(0, kept)
}

/** Copies the listed items of `itemBytes` bytes each, one after the other. */
function pick(bytes: Uint8Array, itemBytes: number, items: Uint32Array, target: Uint8Array): void {
  let at = 0
  for (const item of items) {
    for (let from = item * itemBytes; from < (item + 1) * itemBytes; from++) target[at++] = bytes[from]!
  }
}

/** A tensor over entries in memory. @param entries - all index rows, then all values */
function inMemory(
  { dtype, shape, name }: Pick<SparseTensor, 'dtype' | 'shape' | 'name'>,
  entryCount: number,
  entries: Uint8Array,
): CooTensor {
  const valuesStart = INDEX_BYTES * shape.length * entryCount
  const source = new MemorySource(entries)
  return new CooTensor({ source, indicesStart: 0, valuesStart, entryCount, dtype, shape, name })
}
