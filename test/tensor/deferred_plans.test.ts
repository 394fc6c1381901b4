/** Lazy tensors check arguments at once and create their native plan on the first read. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  affine,
  asLayout,
  cast,
  type DenseTensor,
  dequantize,
  lazyTensor,
  open,
  quantize,
  reorder,
  save,
  slice,
  tensor,
} from '../../lib/index.js'
import { native } from '../../lib/native/addon.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-deferred-plans-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Extents that no other test uses, so that no other test's plan is in the cache. */
let extent = 1000
function values(): DenseTensor {
  extent += 1
  const shape = [1, 6, 3, extent]
  return tensor(
    Array.from({ length: 18 * extent }, (_, i) => i % 100),
    { dtype: 'float32', shape, name: 'v' },
  )
}

/** Bytes of the native plans that `action` creates. */
function plannedBytes(action: () => void): number {
  const before = native().heldPlanBytes()
  action()
  return native().heldPlanBytes() - before
}

const OPERATIONS: [string, (whole: DenseTensor) => DenseTensor][] = [
  ['reorder', (whole) => reorder(whole, 'b_fs_yx_fsv4')],
  ['reorder with padding', (whole) => reorder(whole, 'bfyx', { lower: [0, 0, 1, 1] })],
  ['slice', (whole) => slice(whole, [null, [1, 5, 2], null, [-1, null, -3]])],
  ['cast', (whole) => cast(whole, 'float16')],
  ['quantize', (whole) => quantize(whole, 'int8', { scale: 0.5 })],
  ['dequantize', (whole) => dequantize(quantize(whole, 'uint8', { scale: 2 }), { scale: 2 })],
  ['affine', (whole) => affine(whole, { mean: [1, 2, 3, 4, 5, 6], std: 2, axis: 1 })],
]

describe('the native plan of a lazy tensor', () => {
  it.each(OPERATIONS)('%s creates it on the first read', async (_, operation) => {
    const whole = values()
    let lazy!: DenseTensor
    const metadata = plannedBytes(() => {
      lazy = operation(whole)
      const { shape, dtype, size, sizeExact, storage, name, metadata: map, hasData } = lazy
      expect([shape.length, name, hasData, map.size]).toEqual([4, 'v', true, 0])
      expect(BigInt(size)).toBe(sizeExact)
      expect([dtype, storage.byteLength].every(Boolean)).toBe(true)
    })
    expect(metadata).toBe(0)
    expect(plannedBytes(() => lazy.bytesSync({ start: 0, end: 1 }))).toBeGreaterThan(0)
    // The plan is shared by later reads.
    expect(plannedBytes(() => lazy.bytesSync())).toBe(0)
    const first = lazy.at(...lazy.shape.map(() => 0))
    expect((await lazy.toTypedArray())[0]).toBe(first)
  })

  it('is not created for the steps of a chain', async () => {
    const whole = values()
    let last = whole
    const planned = plannedBytes(() => {
      for (let i = 0; i < 100; i++) {
        last = reorder(last, i % 2 === 0 ? 'byxf' : 'b_fs_yx_fsv2')
        last = slice(last, [null, null, null, [1, null]])
        last = cast(last, i % 2 === 0 ? 'float64' : 'float32')
      }
    })
    expect([planned, last.shape]).toEqual([0, [1, 6, 3, extent - 100]])
    const expected = await slice(whole, [null, null, null, [100, null]]).toTypedArray()
    expect(await last.toTypedArray()).toEqual(expected)
  })

  it('is created by save, also for a file source', async () => {
    const path = join(folder, 'v.npy')
    const whole = values()
    await save(path, [whole])
    using file = await open(path)
    const lazy = reorder(cast(file.dense(0), 'int16'), 'byxf')
    expect(native().heldPlanBytes()).toBe(plannedBytes(() => lazy.storage) + native().heldPlanBytes())
    const target = join(folder, 'w.npy')
    await save(target, [lazy])
    using again = await open(target)
    expect(again.dense(0).bytesSync()).toEqual(lazy.bytesSync())
  })
})

describe('a lazy tensor rejects at once', () => {
  const whole = values()
  it.each<[string, () => unknown, string]>([
    ['an unknown layout', () => reorder(whole, 'nothing'), 'ERR_LAYOUT_NAME'],
    [
      'a layout of other axes',
      () => reorder(asLayout(whole, 'bfyx', whole.shape), 'oiyx'),
      'ERR_LAYOUT_JOIN',
    ],
    ['a layout of fewer axes', () => reorder(whole, 'bf'), 'ERR_LAYOUT_SHAPE'],
    ['an extent that the layout forbids', () => reorder(whole, 'image_2d_rgba'), 'ERR_LAYOUT_SHAPE'],
    ['padding of a weights layout', () => reorder(whole, 'oiyx', { lower: [1, 0, 0, 0] }), 'ERR_ARGUMENT'],
    ['padding of other axes', () => reorder(whole, 'bfyx', { upper: [1] }), 'ERR_ARGUMENT'],
    ['padding beyond 2^53', () => reorder(whole, 'bfyx', { lower: [2 ** 53 - 1, 0, 0, 0] }), 'ERR_OVERFLOW'],
    [
      'storage beyond 2^53 bytes',
      () => reorder(whole, 'bfyx', { lower: [2 ** 50, 0, 0, 0] }),
      'ERR_OVERFLOW',
    ],
    ['2-bit elements', () => reorder(cast(whole, 'int2'), 'byxf'), 'ERR_UNSUPPORTED'],
    ['strings', () => cast(whole, 'string'), 'ERR_UNSUPPORTED'],
    ['an unknown type', () => cast(whole, 'float17' as never), 'ERR_DTYPE'],
    ['a scale of 0', () => quantize(whole, 'int8', { scale: 0 }), 'ERR_QUANTIZATION'],
  ])('%s', (_, action, code) => {
    expect(action).toThrow(expect.objectContaining({ code }))
  })

  it('source offsets beyond 2^56, which only the planner can detect', () => {
    const huge = lazyTensor(() => new Uint8Array(0), { dtype: 'uint8', shape: [3, 2 ** 40] })
    const column = slice(huge, [null, [0, 1]])
    expect(reorder(column, 'row_major', { upper: [2 ** 10, 0] }).storage.elements).toBe(2 ** 10 + 3)
    const far = () => reorder(column, 'row_major', { upper: [2 ** 50, 0] })
    expect(far).toThrow(
      expect.objectContaining({ code: 'ERR_OVERFLOW', message: expect.stringContaining('2^56') }),
    )
  })
})
