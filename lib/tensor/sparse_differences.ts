/**
 * Compares tensors of which one or both are sparse. The entries are in memory; the elements between them are not, however many
 * there are.
 */

import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { DTYPES } from '../dtype/dtypes.js'
import { packedByteLength, storeCode } from '../dtype/packed_codes.js'
import { compareRows, decodeIndices } from './coo_indices.js'
import { StoredTensor } from './dense.js'
import { packCodes, unpackCodes } from './element_codes.js'
import { sortEntries } from './sort_entries.js'
import type { DenseTensor, SparseTensor } from './tensor.js'
import {
  type CompareOptions,
  compareValues,
  type DifferentElement,
  type ValueDifferences,
} from './value_differences.js'

/** Sorted entries without duplicates. */
interface Entries {
  /** `[count, rank]`, row-major. */
  readonly indices: Float64Array
  /** One code per byte for types below 8 bits, else the packed values. */
  readonly values: Uint8Array
  readonly count: number
  /** Bytes of one value in `values`. */
  readonly valueBytes: number
}

async function entriesOf(tensor: SparseTensor): Promise<Entries> {
  const sorted = await sortEntries(tensor)
  const { bits } = DTYPES[tensor.dtype]
  const count = sorted.entryCount
  const indices = await sorted.indices()
  const packed = await sorted.values()
  return {
    indices: decodeIndices(new Uint8Array(indices.buffer, indices.byteOffset, indices.byteLength)),
    values: bits < 8 ? unpackCodes(bits, packed, count) : packed,
    count,
    valueBytes: Math.max(1, bits / 8),
  }
}

/**
 * Compares two sparse tensors of one shape: the values at every index that either has, and zero elsewhere. Bits are equal where
 * both have the same entries, in any order.
 *
 * @throws TileworkError ERR_COO_INDEX, ERR_LIMIT, and as `compareValues`
 */
export async function compareSparse(
  a: SparseTensor,
  b: SparseTensor,
  options: CompareOptions,
): Promise<ValueDifferences> {
  const [ofA, ofB] = [await entriesOf(a), await entriesOf(b)]
  const rank = a.shape.length
  const rows = unionOf(ofA, ofB, rank)
  const found = await compareValues(
    gathered(
      a,
      ofA,
      rows.map(({ a: entry }) => entry),
    ),
    gathered(
      b,
      ofB,
      rows.map(({ b: entry }) => entry),
    ),
    options,
  )
  const hasSameEntries = rows.every((row) => row.a >= 0 && row.b >= 0)
  const indexOfRow = (row: number): number[] => {
    const { a: inA, b: inB } = rows[row]!
    const [entries, entry] = inA >= 0 ? [ofA, inA] : [ofB, inB]
    return Array.from(entries.indices.subarray(entry * rank, (entry + 1) * rank))
  }
  const placed = (element: DifferentElement | null): DifferentElement | null =>
    element && { ...element, index: indexOfRow(element.index[0]!) }
  return {
    ...found,
    count: a.size,
    equalBits: found.equalBits && hasSameEntries,
    first: placed(found.first),
    firstBeyond: placed(found.firstBeyond),
    worst: placed(found.worst),
    worstRelative: placed(found.worstRelative),
  }
}

/** The entry of each tensor at an index that one of them has; -1 for none. */
interface UnionRow {
  readonly a: number
  readonly b: number
}

function unionOf(a: Entries, b: Entries, rank: number): UnionRow[] {
  const rows: UnionRow[] = []
  const rowOf = ({ indices }: Entries, entry: number): Float64Array =>
    indices.subarray(entry * rank, (entry + 1) * rank)
  let [inA, inB] = [0, 0]
  while (inA < a.count || inB < b.count) {
    const order = inA === a.count ? 1 : inB === b.count ? -1 : compareRows(rowOf(a, inA), rowOf(b, inB))
    rows.push({ a: order <= 0 ? inA : -1, b: order >= 0 ? inB : -1 })
    if (order <= 0) inA++
    if (order >= 0) inB++
  }
  return rows
}

/** The values of the listed entries as a vector; zero for -1. */
function gathered({ dtype, name }: SparseTensor, entries: Entries, listed: readonly number[]): DenseTensor {
  const { values, valueBytes } = entries
  const { bits } = DTYPES[dtype]
  const unpacked = allocateBytes(listed.length * valueBytes)
  for (const [at, entry] of listed.entries()) {
    if (entry < 0) continue
    unpacked.set(values.subarray(entry * valueBytes, (entry + 1) * valueBytes), at * valueBytes)
  }
  let bytes = unpacked
  if (bits < 8) {
    bytes = allocateBytes(packedByteLength(dtype, listed.length))
    packCodes(bits, unpacked, bytes)
  }
  return new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype, shape: [listed.length], name })
}

/** A sparse tensor as a dense one whose ranges are filled when they are read. */
export async function sparseAsDense(tensor: SparseTensor): Promise<DenseTensor> {
  const { dtype, shape, name } = tensor
  return new StoredTensor({
    source: new ScatteredSource(tensor, await entriesOf(tensor)),
    start: 0,
    dtype,
    shape,
    name,
  })
}

class ScatteredSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  readonly #bits: number
  readonly #entries: Entries
  /** Position of each entry in row-major order. */
  readonly #positions: Float64Array

  constructor({ dtype, shape, size, name }: SparseTensor, entries: Entries) {
    this.byteLength = packedByteLength(dtype, size)
    this.label = `tensor "${name}"`
    this.#bits = DTYPES[dtype].bits
    this.#entries = entries
    this.#positions = new Float64Array(entries.count)
    for (let entry = 0, at = 0; entry < entries.count; entry++) {
      let position = 0
      for (const extent of shape) position = position * extent + entries.indices[at++]!
      this.#positions[entry] = position
    }
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { values, valueBytes } = this.#entries
    const isPacked = this.#bits < 8
    // Eight packed elements are `bits` bytes.
    const unit = isPacked ? this.#bits : valueBytes
    const skipped = start % unit
    const bytes = allocateBytes(end - start + skipped)
    const first = ((start - skipped) / unit) * (isPacked ? 8 : 1)
    const last = Math.ceil(end / unit) * (isPacked ? 8 : 1)
    for (let entry = this.#firstFrom(first); entry < this.#positions.length; entry++) {
      const slot = this.#positions[entry]! - first
      if (slot >= last - first) break
      if (isPacked) storeCode(this.#bits, bytes, slot, values[entry]!)
      else bytes.set(values.subarray(entry * valueBytes, (entry + 1) * valueBytes), slot * valueBytes)
    }
    return bytes.subarray(skipped)
  }

  /** The first entry at a position or after it. */
  #firstFrom(position: number): number {
    let [low, high] = [0, this.#positions.length]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (this.#positions[middle]! < position) low = middle + 1
      else high = middle
    }
    return low
  }
}
