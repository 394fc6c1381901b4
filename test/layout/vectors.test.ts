/**
 * Offsets, counts and rejections against the layout vectors, which two independent implementations agree on.
 * `test/fixtures/layout_vectors.py` adds the record of a new layout.
 */
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { StorageOptions } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import { coordinates } from './coordinates.js'
import { records, type VectorRecord } from './vector_records.js'

function optionsOf(record: VectorRecord): StorageOptions {
  return {
    ...(record.pad_lower === undefined ? {} : { lower: record.pad_lower }),
    ...(record.pad_upper === undefined ? {} : { upper: record.pad_upper }),
    ...(record.dtype_class === undefined ? {} : { dtype: 'int4' }),
  }
}

function fnv1a64(bytes: Uint8Array): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(16).padStart(16, '0')
}

describe('layout vectors', () => {
  it('exist for every layout of the catalogue', () => {
    const known = new Set(records.map(({ format }) => format))
    expect(LAYOUT_NAMES.filter((name) => !known.has(name))).toEqual([])
  })

  const cases = records.map((record) => [`${record.format} [${record.shape}]`, record] as const)

  it.each(cases.filter(([, record]) => record.meaningful))('%s', (_, record) => {
    const layout = parseLayout(record.format)
    const options = optionsOf(record)
    const offsets = [...coordinates(record.shape)].map((index) =>
      layout.offsetOf(record.shape, index, options),
    )
    const bytes = new Uint8Array(new BigUint64Array(offsets.map(BigInt)).buffer)
    expect(layout.axes).toBe(record.logical_dims)
    expect(layout.kind).toBe(record.kind)
    expect(offsets.length).toBe(record.logical_count)
    expect(offsets.slice(0, 32)).toEqual(record.first_offsets)
    expect(fnv1a64(bytes)).toBe(record.offsets_fnv1a64)
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(record.offsets_sha256)
    expect(layout.storage(record.shape, options).elements).toBe(record.padded_count)
  })

  it.each(cases.filter(([, record]) => !record.meaningful))('%s is rejected', (_, record) => {
    const code = record.kind === 'marker' ? 'ERR_LAYOUT_NAME' : 'ERR_LAYOUT_SHAPE'
    expect(() => parseLayout(record.format).storage(record.shape)).toThrow(expect.objectContaining({ code }))
  })
})
