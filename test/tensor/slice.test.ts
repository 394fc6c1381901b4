/** Slices compared with a simple model that picks elements one by one. */
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import type { ByteSource } from '../../lib/bytes/source.js'
import {
  type AxisRange,
  asLayout,
  type DenseTensor,
  type Dtype,
  materialize,
  parseLayout,
  reorder,
  type SliceRange,
  serialize,
  slice,
  tensor,
} from '../../lib/index.js'
import { StoredTensor } from '../../lib/tensor/dense.js'

function ramp(shape: readonly number[], dtype: Dtype = 'int32'): DenseTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const values = Array.from({ length: count }, (_, i) => (dtype.endsWith('int4') ? i % 8 : (i % 251) + 1))
  return tensor(values, { dtype, shape })
}

/** The indices of Python's `list(range(extent))[start:end:step]`. */
function positions(extent: number, range: SliceRange): number[] {
  const [start, end, step] = numbersOf(range)
  const all = Array.from({ length: extent }, (_, i) => i)
  const ordered = step > 0 ? all : all.reverse()
  const fromStart = (position: number): number => (position < 0 ? position + extent : position)
  const from = start === undefined ? undefined : fromStart(start)
  const to = end === undefined ? undefined : fromStart(end)
  const isIn = (i: number): boolean =>
    step > 0
      ? (from === undefined || i >= from) && (to === undefined || i < to)
      : (from === undefined || i <= from) && (to === undefined || i > to)
  return ordered.filter(isIn).filter((_, n) => n % Math.abs(step) === 0)
}

/** Start, end and step of a range in any of its forms. */
function numbersOf(range: SliceRange): [number | undefined, number | undefined, number] {
  const [start, end, step] = Array.isArray(range)
    ? range
    : [(range as AxisRange)?.start, (range as AxisRange)?.end, (range as AxisRange)?.step]
  return [start ?? undefined, end ?? undefined, step ?? 1]
}

function* picks(lists: readonly (readonly number[])[]): Generator<number[]> {
  const [first, ...rest] = lists
  if (!first) yield []
  else for (const position of first) for (const others of picks(rest)) yield [position, ...others]
}

/** The elements of a slice, read with `at` from the whole tensor. */
function model(whole: DenseTensor, ranges: readonly SliceRange[]): number[] {
  const lists = whole.shape.map((extent, axis) => positions(extent, ranges[axis]))
  return [...picks(lists)].map((index) => Number(whole.at(...index)))
}

const aPosition = fc.integer({ min: -9, max: 9 })
const aStep = fc.constantFrom(1, 1, 2, 3, 5, -1, -2, -3)
const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary, weight: 3 }, { arbitrary: fc.constantFrom(null, undefined), weight: 1 })
const aRange: fc.Arbitrary<SliceRange> = fc.oneof(
  fc.constant(null),
  fc.record({ start: aPosition, end: aPosition, step: aStep }, { requiredKeys: [] }),
  fc.tuple(maybe(aPosition), maybe(aPosition)),
  fc.tuple(maybe(aPosition), maybe(aPosition), maybe(aStep)),
)
const layouts = [
  'row_major',
  'column_major',
  'bfyx',
  'byxf',
  'b_fs_yx_fsv4',
  'b_fs_yx_fsv16',
  'bs_fs_yx_bsv4_fsv2',
  'fs_b_yx_fsv32',
]
const aShape = fc.tuple(...[4, 7, 5, 6].map((max) => fc.integer({ min: 1, max })))

