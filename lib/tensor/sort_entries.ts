/** Brings the entries of a sparse tensor into the one form that writers give: lexicographic order, no repetition. */
import { MemorySource } from '../bytes/memory.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { DTYPES } from '../dtype/dtypes.js'
import { compareRows, decodeIndices } from './coo_indices.js'
import { CooTensor } from './sparse.js'
import type { SparseTensor } from './tensor.js'

/**
 * The tensor itself when its entries are in order already, found out in windows; otherwise a sorted copy in memory,
 * where of entries with one index the last is kept.
 *
 * @throws TileworkError ERR_COO_INDEX, and what the tensor's source throws
 */
export async function sortEntries(tensor: SparseTensor): Promise<CooTensor> {
  const owned = tensor instanceof CooTensor ? tensor : await copyEntries(tensor)
  return (await owned.firstDisorder()) ? sortedCopy(owned) : owned
}

/** A user's own sparse tensor, in memory. */
async function copyEntries(tensor: SparseTensor): Promise<CooTensor> {
  const indices = await tensor.indices()
  const values = await tensor.values()
  const indexBytes = new Uint8Array(indices.buffer, indices.byteOffset, indices.byteLength)
  return inMemory(tensor, tensor.entryCount, indexBytes, values)
}

async function sortedCopy(tensor: CooTensor): Promise<CooTensor> {
  const { entryCount } = tensor
  const { indices, values } = tensor.storage()
  const indexBytes = await indices.bytes()
  const valueBytes = await values.bytes()
  const rank = tensor.shape.length
  const rows = decodeIndices(indexBytes)
  const rowOf = (entry: number): Float64Array => rows.subarray(entry * rank, (entry + 1) * rank)
  const order = Array.from({ length: entryCount }, (_, entry) => entry).sort(
    (one, other) => compareRows(rowOf(one), rowOf(other)) || one - other,
  )
  const kept = order.filter((entry, at) => {
    const next = order[at + 1]
    return next === undefined || compareRows(rowOf(entry), rowOf(next)) !== 0
  })
  const size = DTYPES[tensor.dtype].bits / 8
  return inMemory(tensor, kept.length, pick(indexBytes, 8 * rank, kept), pick(valueBytes, size, kept))
}

/** The named items of `itemBytes` each, one after the other. */
function pick(bytes: Uint8Array, itemBytes: number, items: readonly number[]): Uint8Array {
  const picked = allocateBytes(itemBytes * items.length)
  for (const [at, item] of items.entries()) {
    picked.set(bytes.subarray(item * itemBytes, (item + 1) * itemBytes), at * itemBytes)
  }
  return picked
}

function inMemory(
  like: SparseTensor,
  entryCount: number,
  indices: Uint8Array,
  values: Uint8Array,
): CooTensor {
  const bytes = allocateBytes(indices.byteLength + values.byteLength)
  bytes.set(indices)
  bytes.set(values, indices.byteLength)
  const { dtype, shape, name } = like
  return new CooTensor({
    source: new MemorySource(bytes),
    indicesStart: 0,
    valuesStart: indices.byteLength,
    entryCount,
    dtype,
    shape,
    name,
  })
}
