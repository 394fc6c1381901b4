/** Every layout of the catalogue and the most used pairs give the same bytes on a device as on the CPU. */
import { describe, it } from 'vitest'
import type { Dtype } from '../../lib/dtype/dtypes.js'
import type { Layout } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import type { PlacedLayout } from '../../lib/layout/plan.js'
import { compareWithCpu, hasDevice } from './compare.js'

const DTYPES: readonly Dtype[] = ['uint4', 'uint8', 'float16', 'float32', 'float64']

/** Extents that are not multiples of the blocks, where the layout allows them. */
function shapeOf(layout: Layout, round: number): number[] {
  const isWinograd = layout.name.includes('winograd') && !layout.name.endsWith('_data')
  const given: Record<string, number> = {
    ...(layout.name === 'nv12' && { c: 1 + (round % 2) }),
    ...(layout.name === 'image_2d_rgba' && { b: 1, f: 3 + (round % 2) }),
    ...(isWinograd && { x: layout.name.includes('6x3') ? 8 : 4, y: 3, o: 16 }),
  }
  const small = layout.axes.length > 5
  return [...layout.axes].map((letter, axis) => {
    const odd = 'bfoig'.includes(letter) ? (small ? [5, 3, 2] : [19, 17, 33]) : small ? [3, 2, 1] : [5, 3, 7]
    return given[letter] ?? odd[(axis + round) % odd.length]!
  })
}

/** Explicit padding for data layouts, different at each edge. */
function padded(layout: Layout, shape: readonly number[], isPadded: boolean): Layout | PlacedLayout {
  if (!isPadded || (layout.kind !== 'data' && layout.kind !== 'row_major')) return layout
  return {
    layout,
    lower: shape.map((_, axis) => (axis + 1) % 3),
    upper: shape.map((_, axis) => axis % 2),
  }
}