describe('a slice', () => {
  it.each(layouts)('of %s has the elements that Python selects', async (name) => {
    const property = fc.asyncProperty(aShape, fc.array(aRange, { maxLength: 4 }), async (shape, ranges) => {
      const whole = reorder(ramp(shape), name)
      const part = slice(whole, ranges)
      expect([...(await part.toTypedArray())].map(Number)).toEqual(model(whole, ranges))
      expect(part.storage.layout).toBe(whole.storage.layout)
    })
    await fc.assert(property, { numRuns: 40 })
  })

  it('of a stored layout reads that layout', async () => {
    const property = fc.asyncProperty(
      fc.constantFrom(...layouts),
      fc.constantFrom(...layouts),
      aShape,
      fc.array(aRange, { maxLength: 4 }),
      fc.constantFrom<Dtype>('uint8', 'uint16', 'float64', 'int4'),
      async (from, to, shape, ranges, dtype) => {
        const stored = await materialize(reorder(ramp(shape, dtype), from))
        const part = reorder(slice(stored, ranges), to)
        const expected = model(stored, ranges)
        expect([...(await part.toTypedArray())].map(Number)).toEqual(expected)
        // The bytes in the new layout hold the same elements.
        const again = await materialize(part)
        expect([...(await again.toTypedArray())].map(Number)).toEqual(expected)
      },
    )
    await fc.assert(property, { numRuns: 300 })
  })

  it('of a slice is one slice', async () => {
    const property = fc.asyncProperty(
      aShape,
      fc.array(aRange, { maxLength: 4 }),
      fc.array(aRange, { maxLength: 4 }),
      async (shape, first, second) => {
        const whole = ramp(shape)
        const once = await materialize(slice(whole, first))
        const twice = slice(slice(whole, first), second)
        expect([...(await twice.toTypedArray())].map(Number)).toEqual(model(once, second))
      },
    )
    await fc.assert(property, { numRuns: 200 })
  })

  it('computes a byte range equal to that range of the whole', async () => {
    const whole = reorder(ramp([2, 19, 5, 7]), 'b_fs_yx_fsv16')
    const part = reorder(slice(whole, [null, { start: 1, step: 3 }, { step: -1 }]), 'byxf')
    const all = await part.bytes()
    for (const [start, end] of [
      [0, 1],
      [3, 41],
      [all.byteLength - 5, all.byteLength],
      [7, 7],
    ] as const) {
      expect(await part.bytes({ start, end })).toEqual(all.slice(start, end))
      expect(part.bytesSync({ start, end })).toEqual(all.slice(start, end))
    }
  })

  it('of the outermost axis is a view, without a copy', async () => {
    const whole = ramp([6, 4, 5])
    const part = slice(whole, [{ start: 2, end: 5 }])
    expect((await part.bytes()).buffer).toBe((await whole.bytes()).buffer)
    const batch = slice(await materialize(reorder(ramp([4, 16, 3, 3]), 'b_fs_yx_fsv16')), [
      { start: 1, end: 3 },
    ])
    expect(batch.storage.byteLength).toBe(2 * 16 * 9 * 4)
    expect((await batch.bytes()).byteOffset).toBeGreaterThan(0)
  })

  it('can be saved, with the reported shape', async () => {
    const part = slice(ramp([3, 4]), [null, { step: 2 }])
    expect(part.shape).toEqual([3, 2])
    expect(part.at(2, 1)).toBe(11)
    expect(() => part.at(2, 2)).toThrow(expect.objectContaining({ code: 'ERR_RANGE' }))
    expect(await serialize(part)).toEqual(await serialize(await materialize(part)))
  })

  it('accepts lists and objects alike', () => {
    expect(slice(ramp([6, 5, 4]), [[1, 4], [null, undefined, -2], undefined]).shape).toEqual([3, 3, 4])
    expect(slice(ramp([6]), [[-2, null]]).at(0)).toBe(5)
    expect(slice(ramp([6]), [{ start: null, end: 3 }]).shape).toEqual([3])
  })

  test.each([
    ['a step of 0', [{ step: 0 }], 'ranges[0].step is 0; it must not be 0.'],
    ['a half step', [null, [0, 2, 0.5]], 'ranges[1].step is 0.5; it must be a whole number.'],
    ['a text', ['0:2'], 'ranges[0] is "0:2"; it must be { start, end, step } or [start, stop, step].'],
    ['a plain index', [1], 'ranges[0] is 1; it must be { start, end, step } or [start, stop, step].'],
    ['a list of one', [[1]], 'ranges[0] has 1 entries; a list is [start, stop] or [start, stop, step].'],
    ['a list of four', [[0, 1, 1, 1]], 'ranges[0] has 4 entries'],
    ['an unknown field', [{ stop: 1 }], 'ranges[0] has the unknown field "stop"; expected start, end, step.'],
    ['more ranges than axes', [null, null, null], 'ranges has 3 entries; the tensor has rank 2.'],
    ['no list', { start: 1 }, 'ranges is an object; it must be a list with one range per axis.'],
    ['NaN', [{ start: Number.NaN }], 'ranges[0].start is NaN; it must be a whole number.'],
  ])('rejects %s', (_, ranges, message) => {
    const error = expect.objectContaining({ code: 'ERR_ARGUMENT', message: expect.stringContaining(message) })
    expect(() => slice(ramp([2, 3]), ranges as SliceRange[])).toThrow(error)
  })

  it('clamps positions beyond an axis to its ends', () => {
    const far = Number.MAX_SAFE_INTEGER
    expect(slice(ramp([5]), [{ start: -far, end: far }]).shape).toEqual([5])
    expect(slice(ramp([5]), [{ start: 3, end: far, step: far }]).shape).toEqual([1])
    expect(slice(ramp([5]), [{ start: far, end: -far, step: -1 }]).shape).toEqual([5])
  })
})

/** A user source in memory that records the ranges of its reads. */
class CountingSource implements ByteSource {
  readonly byteLength: number
  bytesRead = 0
  largest = 0
  readonly #memory: MemorySource

  constructor(bytes: Uint8Array) {
    this.#memory = new MemorySource(bytes)
    this.byteLength = bytes.byteLength
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    this.bytesRead += end - start
    this.largest = Math.max(this.largest, end - start)
    return this.#memory.read(start, end)
  }
}

describe('a source that is read by ranges', () => {
  const shape = [1, 64, 512, 256]
  const bytes = new Uint8Array(64 * 512 * 256 * 4).map((_, i) => (i * 2654435761) >>> 24)

  it('is read only where a part needs it', async () => {
    const source = new CountingSource(bytes)
    const whole = new StoredTensor({ source, start: 0, dtype: 'float32', shape })
    const part = slice(whole, [null, { start: 8, end: 10 }, { start: 100, end: 110 }])
    const expected = slice(
      new StoredTensor({ source: new MemorySource(bytes), start: 0, dtype: 'float32', shape }),
      [null, { start: 8, end: 10 }, { start: 100, end: 110 }],
    )
    expect(Buffer.compare(await part.bytes(), await expected.bytes())).toBe(0)
    expect(source.bytesRead).toBe(2 * 10 * 256 * 4)
  })

  it('is reordered with small reads', async () => {
    const source = new CountingSource(bytes)
    const whole = new StoredTensor({ source, start: 0, dtype: 'float32', shape })
    const found = await reorder(whole, 'b_fs_yx_fsv16').bytes()
    const stored = asLayout(
      new StoredTensor({
        source: new MemorySource(found),
        start: 0,
        dtype: 'float32',
        shape: [found.length / 4],
      }),
      parseLayout('b_fs_yx_fsv16'),
      shape,
    )
    expect(Buffer.compare(await reorder(stored, 'row_major').bytes(), bytes)).toBe(0)
    expect(source.largest).toBeLessThanOrEqual(16 * 1024 * 1024)
    expect(source.bytesRead).toBeLessThan(bytes.length * 1.1)
  })
})
