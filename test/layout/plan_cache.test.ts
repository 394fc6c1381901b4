/** Equal requests share one cached plan; any difference that changes a plan gives another one. */
import { describe, expect, test } from 'vitest'
import type { Dtype } from '../../lib/dtype/dtypes.js'
import { affine, type Layout, parseLayout, planReorder, reorder, tensor } from '../../lib/index.js'
import { type JoinOptions, joinLayouts } from '../../lib/layout/plan.js'
import { cachedPlans } from '../../lib/layout/plan_cache.js'

const ASKED = { dtype: 'float32', shape: [2, 5, 3, 4], from: 'bfyx', to: 'byxf' } as const
const CAST = { from: 'float32', to: 'float16', mode: 'spec', saturate: true, round: 'up' } as const
const planOf = (options: object) => joinLayouts({ ...ASKED, ...options } as JoinOptions).plan

describe('cached plans', () => {
  test('are shared by equivalent requests', () => {
    const plan = planOf({})
    expect(planOf({})).toBe(plan)
    expect(planOf({ shape: [...ASKED.shape], from: parseLayout('bfyx'), to: { layout: 'byxf' } })).toBe(plan)
    expect(planOf({ from: { layout: 'bfyx', lower: [0, 0, 0, 0], upper: [0, 0, 0, 0] } })).toBe(plan)
    expect(planOf({ as: undefined, slice: undefined })).toBe(plan)
  })

  test('differ for every difference of a request', () => {
    const slice = { shape: [2, 5, 3, 4], start: [0, 0, 0, 0], step: [1, 1, 1, 1] }
    const others = [
      {},
      { dtype: 'float16' },
      { dtype: 'int32' },
      { shape: [2, 5, 4, 3] },
      { shape: [25, 3, 4, 1] },
      { from: 'byxf' },
      { to: 'yxfb' },
      { from: { layout: 'bfyx', lower: [0, 1, 0, 0] } },
      { from: { layout: 'bfyx', upper: [0, 1, 0, 0] } },
      { to: { layout: 'byxf', lower: [0, 1, 0, 0] } },
      { to: { layout: 'byxf', upper: [0, 1, 0, 0] } },
      { as: 'weights' },
      { casts: [CAST] },
      { casts: [{ ...CAST, mode: 'onnx' }] },
      { casts: [{ ...CAST, to: 'bfloat16' }] },
      { casts: [CAST, { ...CAST, from: 'float16', to: 'float32' }] },
      { slice },
      { slice: { ...slice, step: [-1, 1, 1, 1], start: [1, 0, 0, 0] } },
    ].map(planOf)
    expect(new Set(others).size).toBe(others.length)
  })

  test('differ for a bias of -0, which preserves the sign of -0', async () => {
    const signs = async (bias: number) => {
      const sums = affine(tensor(Float32Array.of(-0, 0)), { scale: 1, bias })
      return [...(await sums.toTypedArray())].map((sum) => Object.is(sum, -0))
    }
    expect(await signs(-0)).toEqual([true, false])
    expect(await signs(0)).toEqual([false, false])
    expect(await signs(-0)).toEqual([true, false])
  })

  test('do not hide the error of a wrong request with the same text', () => {
    const fails = (options: object, code: string) =>
      expect(() => planOf(options)).toThrow(expect.objectContaining({ code }))
    planOf({})
    fails({ shape: ['2', 5, 3, 4] }, 'ERR_ARGUMENT')
    fails({ shape: ['2,5', 3, 4] }, 'ERR_ARGUMENT')
    fails({ shape: '2,5,3,4' }, 'ERR_ARGUMENT')
    fails({ from: { layout: 'bfyx', lower: [0, 0, 0] } }, 'ERR_ARGUMENT')
    fails({ dtype: 'float33' as Dtype }, 'ERR_DTYPE')
    fails({ dtype: Symbol('float32') }, 'ERR_DTYPE')
    fails({ to: 'byxf -' }, 'ERR_LAYOUT_NAME')
  })

  test('are not corrupted by a list that changes while it is read', () => {
    let reads = 0
    const shape = [0, 7]
    Object.defineProperty(shape, 0, { enumerable: true, get: () => (reads++ === 0 ? 3 : 4) })
    const asked = { dtype: 'uint8', from: 'row_major', to: 'column_major' } as const
    joinLayouts({ ...asked, shape })
    expect(joinLayouts({ ...asked, shape: [3, 7] }).plan.destinationBytes).toBe(21)
    expect(joinLayouts({ ...asked, shape: [4, 7] }).plan.destinationBytes).toBe(28)
  })

  test('are not used for a layout that parseLayout did not return', () => {
    const real = parseLayout('byxf')
    let asked = 0
    const own: Layout = {
      ...real,
      storage: (...all) => {
        asked++
        return real.storage(...all)
      },
    }
    expect(planOf({ to: own })).not.toBe(planOf({ to: own }))
    expect(asked).toBe(2)
  })

  test('stay below the byte limit, most recent plans first', () => {
    const first = planOf({})
    for (let extent = 1; extent < 3000; extent++) {
      planOf({ shape: [1, extent, 3, 4] })
      if (extent % 100 === 0) expect(planOf({})).toBe(first)
    }
    const { bytes, maxBytes, count } = cachedPlans()
    expect(bytes).toBeLessThanOrEqual(maxBytes)
    expect(count).toBeGreaterThan(100)
    expect(count).toBeLessThan(3000)
    const last = planOf({ shape: [1, 2999, 3, 4] })
    expect(planOf({ shape: [1, 2999, 3, 4] })).toBe(last)
  })

  test('are not changed through the storage of a result', () => {
    const values = tensor(
      Float32Array.from({ length: 120 }, (_, i) => i),
      { shape: [2, 5, 3, 4] },
    )
    const one = reorder(values, 'b_fs_yx_fsv4')
    expect(() => {
      ;(one.storage.lower as number[])[0] = 9
    }).toThrow(TypeError)
    const other = reorder(values, 'b_fs_yx_fsv4')
    expect(other.storage).toEqual({
      layout: 'b_fs_yx_fsv4',
      elements: 2 * 8 * 12,
      byteLength: 4 * 2 * 8 * 12,
      lower: [0, 0, 0, 0],
      upper: [0, 0, 0, 0],
      bitOrder: 'low-first',
    })
  })
})

