/** Names: which are layouts, what they mean, and what is said of those that are none. */
import { describe, expect, it } from 'vitest'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'

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
  it('knows 141 names, each its own canonical name', () => {
    expect(LAYOUT_NAMES.length).toBe(141)
    expect(new Set(LAYOUT_NAMES).size).toBe(141)
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
  ])('%s, removed from OpenVINO, is read by the grammar', (name) => {
    expect(parseLayout(name).name).toBe(name)
  })

  it.each([
    ['', 'empty'],
    ['any', 'marker'],
    ['custom', 'marker'],
    ['format_num', 'number of named layouts'],
    ['os_iyx_osv16_rotate_180', '180 degrees'],
    ['nchw', 'bfyx'],
    ['b_fs_yx', 'slice "fs" has no block'],
    ['b_f_yx_fsv16', 'has no slice "fs"'],
    ['b_fs_fsv16_yx', 'stands after a block'],
    ['b_fs_yx_fsv16_', 'is empty'],
    ['bfyo', 'mixes the data axis b with the weight axis o'],
    ['bffx', 'occurs twice'],
    ['b_fs_yx_fsv0', '1 to 999999999'],
    ['b_fs_yx_fsv016', 'leading zeros'],
    ['b_fs_yx_fsv999999999_fsv999999999', 'more than 2^53 - 1'],
    ['bfyx__az4', 'aligned but does not occur'],
    ['bfyx__af4_af8', 'aligned twice'],
    ['bfyx__f4', 'no alignment such as'],
    ['bf_yxs_yxsv4__ax4', 'part of a fused index'],
    ['bfyx__af4__ab2', 'only one "__"'],
    ['os_is_yx_isa8_osv8_isv4_swizzled_by_4', 'needs output-channel blocks'],
    ['os_is_yx_osv32_isv4_swizzled_by_8', 'by 2 or 4'],
    ['b_fs_yx_fsv32_swizzled_by_4', 'needs output-channel blocks'],
    [`fs_yx${'_fsv1'.repeat(24)}`, 'the limit is 24'],
    ['x'.repeat(129), 'the limit is 128'],
    ['__proto__', 'only one "__"'],
    ['constructor', 'no list of axes'],
  ])('refuses %j and says why', (name, reason) => {
    expect(refusal(name)).toContain(reason)
  })

  it('suggests the nearest name', () => {
    expect(refusal('b_fs_yx_fvs16')).toContain('Did you mean "b_fs_yx_fsv16"?')
    expect(refusal('OIYX')).toContain('Did you mean "oiyx"?')
    expect(refusal('rowmajor')).toContain('Did you mean "row_major"?')
    expect(refusal('constructor')).not.toContain('Did you mean')
  })

  it.each([undefined, null, 3, {}, ['bfyx']])('refuses %j, which is no string', (name) => {
    expect(() => parseLayout(name as unknown as string)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })
})
