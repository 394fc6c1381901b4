/** The order in which records are visited, and the padding between them. */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { ByteSource } from '../../../lib/bytes/source.js'
import { btf } from '../../../lib/formats/btf/index.js'
import { orderOf } from '../../../lib/formats/btf/offset_table.js'
import { MAX_FINDINGS } from '../../../lib/formats/report.js'
import { btfFile, data, denseRecord, joinFields, raw, readOptions, u64 } from './btf_bytes.js'

/** Records the ranges that were read. */
class WatchedSource implements ByteSource {
  readonly byteLength: number
  readonly ranges: [number, number][] = []
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.byteLength = bytes.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.ranges.push([start, end])
    return this.#bytes.slice(start, end)
  }

  get bytesRead(): number {
    return this.ranges.reduce((sum, [start, end]) => sum + end - start, 0)
  }
}

describe('the order of offsets', () => {
  const expected = (offsets: Float64Array): number[] =>
    [...offsets.keys()]
      .filter((index) => !Number.isNaN(offsets[index]))
      .sort((one, other) => offsets[one]! - offsets[other]! || one - other)

  it.each([
    ['one', [7]],
    ['descending', [40, 32, 24]],
    ['equal ones in the order of the table', [24, 16, 24, 16, 24]],
    ['unusable ones omitted', [Number.NaN, 32, Number.NaN, 24, Number.NaN]],
    ['none usable', [Number.NaN]],
    ['digits beyond 32 bits', [2 ** 53 - 1, 2 ** 32, 2 ** 32 - 1, 2 ** 48, 2 ** 33 + 5, 2 ** 48 + 2 ** 17]],
  ])('%s', (_, list) => {
    const offsets = Float64Array.from(list)
    expect([...orderOf(offsets)]).toEqual(expected(offsets))
  })

  it('equals a comparison sort, for random offsets', () => {
    let state = 7
    const random = (below: number): number => {
      state = (state * 48271) % 2147483647
      return state % below
    }
    for (const span of [10, 2 ** 16, 2 ** 31, 2 ** 52]) {
      const offsets = Float64Array.from({ length: 3000 }, () =>
        random(20) === 0 ? Number.NaN : Math.floor((random(2 ** 30) / 2 ** 30) * span),
      )
      expect([...orderOf(offsets)]).toEqual(expected(offsets))
    }
  })
})

describe('padding', () => {
  const odd = (count: number) => denseRecord({ dtype: 0, dims: [count], data: new Int8Array(count) })

  it('is checked by an open at both levels', async () => {
    const bytes = btfFile(odd(3), odd(5))
    bytes[24 + 24 + 6] = 9
    await expect(btf.read(new MemorySource(bytes), readOptions('strict'))).rejects.toMatchObject({
      code: 'ERR_GAP',
      path: 'tensors[0].padding',
      offset: 54,
    })
    const { findings } = await btf.read(new MemorySource(bytes), readOptions('lenient'))
    expect(findings).toMatchObject([{ severity: 'warning', code: 'ERR_GAP', offset: 54 }])
  })

  it('is checked without reading payload', async () => {
    const source = new WatchedSource(btfFile(odd(1_000_001), odd(2_000_003), odd(3_000_005)))
    await btf.read(source, readOptions('strict'))
    // Count and table with the first header, two headers with the padding before them, the last padding.
    expect(source.ranges.length).toBe(4)
    expect(source.bytesRead).toBeLessThan(4 * 8192)
  })

  it('ends where a misaligned record starts', async () => {
    const bytes = joinFields(u64(2), u64(24), u64(49), data(odd(1)), data(odd(7)))
    const findings = await btf.check(new MemorySource(bytes), readOptions('strict'))
    expect(findings.map(({ code, offset }) => [code, offset])).toEqual([['ERR_MISALIGNED', 16]])
    const hidden = joinFields(u64(2), u64(24), u64(51), data(odd(1)), raw(0, 4), data(odd(5)))
    const found = await btf.check(new MemorySource(hidden), readOptions('lenient'))
    expect(found.map(({ code, offset }) => [code, offset])).toEqual([
      ['ERR_MISALIGNED', 16],
      ['ERR_GAP', 50],
    ])
  })

  it('may reach to a multiple of 8 from the start of a misaligned record', async () => {
    const record = denseRecord({ dtype: 0, dims: [1], data: Int8Array.of(7) })
    const gap = raw(0, 0, 0, 0)
    const padding = raw(0, 0, 0, 0, 0, 0, 0)
    const bytes = joinFields(u64(2), u64(28), u64(60), gap, data(record), padding, data(record), padding)
    const findings = await btf.check(new MemorySource(bytes), readOptions('lenient'))
    expect(findings.map(({ code }) => code)).toEqual(['ERR_MISALIGNED', 'ERR_MISALIGNED', 'ERR_GAP'])
  })

  it('is not checked inside the payload of an enclosing record', async () => {
    const inner = joinFields(data(odd(1)), raw(1, 2, 3, 4, 5, 6, 7))
    const outer = denseRecord({ dtype: 0, dims: [inner.length], data: inner })
    const bytes = joinFields(u64(2), u64(24), u64(48), data(outer))
    const findings = await btf.check(new MemorySource(bytes), readOptions('strict'))
    expect(findings.map(({ code }) => code)).toEqual(['ERR_OVERLAP'])
  })

  it('is checked once after a record that cannot be read', async () => {
    const bytes = btfFile(denseRecord({ dtype: 99, dims: [8], data: new Int8Array(8) }), odd(1), odd(8))
    bytes[32 + 32 + 31] = 1
    const findings = await btf.check(new MemorySource(bytes), readOptions('lenient'))
    expect(findings.map(({ code, path }) => [code, path])).toEqual([
      ['ERR_DTYPE', 'tensors[0].dtype'],
      ['ERR_GAP', 'tensors[1].padding'],
    ])
  })
})

it('a shuffled table of overlapping records takes less than 4 times the file', async () => {
  const count = 500_000
  const first = 8 + 8 * count
  const bytes = new Uint8Array(first + 8 * 50_000 + 24)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, count, true)
  // 7919 is coprime to the number of records, so the offsets are shuffled and each occurs ten times.
  for (let i = 0; i < count; i++) view.setUint32(8 + 8 * i, first + 8 * ((i * 7919) % 50_000), true)
  const source = new WatchedSource(bytes)
  const before = process.memoryUsage().arrayBuffers
  const findings = await btf.check(source, readOptions('lenient', { headerBytes: 2 ** 30 }))
  const taken = process.memoryUsage().arrayBuffers - before
  expect(findings.length).toBe(MAX_FINDINGS + 1)
  // Windows that were read and dropped count until they are collected, so the bytes read are subtracted.
  expect(taken - source.bytesRead).toBeLessThan(4 * bytes.length)
})
