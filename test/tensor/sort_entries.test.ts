/** Sparse entries are sorted into lexicographic order. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import { tensor } from '../../lib/tensor/from_values.js'
import { digitsOf, radixSort } from '../../lib/tensor/radix_sort.js'
import { MAX_SORTED_ENTRIES, sortEntries } from '../../lib/tensor/sort_entries.js'
import { CooTensor, sparseFromDense } from '../../lib/tensor/sparse.js'
import type { SparseEntry, SparseTensor } from '../../lib/tensor/tensor.js'

function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 48271) % 2147483647
    return Math.floor((state / 2147483647) * below)
  }
}

/** Entries with int32 values 0, 1, 2, … in the order of the rows. */
function sparseOf(shape: readonly number[], rows: readonly (readonly number[])[]): CooTensor {
  const indices = BigInt64Array.from(rows.flat().map(BigInt))
  const values = Int32Array.from(rows.keys())
  const bytes = new Uint8Array(indices.byteLength + values.byteLength)
  bytes.set(new Uint8Array(indices.buffer))
  bytes.set(new Uint8Array(values.buffer), indices.byteLength)
  return new CooTensor({
    source: new MemorySource(bytes),
    indicesStart: 0,
    valuesStart: indices.byteLength,
    entryCount: rows.length,
    dtype: 'int32',
    shape,
    name: 's',
  })
}

async function listed(sparse: SparseTensor): Promise<SparseEntry[]> {
  const entries: SparseEntry[] = []
  for await (const entry of sparse.entries()) entries.push(entry)
  return entries
}

/** The reference: sorts entries with Array methods. */
function expectedOf(rows: readonly (readonly number[])[]): SparseEntry[] {
  const last = new Map(rows.map((index, value) => [index.join(), { index: [...index], value }]))
  return [...last.values()].sort(({ index: one }, { index: other }) => {
    const axis = one.findIndex((at, axis) => at !== other[axis])
    return axis < 0 ? 0 : one[axis]! - other[axis]!
  })
}

describe('random entries', () => {
  const random = randomNumbers(4711)
  it.each<[string, number[]]>([
    ['one axis', [50]],
    ['two axes', [9, 7]],
    ['axes of extent 1 between', [1, 12, 1, 9, 1]],
    ['indices of two digits', [2 ** 20, 3]],
    ['indices of four digits', [2 ** 53 - 1, 2 ** 33]],
    ['many axes', Array(40).fill(2)],
  ])('%s', async (_, shape) => {
    for (const count of [2, 3, 200]) {
      const rows = Array.from({ length: count }, () => shape.map((extent) => random(extent)))
      expect(await listed(await sortEntries(sparseOf(shape, rows)))).toEqual(expectedOf(rows))
    }
  })
})

it('of several entries without axes the last is kept', async () => {
  expect(await listed(await sortEntries(sparseOf([], [[], [], []])))).toEqual([{ index: [], value: 2 }])
})

it('entries in order are not copied', async () => {
  const sparse = sparseOf([4, 4], [[0, 1], [2, 0], [2, 3]]) // biome-ignore format: one line
  expect(await sortEntries(sparse)).toBe(sparse)
})

it('more entries than the sort supports are rejected before they are read', async () => {
  const entryCount = MAX_SORTED_ENTRIES + 1
  let bytesRead = 0
  // Claims to hold all entries, the first two out of order.
  const source: ByteSource = {
    byteLength: 12 * entryCount,
    read: async (start, end) => {
      bytesRead += end - start
      return new Uint8Array(end - start)
    },
  }
  const sparse = new CooTensor({
    source,
    indicesStart: 0,
    valuesStart: 8 * entryCount,
    entryCount,
    dtype: 'int32',
    shape: [4],
    name: 'huge',
  })
  sparse.firstDisorder = async () => (await new CooTensor({ ...smallDisorder }).firstDisorder())!
  await expect(sortEntries(sparse)).rejects.toMatchObject({
    code: 'ERR_LIMIT',
    message: expect.stringContaining(String(MAX_SORTED_ENTRIES)),
  })
  expect(bytesRead).toBe(0)
})

const smallDisorder = {
  source: new MemorySource(new Uint8Array(24)),
  indicesStart: 0,
  valuesStart: 16,
  entryCount: 2,
  dtype: 'int32',
  shape: [1],
} as const

it('a dense tensor becomes entries window by window', async () => {
  const random = randomNumbers(99)
  const shape = [7, 300, 211]
  const values = Float32Array.from({ length: 7 * 300 * 211 }, () => (random(5) === 0 ? random(1000) : 0))
  const dense = tensor(values, { shape })
  const ranges: number[] = []
  const original = dense.bytes.bind(dense)
  dense.bytes = async (range) => {
    ranges.push(range === undefined ? Number.POSITIVE_INFINITY : range.end - range.start)
    return original(range)
  }
  const sparse = await sparseFromDense(dense)
  expect(Math.max(...ranges)).toBeLessThanOrEqual(1024 * 1024)
  expect(sparse.entryCount).toBe(values.filter((value) => value !== 0).length)
  const back = await sparse.toDense({ maxBytes: values.byteLength })
  expect(await back.toTypedArray()).toEqual(values)
  expect(await sortEntries(sparse)).toBe(sparse)
})

describe('the radix sort', () => {
  it('is stable and skips digits that all items share', () => {
    const keys = [65536 * 3 + 2, 65536 * 3 + 1, 65536 * 3 + 2, 65536 * 3]
    const sorted = radixSort(
      Uint32Array.of(0, 1, 2, 3),
      2,
      (item, digit) => (keys[item]! >>> (16 * digit)) & 0xffff,
    )
    expect([...sorted]).toEqual([3, 1, 0, 2])
  })

  it('accepts no items, and no digits', () => {
    expect([...radixSort(new Uint32Array(0), 3, () => 0)]).toEqual([])
    expect([...radixSort(Uint32Array.of(2, 1), 0, () => 0)]).toEqual([2, 1])
  })

  it('counts digits', () => {
    expect([0, 1, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1].map(digitsOf)).toEqual([
      0, 1, 1, 2, 2, 3, 4,
    ])
  })
})