describe.skipIf(!hasDevice)('on an OpenCL device', () => {
  const rowMajor = parseLayout('row_major')

  it.each(LAYOUT_NAMES)('%s converts from and to row-major order', async (name) => {
    const layout = parseLayout(name)
    for (const [round, dtype] of DTYPES.entries()) {
      const isFlat = dtype === 'uint4' && /^os_iyx_osv(32|64)$/.test(name)
      const shape = isFlat ? [19, 17, 1, 1] : shapeOf(layout, round)
      const [one, other] = [padded(layout, shape, round % 2 === 1), padded(rowMajor, shape, round > 2)]
      // A few staging variants per layout; the whole catalogue covers every variant at all element widths.
      const isCopied = round === name.length % DTYPES.length
      await compareWithCpu({ dtype, shape, from: other, to: one, isCopied })
      await compareWithCpu({ dtype, shape, from: one, to: other, isCopied })
    }
  })

  /** The most used pairs, in both directions. */
  const PAIRS: readonly (readonly [string, string, readonly number[]])[] = [
    ['bfyx', 'byxf', [2, 35, 9, 7]],
    ['bfyx', 'byxf', [2, 3, 21, 13]],
    ['bfyx', 'b_fs_yx_fsv16', [2, 35, 9, 7]],
    ['bfyx', 'b_fs_yx_fsv32', [2, 35, 9, 7]],
    ['bfyx', 'b_fs_yx_fsv4', [2, 35, 9, 7]],
    ['bfyx', 'b_fs_yx_fsv8', [2, 35, 9, 7]],
    ['byxf', 'b_fs_yx_fsv16', [2, 35, 9, 7]],
    ['byxf', 'b_fs_yx_fsv32', [2, 32, 9, 7]],
    ['oiyx', 'os_is_yx_isv16_osv16', [35, 19, 3, 3]],
    ['oiyx', 'os_iyx_osv16', [35, 19, 3, 3]],
    ['oiyx', 'os_iyx_osv32', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_osv16_isv16', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_osv8_isv4', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_osv16_isv4', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_osv32_isv4', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_isa8_osv8_isv4', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_isa8_osv16_isv4', [35, 19, 3, 3]],
    ['oiyx', 'os_is_yx_osv32_isv2', [35, 19, 1, 1]],
    ['oiyx', 'os_is_yx_osv64_isv2', [67, 19, 1, 1]],
    ['ioyx', 'os_iyx_osv64', [19, 67, 1, 1]],
    ['b_fs_yx_fsv16', 'b_fs_yx_fsv32', [2, 35, 9, 7]],
    ['b_fs_yx_fsv4', 'b_fs_yx_fsv16', [2, 35, 9, 7]],
    ['bfyx', 'bs_fs_yx_bsv16_fsv16', [19, 35, 3, 5]],
    ['bfyx', 'bs_fs_yx_bsv32_fsv32', [35, 35, 3, 5]],
    ['bfyx', 'bs_fs_yx_bsv32_fsv16', [35, 35, 3, 5]],
    ['bfzyx', 'b_fs_zyx_fsv16', [2, 19, 3, 5, 7]],
    ['bfzyx', 'bzyxf', [2, 19, 3, 5, 7]],
    ['goiyx', 'gs_oiyx_gsv16', [19, 2, 1, 3, 3]],
  ]

  it.each(PAIRS)('%s and %s, [%j]', async (from, to, shape) => {
    for (const dtype of DTYPES) {
      // 4-bit weights occur in fully-connected layers.
      const stored = dtype === 'uint4' && from.startsWith('o') ? [...shape.slice(0, 2), 1, 1] : shape
      await compareWithCpu({ dtype, shape: stored, from, to })
      await compareWithCpu({ dtype, shape: stored, from: to, to: from, isCopied: true })
    }
  })

  /** Every form of a kernel that is specialized for a large plan. */
  const OWN_KERNELS: readonly (readonly [string, string, string, Dtype, readonly number[]])[] = [
    ['tiles', 'bfyx', 'byxf', 'float32', [2, 35, 9, 13]],
    ['tiles with tails', 'bfyx', 'b_fs_yx_fsv16', 'uint8', [2, 35, 9, 13]],
    ['tiles of 8 bytes', 'b_fs_yx_fsv16', 'bfyx', 'float64', [2, 35, 9, 13]],
    ['runs', 'byxf', 'b_fs_yx_fsv16', 'float16', [2, 32, 9, 13]],
    ['runs with a tail', 'byxf', 'b_fs_yx_fsv16', 'uint8', [2, 35, 9, 13]],
    ['k x n interleave', 'oiyx', 'os_is_yx_osv16_isv4', 'uint8', [35, 19, 3, 3]],
    ['tiles of many loops', 'oiyx', 'os_is_yx_isa8_osv16_isv4', 'uint8', [35, 67, 3, 3]],
    ['tiles of short loops', 'byxf', 'bfyx', 'uint8', [2, 3, 21, 13]],
    ['tiles that leave by words', 'bfyx', 'b_fs_yx_fsv4', 'float16', [2, 35, 9, 13]],
    ['nibbles', 'oiyx', 'os_is_yx_osv32_isv2', 'uint4', [35, 19, 1, 1]],
    ['two nests', 'oiyx', 'iy_xs_os_xsv2_osv16__ao32', 'float16', [35, 5, 3, 3]],
  ]

  it.each(OWN_KERNELS)('a specialized kernel: %s, %s to %s', async (_, from, to, dtype, shape) => {
    const own = { ownKernelBytes: 0 }
    await compareWithCpu({ dtype, shape, from, to, settings: own })
    await compareWithCpu({ dtype, shape, from, to, settings: own, isCopied: true })
  })

  it('looks offsets up where extents, paddings and blocks do not divide each other', async () => {
    const from = { layout: 'b_fs_yx_fsv16', lower: [1, 3, 0, 2], upper: [0, 1, 2, 0] }
    const to = { layout: 'b_fs_yx_fsv4', lower: [0, 1, 1, 0], upper: [2, 0, 0, 1] }
    for (const [isCopied, settings] of [
      [false, {}],
      [true, {}],
      [false, { ownKernelBytes: 0 }],
    ] as const) {
      await compareWithCpu({ dtype: 'float16', shape: [3, 19, 5, 7], from, to, settings, isCopied })
    }
  })
})
