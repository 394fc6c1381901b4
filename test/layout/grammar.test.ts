/** Layout names: which are accepted, what they mean, and the errors for the others. */
import { describe, expect, it } from 'vitest'
import { LAYOUT_ALIASES } from '../../lib/layout/catalogue.js'
import { parseGrammar } from '../../lib/layout/grammar.js'
import {
  type AnyLayoutName,
  LAYOUT_NAMES,
  type LayoutAlias,
  type LayoutName,
  parseLayout,
} from '../../lib/layout/parse_layout.js'

function refusal(name: string): string {
  try {
    parseLayout(name)
  } catch (error) {
    expect(error).toMatchObject({ name: 'TileworkError', code: 'ERR_LAYOUT_NAME' })
    return (error as Error).message
  }
  throw new Error(`${name} was accepted`)
}

describe('parseLayout', () => {
  it('accepts the names of the catalogue as canonical names', () => {
    for (const name of LAYOUT_NAMES) expect(parseLayout(name).name).toBe(name)
  })

  it.each([
    ['b_fs_yx_fsv24', 'data', 'bfyx', 'b f/24 y x · f24', 'aBcd24b'],
    ['fs_bs_yx_bsv4_fsv32', 'data', 'bfyx', 'f/32 b/4 y x · b4 f32', 'BAcd4a32b'],
    ['bfvuwzyx', 'data', 'bfvuwzyx', 'b f v u w z y x', 'abcdefgh'],
    ['os_zyxi_osv16', 'weights', 'oizyx', 'o/16 z y x i · o16', 'Acdeb16a'],
    ['os_is_yx_osa4_isa8_osv8_isv4', 'weights', 'oiyx', 'o/32 i/32 y x · o4 i8 o8 i4', 'ABcd4a8b8a4b'],
    ['gs_oi_yxs_gsv4_yxsv4', 'weights_grouped', 'goiyx', 'g/4 o i (yx)/4 · g4 (yx)4', undefined],
    ['os_is_yx_osv32_isv4_swizzled_by_2', 'weights', 'oiyx', 'o/32 i/4 y x · o%2 (o/2)%16 i4', undefined],
    [
      'os_is_yx_osa2_isa8_osv16_isv4_swizzled_by_2',
      'weights',
      'oiyx',
      'o/32 i/32 y x · o%2 i8 (o/2)%16 i4',
      undefined,
    ],
    ['image_2d_weights_c4_fyx_b', 'image', 'oiyx', 'o (iyx)/4 · (iyx)4', undefined],
    ['winograd_6x3_s1_fused_weights', 'winograd', 'oiyx', 'x i o/16 y · o16', undefined],
    ['nv12', 'image', 'byxc', 'b y x c', undefined],
    ['row_major', 'row_major', '', 'first axis … last axis', undefined],
    ['column_major', 'column_major', '', 'last axis … first axis', undefined],
  ])('%s', (name, kind, axes, order, onednnTag) => {
    const layout = parseLayout(name)
    expect([layout.kind, layout.axes, layout.order, layout.onednnTag]).toEqual([kind, axes, order, onednnTag])
  })

  it.each([
    ['bs_xs_xsv8_bsv8', 'bs_fs_fsv8_bsv8'],
    ['bs_xs_xsv8_bsv16', 'bs_fs_fsv8_bsv16'],
    ['bs_x_bsv16', 'bs_f_bsv16'],
    ['bs_f_bsv16__af8', 'bs_fs_fsv8_bsv16'],
    ['bfyx_f16', 'b_fs_yx_fsv16'],
    ['o_i_yx_i16_o16', 'os_is_yx_isv16_osv16'],
    ['byxf_af32', 'byxf__af32'],
  ])('%s is an older name of %s', (alias, name) => {
    expect(parseLayout(alias).name).toBe(name)
    expect(parseLayout(name).aliases).toContain(alias)
  })

  it.each([
    'os_yxi_osv16',
    'os_is_zyx_osa2_isa8_osv16_isv4',
    'is_o_yx_isv32',
    'os_i_yxs_osv4_yxsv4',
    'gs_oizyx_gsv32',
  ])('%s, removed from OpenVINO, is parsed by the grammar', (name) => {
    expect(parseLayout(name).name).toBe(name)
  })

  it.each([
    ['', 'empty'],
    ['any', 'placeholder'],
    ['custom', 'placeholder'],
    ['format_num', 'number of named layouts'],
    ['os_iyx_osv16_rotate_180', '180 degrees'],
    ['b_fs_yx', 'slice "fs" has no block'],
    ['b_f_yx_fsv16', 'has no slice "fs"'],
    ['b_fs_fsv16_yx', 'the word "yx" follows a block'],
    ['b_fs_yx_fsv16_', 'is empty'],
    ['bfyo', 'mixes the data axis b with the weight axis o'],
    ['bffx', 'occurs twice'],
    ['b_fs_yx_fsv0', '1 to 999999999'],
    ['b_fs_yx_fsv016', 'leading zeros'],
    ['b_fs_yx_fsv999999999_fsv999999999', 'more than 2^53 - 1'],
    ['bfyx__az4', 'aligned but does not occur'],
    ['bfyx__af4_af8', 'aligned twice'],
    ['bfyx__f4', 'not an alignment such as'],
    ['bf_yxs_yxsv4__ax4', 'part of a fused index'],
    ['bfyx__af4__ab2', 'more than one "__"'],
    ['os_is_yx_isa8_osv8_isv4_swizzled_by_4', 'needs output-channel blocks'],
    [
      'os_is_yx_osa8_isa8_osv4_isv4_swizzled_by_2',
      'needs output-channel blocks of 4 and 8, of 2 and 16, or of 32',
    ],
    ['os_is_yx_osv32_isv4_swizzled_by_8', 'by 2 or 4'],
    ['b_fs_yx_fsv32_swizzled_by_4', 'needs output-channel blocks'],
    [`fs_yx${'_fsv1'.repeat(24)}`, 'the limit is 24'],
    ['x'.repeat(129), 'the limit is 128'],
    ['__proto__', 'more than one "__"'],
    ['constructor', 'neither axes ("yx")'],
  ])('rejects %j with the reason', (name, reason) => {
    expect(refusal(name)).toContain(reason)
  })

  it('suggests the nearest names', () => {
    expect(refusal('b_fs_yx_fvs16')).toMatch(/; did you mean "b_fs_yx_fsv16"(, "\w+")?( or "\w+")?\?$/)
    expect(refusal('OIYX')).toMatch(/; did you mean "oiyx"\?$/)
    expect(refusal('B_FS_YX_FSV16')).toMatch(/; did you mean "b_fs_yx_fsv16"\?$/)
    expect(refusal('rowmajor')).toMatch(/; did you mean "row_major"\?$/)
    expect(refusal('nchv')).toMatch(/; did you mean "nchw"(, "\w+")?( or "\w+")?\?$/)
    expect(refusal('quaternion')).not.toContain('did you mean')
  })

  it.each([undefined, null, 3, {}, ['bfyx']])('rejects %j, which is not a string', (name) => {
    expect(() => parseLayout(name as unknown as string)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })
})

describe('aliases', () => {
  it.each<[LayoutAlias, LayoutName, string]>([
    ['nchw', 'bfyx', 'b f y x'],
    ['nhwc', 'byxf', 'b y x f'],
    ['ncdhw', 'bfzyx', 'b f z y x'],
    ['ndhwc', 'bzyxf', 'b z y x f'],
    ['oihw', 'oiyx', 'o i y x'],
    ['ohwi', 'oyxi', 'o y x i'],
    ['hwio', 'yxio', 'y x i o'],
    ['goihw', 'goiyx', 'g o i y x'],
  ])('%s is %s, in upper case too', (alias, name, order) => {
    expect(parseLayout(alias)).toBe(parseLayout(name))
    expect(parseLayout(alias.toUpperCase())).toBe(parseLayout(name))
    expect(parseLayout(name).aliases).toContain(alias)
    expect(parseLayout(name).order).toBe(order)
  })

  it.each<[LayoutAlias, string, string, number[]]>([
    ['chw', 'fyx', 'f y x', [2, 3, 5]],
    ['hwc', 'yxf', 'y x f', [2, 3, 5]],
    ['nc', 'bf', 'b f', [2, 3]],
    ['hw', 'yx', 'y x', [2, 3]],
  ])('%s has the order of %s and takes its own number of axes only', (alias, name, order, shape) => {
    const layout = parseLayout(alias.toUpperCase())
    expect(layout.name).toBe(alias)
    expect(layout.order).toBe(order)
    expect(parseLayout(layout.name)).toBe(layout)
    const last = shape.map((extent) => extent - 1)
    const index = [1, ...shape.slice(1).map(() => 0)]
    for (const at of [last, index]) {
      expect(layout.offsetOf(shape, at)).toBe(parseLayout(name).offsetOf(shape, at))
    }
    for (const wrong of [shape.slice(1), [...shape, 1]]) {
      expect(() => layout.storage(wrong)).toThrow(
        expect.objectContaining({
          code: 'ERR_LAYOUT_SHAPE',
          message: `layout ${alias} takes exactly ${shape.length} axes; the shape [${wrong}] has ${wrong.length}`,
        }),
      )
    }
  })

  it('store hwc with the channels of a pixel side by side', () => {
    // Shapes stay in logical order, so that a shape is [channels, height, width] for chw and hwc alike.
    expect(parseLayout('hwc').offsetOf([3, 4, 5], [2, 1, 0])).toBe(1 * 5 * 3 + 2)
    expect(parseLayout('chw').offsetOf([3, 4, 5], [2, 1, 0])).toBe(2 * 4 * 5 + 1 * 5)
  })

  it('hide no name that the grammar can make', () => {
    for (const alias of LAYOUT_ALIASES) expect(() => parseGrammar(alias), alias).toThrow('unknown layout')
  })

  it('are typed beside the known names, and any other string is allowed', () => {
    const known: (LayoutName | LayoutAlias)[] = ['bfyx', 'row_major', 'os_iyx_osv16', 'nchw', 'NCHW']
    // @ts-expect-error a name outside the catalogue is not a LayoutName
    known.push('b_fs_yx_fsv24' satisfies AnyLayoutName)
    expect(known.map((name) => parseLayout(name).name)).toContain('b_fs_yx_fsv24')
  })
})
