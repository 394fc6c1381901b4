/**
 * Every way in which leaves move elements has an example here, which explain() confirms: a row of leaves.def without one, or
 * that no plan takes any more, fails. Only plans are made, so examples past the caches need no memory.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  asLayout,
  cast,
  type Dtype,
  explain,
  lazyTensor,
  planReorder,
  reorder,
  slice,
} from '../../lib/index.js'
import { native } from '../../lib/native/addon.js'
import type { NativeExplanation } from '../../lib/native/types.js'
import { ROOT } from '../docs/pages.js'

type Ways = NativeExplanation['ways']
type Shape = readonly number[]

const lazy = (dtype: Dtype, shape: Shape, layout = 'row_major', stored = shape) => {
  const tensor = lazyTensor(() => Promise.reject(new Error('is not read')), { dtype, shape: stored })
  return layout === 'row_major' ? tensor : asLayout(tensor, layout, shape)
}

const plan = (dtype: Dtype, shape: Shape, from: string, to: string): Ways =>
  planReorder({ dtype, shape, from, to, as: 'weights' }).explain().ways

const ofTensor = (tensor: Parameters<typeof explain>[0]): Ways =>
  explain(tensor).plans.flatMap(({ ways }) => ways)

const ALL = {}
/** Several where the limits are sizes of caches: the way is that of one of them, by the machine. */
const EXAMPLES: Readonly<Record<string, (() => Ways) | readonly (() => Ways)[]>> = {
  'interleaved pixels': () => plan('uint8', [1, 3, 224, 224], 'bfyx', 'byxf'),
  'divided pixels': () => plan('uint8', [1, 3, 224, 224], 'byxf', 'bfyx'),
  'padded pixels': () => plan('float32', [1, 3, 224, 224], 'bfyx', 'b_fs_yx_fsv16'),
  'padded planes': () => plan('float16', [2, 4, 224, 1024], 'b_fs_yx_fsv32', 'bfyx'),
  'streamed blocks': () => plan('float32', [64, 64, 112, 112], 'bfyx', 'b_fs_yx_fsv16'),
  'joined lanes': () => plan('complex128', [8, 20, 224, 1024], 'fs_b_yx_fsv32', 'yxfb'),
  'divided lanes': () => plan('complex128', [1, 8, 224, 2048], 'os_is_yx_isv16_osv16', 'byxf'),
  'blocks, line by line': () => plan('float32', [64, 256, 112, 112], 'bfyx', 'byxf'),
  'blocks, packed first': [56, 24].map(
    (side) => () => plan('float32', [2, 32, side, side], 'bfxy', 'os_is_yx_isv16_osv16'),
  ),
  'blocks, few columns at a time': [112, 56].map(
    (width) => () =>
      ofTensor(reorder(slice(lazy('float32', [1, 8, 1024, width]), [{ step: 9 }, ALL, ALL, ALL]), 'bfxy')),
  ),
  blocks: [112, 56].map((side) => () => plan('float32', [1, 64, side, side], 'bfyx', 'b_fs_yx_fsv16')),
  units: () => ofTensor(slice(lazy('float32', [100, 90]), [ALL, { step: 9 }])),
  'listed rows': [112, 56].map(
    (side) => () => ofTensor(reorder(lazy('uint8', [1, 32, side, side]), 'os_is_yx_isv16_osv16')),
  ),
  'listed columns': () => plan('int4', [2, 32, 1, 9], 'b_fs_yx_fsv16', 'os_iyx_osv16'),
  'listed short rows': () => plan('float32', [8, 32, 1024, 112], 'os_is_yx_osv32_isv2', 'fyxb'),
  'listed columns with gaps': () => plan('uint8', [1, 4, 7, 50], 'b_fs_yx_fsv16', 'os_is_yx_osv32_isv2'),
  'listed rows, packed first': () =>
    ofTensor(reorder(lazy('float32', [2, 16, 224, 1024]), 'bs_fs_yx_bsv8_fsv2')),
  'listed columns, packed first': () => plan('float32', [8, 8, 224, 1024], 'byxf', 'os_iyx_osv16'),
  'listed units': () => plan('complex128', [2, 32, 112, 112], 'b_fs_yx_fsv32', 'bs_fs_yx_bsv8_fsv2'),
  'rows packed without gaps': () => plan('uint8', [1, 8, 56, 9], 'os_is_yx_isv16_osv16', 'bfxy'),
  'rows merged': () =>
    ofTensor(reorder(slice(lazy('float16', [8, 32, 224, 1024]), [ALL, ALL, ALL, { step: 2 }]), 'yxfb')),
  runs: () => plan('float32', [1, 3, 1024, 112], 'b_fs_yx_fsv4', 'bs_fs_yx_bsv16_fsv16'),
  'streamed runs': () => plan('float64', [8, 8, 224, 1024], 'bs_fs_yx_bsv16_fsv16', 'fs_b_yx_fsv32'),
  'chains of runs': () => ofTensor(slice(lazy('float32', [1, 64, 3, 56]), [ALL, ALL, { step: 9 }, ALL])),
  'chains of runs, column by column': () => plan('float32', [2, 32, 30, 50], 'byxf', 'b_fs_yx_fsv16'),
  '4-bit blocks': () => plan('int4', [2, 64, 56, 9], 'yxfb', 'bfxy'),
  '4-bit rows in pairs': () => plan('int4', [64, 64, 3, 3], 'oiyx', 'os_is_yx_osv32_isv2'),
  '4-bit units': () => plan('int4', [2, 20, 1, 56], 'b_fs_yx_fsv16', 'bs_fs_yx_bsv16_fsv16'),
  'cast in registers': () =>
    ofTensor(reorder(cast(lazy('uint8', [2, 32, 56, 56]), 'float32'), 'b_fs_yx_fsv16')),
  'rows cast, then moved': () =>
    ofTensor(
      reorder(
        cast(slice(lazy('float64', [2, 20, 56, 56]), [ALL, ALL, { step: -2 }, ALL]), 'float32'),
        'yxfb',
      ),
    ),
  'moved, then columns cast': () =>
    ofTensor(cast(slice(lazy('float16', [1, 32, 3, 9]), [ALL, ALL, { step: -2 }, ALL]), 'float32')),
  'units cast': () =>
    ofTensor(cast(slice(lazy('float64', [8, 1, 56, 56]), [{ step: 2 }, ALL, ALL, ALL]), 'int8')),
  'runs moved, then cast': () =>
    ofTensor(
      reorder(cast(lazy('uint8', [1, 3, 30, 30], 'byxf', [1, 30, 30, 3]), 'float32'), 'b_fs_yx_fsv16'),
    ),
  'pieces moved, then cast': () => ofTensor(reorder(cast(lazy('uint8', [1, 20, 30, 4]), 'int4'), 'byxf')),
}

