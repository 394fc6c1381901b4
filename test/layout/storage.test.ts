/** Binding to shapes: sizes, padding, limits, errors; and the special rules against their formulas. */
import { describe, expect, it } from 'vitest'
import type { StorageOptions } from '../../lib/layout/layout.js'
import { parseLayout } from '../../lib/layout/parse_layout.js'
import { coordinates } from './coordinates.js'

const { floor, ceil } = Math

/** Compares `offsetOf` with a formula of the rule at every coordinate. */
function expectFormula(
  name: string,
  shape: readonly number[],
  formula: (...index: number[]) => number,
  options: StorageOptions = {},
): void {
  const layout = parseLayout(name)
  for (const index of coordinates(shape))
    expect(layout.offsetOf(shape, index, options)).toBe(formula(...index))
}

function code(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as { code: string }).code
  }
  return 'no error'
}

describe('offsets', () => {
  it('follow the worked example of one block', () => {
    const layout = parseLayout('b_fs_yx_fsv16')
    expect(layout.storage([2, 2, 2, 2]).elements).toBe(128)
    expect(layout.offsetOf([2, 2, 2, 2], [1, 1, 1, 0])).toBe(97)
    expect(layout.coordinateOf([2, 2, 2, 2], 97)).toEqual([1, 1, 1, 0])
    expect(layout.coordinateOf([2, 2, 2, 2], 98)).toBeNull()
  })

  it('follow the formula of two blocks of one axis', () => {
    expectFormula('os_is_yx_isa8_osv8_isv4', [3, 19, 5, 7], (o, i, y, x) => {
      const block = ((floor(o / 8) + floor(i / 32)) * 5 + y) * 7 + x
      return block * 256 + (floor(i / 4) % 8) * 32 + (o % 8) * 4 + (i % 4)
    })
  })

  it.each([
    ['os_is_yx_osv32_isv4_swizzled_by_2', 'os_is_yx_osv32_isv4', 2],
    ['os_is_yx_osv32_isv4_swizzled_by_4', 'os_is_yx_osv32_isv4', 4],
    ['os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_4', 'os_is_yx_osa4_isa8_osv8_isv4', 4],
    ['os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_2', 'os_is_yx_osa4_isa8_osv8_isv4', 2],
    ['os_is_yx_osa2_isa8_osv16_isv4_swizzled_by_2', 'os_is_yx_osa2_isa8_osv16_isv4', 2],
    ['os_is_zyx_osa2_isa8_osv16_isv4_swizzled_by_2', 'os_is_zyx_osa2_isa8_osv16_isv4', 2],
    ['os_is_yx_osa2_isa8_osv16_isv4_swizzled_by_4', 'os_is_yx_osa2_isa8_osv16_isv4', 4],
  ])('of %s equal the offsets of %s with permuted channels', (swizzled, plain, step) => {
    const shape = [64, 5, 1, 2, 3].slice(0, parseLayout(plain).axes.length)
    expectFormula(swizzled, shape, (o, ...others) => {
      const permuted = 32 * floor(o / 32) + (32 / step) * (o % step) + floor((o % 32) / step)
      return parseLayout(plain).offsetOf(shape, [permuted, ...others])
    })
  })

  it.each([8, 16])('of iy_xs_os_xsv2_osv%i__ao32 pack the last odd column', (size) => {
    const [O, I, Y, X] = [37, 2, 2, 5]
    expectFormula(`iy_xs_os_xsv2_osv${size}__ao32`, [O, I, Y, X], (o, i, y, x) => {
      const row = ((i * Y + y) * ceil(X / 2) + floor(x / 2)) * 128
      if (x === X - 1) return row + 64 * floor(o / 32) + (o % 32)
      return row + floor(o / size) * 2 * size + (x % 2) * size + (o % size)
    })
    const { side } = parseLayout(`iy_xs_os_xsv2_osv${size}__ao32`).storage([O, I, Y, X])
    expect(side.pieces.map(({ axis, lo, hi }) => [axis, lo, hi])).toEqual([
      [3, 0, 4],
      [3, 4, Number.MAX_SAFE_INTEGER],
    ])
  })

  it.each([
    [
      'os_iyx_osv16',
      7,
      (o: number, i: number) => 2 * ((o % 16) + 16 * (floor(i / 2) + floor(o / 16) * 4)) + (i % 2),
    ],
    [
      'os_iyx_osv32',
      7,
      (o: number, i: number) => 2 * ((o % 16) + 16 * (i + floor(o / 32) * 7)) + (floor(o / 16) % 2),
    ],
    [
      'os_iyx_osv64',
      7,
      (o: number, i: number) =>
        2 * (16 * (floor(o / 32) % 2) + (o % 16) + 32 * (i + floor(o / 64) * 7)) + (floor(o / 16) % 2),
    ],
    ['oiyx', 7, (o: number, i: number) => o * 7 + i],
  ])('of %s with 4-bit types count nibbles', (name, inputs, formula) => {
    expectFormula(name, [70, inputs, 1, 1], formula, { dtype: 'uint4' })
  })

  it('are exact above 2^32', () => {
    const layout = parseLayout('b_fs_yx_fsv16')
    const shape = [3, 2 ** 20 + 1, 2 ** 10, 2 ** 10]
    const last = [2, 2 ** 20, 2 ** 10 - 1, 2 ** 10 - 1]
    const offset = Number(
      (((2n * (2n ** 16n + 1n) + 2n ** 16n) * 2n ** 10n + (2n ** 10n - 1n)) * 2n ** 10n + (2n ** 10n - 1n)) *
        16n,
    )
    expect(layout.offsetOf(shape, last)).toBe(offset)
    expect(layout.coordinateOf(shape, offset)).toEqual(last)
    expect(layout.coordinateOf(shape, offset + 1)).toBeNull()
  })

  it('shift with the padding before an axis, inside the block', () => {
    const layout = parseLayout('b_fs_yx_fsv16')
    expect(layout.offsetOf([1, 2, 1, 1], [0, 0, 0, 0], { lower: [0, 3, 0, 0] })).toBe(3)
    expect(layout.coordinateOf([1, 2, 1, 1], 2, { lower: [0, 3, 0, 0] })).toBeNull()
  })

  it('refuse an index outside the shape', () => {
    const layout = parseLayout('bfyx')
    expect(code(() => layout.offsetOf([1, 2, 3, 4], [0, 2, 0, 0]))).toBe('ERR_RANGE')
    expect(code(() => layout.offsetOf([1, 2, 3, 4], [0, -1, 0, 0]))).toBe('ERR_ARGUMENT')
    expect(code(() => layout.offsetOf([1, 2, 3, 4], [0, 0.5, 0, 0]))).toBe('ERR_ARGUMENT')
    expect(code(() => layout.offsetOf([1, 2, 3, 4], [0, 0]))).toBe('ERR_ARGUMENT')
    expect(code(() => layout.offsetOf([1, 2, 0, 4], [0, 0, 0, 0]))).toBe('ERR_RANGE')
    for (const offset of [-1, 24, 0.5, Number.NaN]) {
      expect(code(() => layout.coordinateOf([1, 2, 3, 4], offset))).toBe('ERR_RANGE')
    }
  })
})

