/**
 * Every record of the vectors file: an index pattern goes from row-major to the layout and back. The elements land at
 * the recorded offsets, holes are zero, and the pattern comes back whole.
 */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Dtype } from '../../lib/dtype/dtypes.js'
import { planReorder } from '../../lib/layout/plan.js'
import { records, type VectorRecord } from '../layout/vector_records.js'

function placedLayout(record: VectorRecord): { layout: string; lower?: number[]; upper?: number[] } {
  return {
    layout: record.format,
    ...(record.pad_lower && { lower: record.pad_lower }),
    ...(record.pad_upper && { upper: record.pad_upper }),
  }
}

function there(record: VectorRecord, dtype: Dtype, source: Uint8Array): Uint8Array {
  const { shape } = record
  const plan = planReorder({ dtype, shape, from: 'row_major', to: placedLayout(record) })
  const stored = new Uint8Array(plan.destinationBytes).fill(0xee)
  plan.runSync(source, stored)
  return stored
}

function back(record: VectorRecord, dtype: Dtype, stored: Uint8Array, byteLength: number): Uint8Array {
  const { shape } = record
  const plan = planReorder({ dtype, shape, from: placedLayout(record), to: 'row_major' })
  const found = new Uint8Array(byteLength).fill(0xee)
  plan.runSync(stored, found)
  return found
}

/** SHA-256 of the offsets at which the numbers 1 … count stand, as 64-bit numbers. */
function digestOfOffsets(stored: ArrayLike<number>, count: number): string {
  const offsets = new BigUint64Array(count)
  for (let slot = 0; slot < stored.length; slot++) {
    const number = stored[slot]!
    if (number !== 0) offsets[number - 1] = BigInt(slot)
  }
  return createHash('sha256').update(new Uint8Array(offsets.buffer)).digest('hex')
}

describe('vectors', () => {
  test.each(records.map((record) => [`${record.format} ${record.shape}`, record] as const))(
    '%s',
    (_, record) => {
      if (!record.meaningful) {
        expect(() => there(record, 'uint32', new Uint8Array(0))).toThrowError(
          expect.objectContaining({ code: expect.stringMatching(/^ERR_LAYOUT_/) }),
        )
      } else if (record.dtype_class === 'i4') checkNibbles(record)
      else checkWords(record)
    },
  )
})

function checkWords(record: VectorRecord): void {
  const { logical_count: count } = record
  const source = new Uint8Array(Uint32Array.from({ length: count }, (_, i) => i + 1).buffer)
  const bytes = there(record, 'uint32', source)
  const stored = new Uint32Array(bytes.buffer)
  expect(stored.length).toBe(record.padded_count)
  expect(stored.filter((number) => number === 0).length).toBe(record.padded_count - count)
  expect(digestOfOffsets(stored, count)).toBe(record.offsets_sha256)
  expect(back(record, 'uint32', bytes, source.byteLength)).toEqual(source)
}

/** Sixteen values are too few to number the elements, so each of four passes carries four bits of the number. */
function checkNibbles(record: VectorRecord): void {
  const { logical_count: count, padded_count: slots } = record
  const numbers = new Uint16Array(slots)
  for (const shift of [0, 4, 8, 12]) {
    const source = new Uint8Array(Math.ceil(count / 2))
    for (let i = 0; i < count; i++) source[i >> 1]! |= (((i + 1) >> shift) & 15) << (i % 2 === 0 ? 0 : 4)
    const stored = there(record, 'uint4', source)
    expect(stored.byteLength).toBe(Math.ceil(slots / 2))
    for (let slot = 0; slot < slots; slot++) {
      numbers[slot]! |= ((stored[slot >> 1]! >> (slot % 2 === 0 ? 0 : 4)) & 15) << shift
    }
    expect(back(record, 'uint4', stored, source.byteLength)).toEqual(source)
  }
  expect(digestOfOffsets(numbers, count)).toBe(record.offsets_sha256)
}