const table = readFileSync(join(ROOT, 'native', 'reorder', 'leaf', 'leaves.def'), 'utf8')
const parsed = [...table.matchAll(/^TILEWORK_LEAF\(\w+,\s*"([^"]+)",\s*"[^"]+",\s*(\d+)\)/gm)]
const rows = parsed.map(([, name]) => name!)
const MEASURED = new Map(
  parsed.flatMap(([, name, percent]) => (percent === '0' ? [] : [[name!, Number(percent) / 100]])),
)
// Others lack the special ways, which docs of the engine are about.
const hasRegisters = native()
  .cpu()
  .features.some((feature: string) => feature === 'avx2' || feature === 'neon')

describe.runIf(hasRegisters)('ways of leaves.def', () => {
  it('has an example of each, and of no other', () => {
    expect(Object.keys(EXAMPLES).sort()).toEqual([...rows].sort())
  })

  it.each(Object.entries(EXAMPLES))('%s', (name, examples) => {
    const tried = [examples].flat().map((example) => example()[0])
    expect(tried.map((way) => way?.name)).toContain(name)
    const most = tried.find((way) => way?.name === name)
    expect(most?.share).toBeGreaterThan(0.5)
    expect(most?.ofCopy).toBe(MEASURED.get(name))
    expect(most?.copiesUnitsAlone).toBe(/\bunits$/.test(name))
  })
})