describe('storage', () => {
  it('appends ones to a shorter shape', () => {
    const storage = parseLayout('b_fs_yx_fsv16').storage([3, 19])
    expect(storage.extents).toEqual([3, 19, 1, 1])
    expect(storage.digits!.map(({ radix }) => radix)).toEqual([3, 2, 1, 1, 16])
    expect(parseLayout('b_fs_yx_fsv16').offsetOf([3, 19], [1, 17])).toBe(49)
    expect(parseLayout('b_fs_yx_fsv16').coordinateOf([3, 19], 49)).toEqual([1, 17])
  })

  it('counts bytes by element type', () => {
    const layout = parseLayout('os_iyx_osv16')
    expect(layout.storage([19, 38, 1, 1]).byteLength).toBe(1216)
    expect(layout.storage([19, 38, 1, 1], { dtype: 'float16' }).byteLength).toBe(2432)
    expect(layout.storage([19, 38, 1, 1], { dtype: 'int4' }).byteLength).toBe(608)
    expect(parseLayout('row_major').storage([3], { dtype: 'uint4' }).byteLength).toBe(2)
    expect(code(() => layout.storage([1], { dtype: 'string' }))).toBe('ERR_DTYPE')
    expect(code(() => layout.storage([1], { dtype: 'float13' as 'float16' }))).toBe('ERR_DTYPE')
  })

  it('binds row_major at rank 0, with one digit list', () => {
    const storage = parseLayout('row_major').storage([])
    expect(storage).toMatchObject({ elements: 1, byteLength: 1, digits: [], extents: [] })
    expect(storage.side.pieces).toEqual([{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits: [] }])
    expect(parseLayout('row_major').offsetOf([], [])).toBe(0)
    expect(parseLayout('row_major').coordinateOf([], 0)).toEqual([])
  })

  it('stores empty tensors', () => {
    expect(parseLayout('b_fs_yx_fsv16').storage([2, 0, 5, 5]).elements).toBe(0)
    expect(parseLayout('b_fs_yx_fsv16').storage([2, 0, 5, 5], { upper: [0, 1, 0, 0] }).elements).toBe(800)
    expect(parseLayout('bfyx').storage([2 ** 40, 2 ** 40, 0, 1]).elements).toBe(0)
    expect(parseLayout('iy_xs_os_xsv2_osv8__ao32').storage([0, 1, 1, 3]).elements).toBe(0)
  })

  it('refuses sizes above 2^53 - 1', () => {
    const layout = parseLayout('b_fs_yx_fsv16')
    expect(code(() => layout.storage([2 ** 27, 2 ** 27, 1, 1]))).toBe('ERR_OVERFLOW')
    expect(code(() => layout.storage([1, Number.MAX_SAFE_INTEGER, 1, 1]))).toBe('ERR_OVERFLOW')
    expect(code(() => parseLayout('bfyx').storage([2 ** 53 - 1], { lower: [1] }))).toBe('ERR_OVERFLOW')
    expect(code(() => parseLayout('bfyx').storage([2 ** 51], { dtype: 'float64' }))).toBe('ERR_OVERFLOW')
    expect(() => layout.storage([2 ** 40, 2 ** 40])).toThrow('1208925819614629174706176')
  })

  it.each(
    [[-1], [1.5], [Number.NaN], [2 ** 53], ['3'], [3n], [undefined], '33', null].map((shape) => [
      String(shape),
      shape,
    ]),
  )('refuses the shape %s', (_, shape) => {
    expect(code(() => parseLayout('bfyx').storage(shape as unknown as number[]))).toBe('ERR_ARGUMENT')
  })

  it.each([
    ['bfyx', [1, 2, 3, 4, 5], {}],
    ['bs_fs_fsv8_bsv8', [1, 2, 3, 4], {}],
    ['image_2d_rgba', [1, 19, 5, 7], {}],
    ['image_2d_rgba', [2, 3, 5, 7], {}],
    ['nv12', [1, 2, 3, 3], {}],
    ['winograd_2x3_s1_fused_weights', [19, 3, 3, 4], {}],
    ['winograd_2x3_s1_weights', [16, 3, 3, 8], {}],
    ['winograd_6x3_s1_fused_weights', [8, 3, 3, 8], {}],
    ['image_2d_weights_winograd_6x3_s1_fbxyb', [16, 3, 3, 4], {}],
    ['os_iyx_osv32', [32, 2, 3, 3], { dtype: 'int4' }],
    ['os_iyx_osv64', [64, 2, 1, 2], { dtype: 'uint4' }],
  ] as const)('%s refuses [%s]', (name, shape, options) => {
    expect(code(() => parseLayout(name).storage(shape, options))).toBe('ERR_LAYOUT_SHAPE')
  })

  it('takes explicit padding for data layouts only', () => {
    const pads = { lower: [0, 1, 0, 0] }
    expect(parseLayout('bfyx').storage([1, 2, 3, 4], pads).elements).toBe(36)
    expect(code(() => parseLayout('oiyx').storage([1, 2, 3, 4], pads))).toBe('ERR_ARGUMENT')
    expect(code(() => parseLayout('image_2d_rgba').storage([1, 3, 3, 4], pads))).toBe('ERR_ARGUMENT')
    expect(parseLayout('oiyx').storage([1, 2, 3, 4], { lower: [0, 0, 0, 0] }).elements).toBe(24)
  })

  it('takes padding over the shape or over all axes', () => {
    const layout = parseLayout('bfyx')
    expect(layout.storage([2, 3], { lower: [0, 1] }).elements).toBe(8)
    expect(layout.storage([2, 3], { lower: [0, 1, 0, 0], upper: [0, 0, 1, 0] }).elements).toBe(16)
    expect(code(() => layout.storage([2, 3], { lower: [0, 1, 0] }))).toBe('ERR_ARGUMENT')
    expect(code(() => layout.storage([2, 3], { upper: [0, -1] }))).toBe('ERR_ARGUMENT')
  })

  it('answers each caller for its own shape although the last storage is remembered', () => {
    const layout = parseLayout('b_fs_yx_fsv4')
    const shape = [1, 3, 2, 2]
    expect(layout.storage(shape).elements).toBe(16)
    shape[1] = 5
    expect(layout.storage(shape).elements).toBe(32)
    expect(layout.storage(shape, { lower: [1, 0, 0, 0] }).elements).toBe(64)
    expect(layout.storage(shape).elements).toBe(32)
  })

  it('equals the named layout where an older name is aligned instead of blocked', () => {
    const layout = parseLayout('bs_fs_fsv8_bsv16')
    expectFormula('bs_fs_fsv8_bsv16', [19, 13], (b, f) => (floor(b / 16) * 16 + f) * 16 + (b % 16))
    expect(layout.storage([19, 13]).elements).toBe(512)
  })
})