describe('explain', () => {
  test('prints kernel, loops, parts and stores', () => {
    const plan = planReorder({
      dtype: 'float32',
      shape: [1, 64, 96, 96],
      from: 'bfyx',
      to: 'b_fs_yx_fsv16',
    })
    const { text, parts, threads, cut, stores, kernel, nodes, ways } = plan.explain()
    expect(parts).toBeGreaterThan(1)
    expect(threads).toBeGreaterThanOrEqual(1)
    expect([cut, stores]).toEqual(['loop', 'cached'])
    const lines = text.split('\n')
    expect(lines[0]).toBe('bfyx to b_fs_yx_fsv16')
    expect(lines[1]).toContain(kernel)
    expect(lines).toHaveLength(2 + ways.length + nodes.length + 3)
    expect(lines[2]).toMatch(
      /^ {2}moves +100 % +blocks +rows and columns of at least a register block +0\.\d\d of a copy's rate$/,
    )
    expect(lines[3]).toMatch(/^ {2}loops +f +4 iterations +source \+147456 +destination \+147456$/)
    expect(lines.at(-1)).toMatch(/^ {2}note +rates of ways are from the benchmark on .*CPU.*, one thread/)
    expect(lines.at(-2)).toMatch(
      /^ {2}stores +cached: [\d.]+ MiB of source and destination are not more than [\d.]+ MiB, .* of a cache/,
    )
  })

  test('prints how few planes are divided, and holes', () => {
    const planes = planReorder({
      dtype: 'float32',
      shape: [1, 3, 224, 224],
      from: 'byxf',
      to: 'bfyx',
    }).explain()
    expect(planes.cut).toBe('loop')
    expect(planes.text).toContain('by iterations of a loop')
    const small = planReorder({
      dtype: 'float32',
      shape: [1, 3, 4, 4],
      from: 'bfyx',
      to: 'b_fs_yx_fsv4',
    }).explain()
    expect([small.cut, small.parts, small.threads]).toEqual(['whole', 1, 1])
    expect(small.text).toContain('with a tail')
  })
})
