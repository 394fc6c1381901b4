/**
 * The layouts of OpenVINO's GPU plugin as data (its `format` enum, as of 2026.4), aliases, the names of older
 * releases, and names that are refused.
 *
 * Adding a layout is one line of CATALOGUE. The line holds only what the grammar cannot derive from the name: order,
 * blocks, letters, kind and oneDNN tag come from `grammar.ts`.
 */
import { blockDigit, type DigitRule, topDigit } from './digit_rule.js'
import type { Layout } from './layout.js'

/** The properties of a layout that its name does not determine. */
export interface CatalogueEntry {
  /** False where oneDNN can describe the layout but has no constant for it in `dnnl_format_tag_t`. Default true. */
  readonly hasOnednnConstant?: false
  readonly special?: SpecialRule
  readonly fourBit?: FourBitRule
}

/** A condition on the size of one axis. */
export interface AxisConstraint {
  readonly axis: string
  readonly oneOf?: readonly number[]
  readonly multipleOf?: number
}

/** Properties of a name that the grammar cannot express. */
export interface SpecialRule {
  /** Which of the special rules of `docs/layouts.md` applies. */
  readonly rule: 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6'
  readonly kind?: Extract<Layout['kind'], 'image' | 'winograd'>
  /** The name of the grammar that has the same order in memory. */
  readonly sameAs?: string
  /** Letters in logical order, each a plain axis, where no name of the grammar has these letters. */
  readonly plainAxes?: string
  readonly constraints?: readonly AxisConstraint[]
  readonly lastColumn?: LastColumnRule
  readonly notes: readonly string[]
}

/** S2: where the size of `axis` is odd, its last index has different digits after the digit that selects its slice. */
export interface LastColumnRule {
  readonly axis: string
  /** The digits after the slice of `axis` there. */
  readonly digits: readonly DigitRule[]
}

/** How a layout stores `int4` and `uint4`, where that differs from its name. */
export interface FourBitRule {
  readonly digits: readonly DigitRule[]
  /** True where the packing is defined for fully-connected weights (Y = X = 1) only. */
  readonly fullyConnectedOnly: boolean
  readonly note: string
}

const NO_CONSTANT: CatalogueEntry = { hasOnednnConstant: false }

const SWIZZLED: CatalogueEntry = {
  special: {
    rule: 'S1',
    notes: ['Every 32 output channels are swizzled: neighbours in memory are not neighbours in o.'],
  },
}

const PACKED_LAST_COLUMN: CatalogueEntry = {
  special: {
    rule: 'S2',
    lastColumn: { axis: 'x', digits: [topDigit('o', 32), blockDigit('x', 1, 2), blockDigit('o', 1, 32)] },
    notes: [
      'When X is odd, the last column packs its output channels in groups of 32, each followed by 32 holes; every other column follows the digits.',
    ],
  },
}

const RGBA: CatalogueEntry = {
  special: {
    rule: 'S3',
    kind: 'image',
    sameAs: 'byxf__af4',
    constraints: [
      { axis: 'b', oneOf: [1] },
      { axis: 'f', oneOf: [3, 4] },
    ],
    notes: ['One image of 8-bit texels with 4 components; with 3 features the fourth component is a hole.'],
  },
}

const NV12: CatalogueEntry = {
  special: {
    rule: 'S3',
    kind: 'image',
    plainAxes: 'byxc',
    constraints: [{ axis: 'c', oneOf: [1, 2] }],
    notes: [
      'One plane of an NV12 frame: C = 1 is the Y plane, C = 2 the UV plane at half width and height.',
      'A full frame is two such planes; converting it to RGB is arithmetic, which a reorder does not do.',
    ],
  },
}

function weightsImage(sameAs: string, note: string): CatalogueEntry {
  return { special: { rule: 'S4', kind: 'image', sameAs, notes: [note] } }
}

const WINOGRAD_DOMAIN =
  'The values are in the Winograd transform domain; transforming spatial values is arithmetic, which a reorder does not do.'

const WINOGRAD_2X3_TILE: readonly AxisConstraint[] = [
  { axis: 'x', oneOf: [4] },
  { axis: 'y', oneOf: [3] },
]

const WINOGRAD_6X3_TILE: readonly AxisConstraint[] = [
  { axis: 'x', oneOf: [8] },
  { axis: 'y', oneOf: [3] },
  { axis: 'o', multipleOf: 16 },
]

function winograd(sameAs: string, constraints: readonly AxisConstraint[] = []): CatalogueEntry {
  return { special: { rule: 'S5', kind: 'winograd', sameAs, constraints, notes: [WINOGRAD_DOMAIN] } }
}

function winogradImage(sameAs: string, size: string): CatalogueEntry {
  const notes = [WINOGRAD_DOMAIN, `An image of 1-component texels: ${size}.`]
  return { special: { rule: 'S6', kind: 'image', sameAs, constraints: WINOGRAD_6X3_TILE, notes } }
}

// With fully-connected 4-bit weights, the two elements of a byte are used together.
const INPUT_PAIRS: FourBitRule = {
  digits: [
    topDigit('o', 16),
    topDigit('i', 2),
    topDigit('y'),
    topDigit('x'),
    blockDigit('o', 1, 16),
    blockDigit('i', 1, 2),
  ],
  fullyConnectedOnly: false,
  note: 'With 4-bit types a byte holds inputs i and i + 1 of one output channel: the order of os_is_yx_osv16_isv2.',
}

const CHANNEL_PAIRS: FourBitRule = {
  digits: [
    topDigit('o', 32),
    topDigit('i'),
    topDigit('y'),
    topDigit('x'),
    blockDigit('o', 1, 16),
    blockDigit('o', 16, 2),
  ],
  fullyConnectedOnly: true,
  note: 'With 4-bit types (Y = X = 1 only) a byte holds output channels o and o + 16.',
}

const CHANNEL_PAIRS_OF_64: FourBitRule = {
  digits: [
    topDigit('o', 64),
    topDigit('i'),
    topDigit('y'),
    topDigit('x'),
    blockDigit('o', 32, 2),
    blockDigit('o', 1, 16),
    blockDigit('o', 16, 2),
  ],
  fullyConnectedOnly: true,
  note: 'With 4-bit types (Y = X = 1 only) a byte holds output channels o and o + 16, in two halves of 32 channels.',
}

/** The named layouts, one line each; without `row_major`, `column_major` and other names of the grammar. */
const CATALOGUE = {
  // Data (activations), in the order of the enum.
  bfyx: {},
  bfxy: {},
  bfzyx: {},
  bfwzyx: {},
  bfuwzyx: {},
  bfvuwzyx: {},
  yxfb: {},
  byxf: {},
  fbyx: {},
  fyxb: {},
  fybx: {},
  xbfy: {},
  ybfx: {},
  bzyxf: {},
  byfx: {},
  bxfy: {},
  b_fs_yx_fsv2: NO_CONSTANT,
  b_fs_zyx_fsv2: NO_CONSTANT,
  b_fs_yx_fsv4: {},
  b_fs_zyx_fsv4: {},
  b_fs_yx_fsv8: {},
  b_fs_zyx_fsv8: {},
  b_fs_yx_fsv16: {},
  b_fs_yx_fsv32: {},
  b_fs_zyx_fsv16: {},
  b_fs_zyx_fsv32: {},
  bs_fs_yx_bsv16_fsv32: {},
  bs_fs_zyx_bsv16_fsv32: NO_CONSTANT,
  bs_fs_zyx_bsv16_fsv16: {},
  bs_fs_yx_bsv16_fsv16: {},
  bs_fs_yx_bsv4_fsv4: {},
  bs_fs_yx_bsv8_fsv4: {},
  bs_fs_zyx_bsv8_fsv4: {},
  bs_fs_yx_bsv16_fsv4: {},
  bs_fs_zyx_bsv16_fsv4: {},
  bs_fs_yx_bsv8_fsv2: {},
  bs_fs_zyx_bsv8_fsv2: {},
  bs_fs_yx_bsv16_fsv2: NO_CONSTANT,
  bs_fs_zyx_bsv16_fsv2: NO_CONSTANT,
  bs_fs_yx_bsv16_fsv8: NO_CONSTANT,
  bs_fs_zyx_bsv16_fsv8: NO_CONSTANT,
  bs_fs_yx_bsv4_fsv2: {},
  bs_fs_zyx_bsv4_fsv4: {},
  bs_fs_zyx_bsv4_fsv2: {},
  bs_fs_yx_bsv32_fsv32: {},
  bs_fs_yx_bsv32_fsv16: {},
  bs_fs_zyx_bsv32_fsv32: {},
  bs_fs_zyx_bsv32_fsv16: {},
  fs_b_yx_fsv32: NO_CONSTANT,
  bs_fs_fsv8_bsv8: {},
  bs_fs_fsv8_bsv16: {},
  bs_f_bsv16: NO_CONSTANT,
  winograd_2x3_s1_data: winograd('bxyf'),
  nv12: NV12,
  image_2d_rgba: RGBA,
  // Weights without groups.
  oiyx: {},
  ioyx: {},
  yxio: {},
  oizyx: {},
  iozyx: {},
  iyxo: {},
  oyxi: {},
  oyix: {},
  oxiy: {},
  os_iyx_osv16: { fourBit: INPUT_PAIRS },
  o_is_yx_isv4: {},
  o_is_yx_isv16: {},
  os_is_yx_osv16_isv16: {},
  os_is_zyx_osv32_isv16: {},
  os_is_yx_osv32_isv2: NO_CONSTANT,
  os_is_zyx_osv64_isv16: NO_CONSTANT,
  os_is_yx_osv64_isv2: NO_CONSTANT,
  os_zyxi_osv16: {},
  os_is_yx_isv16_osv16: {},
  os_is_zyx_isv16_osv16: {},
  is_os_zyx_isv16_osv16: {},
  is_os_yx_isv16_osv16: {},
  os_is_yx_isv8_osv16_isv2: {},
  os_is_zyx_isv8_osv16_isv2: {},
  os_iyx_osv32: { fourBit: CHANNEL_PAIRS },
  os_iyx_osv64: { ...NO_CONSTANT, fourBit: CHANNEL_PAIRS_OF_64 },
  image_2d_weights_c4_fyx_b: weightsImage(
    'o_iyxs_iyxsv4',
    'An image of 4-component texels: row o, column (i·Y + y)·X + x divided by 4.',
  ),
  image_2d_weights_c1_b_fyx: weightsImage(
    'iyxo',
    'An image of 1-component texels: column o, row (i·Y + y)·X + x.',
  ),
  winograd_2x3_s1_weights: winograd('xyio', WINOGRAD_2X3_TILE),
  winograd_2x3_s1_fused_weights: winograd('i_os_xy_osv8', [
    ...WINOGRAD_2X3_TILE,
    { axis: 'o', multipleOf: 8 },
  ]),
  winograd_6x3_s1_fused_weights: winograd('x_i_os_y_osv16', WINOGRAD_6X3_TILE),
  image_2d_weights_winograd_6x3_s1_fbxyb: winogradImage('i_os_xy_osv16', 'width O·X·Y, height I'),
  image_2d_weights_winograd_6x3_s1_xfbyb: winogradImage('x_i_os_y_osv16', 'width O·Y, height I·X'),
  os_is_yx_isa8_osv8_isv4: NO_CONSTANT,
  os_is_zyx_isa8_osv8_isv4: NO_CONSTANT,
  os_is_yx_isa8_osv16_isv4: NO_CONSTANT,
  os_is_zyx_isa8_osv16_isv4: NO_CONSTANT,
  os_is_yx_osa4_isa8_osv8_isv4_swizzled_by_4: SWIZZLED,
  os_is_zyx_osa4_isa8_osv8_isv4_swizzled_by_4: SWIZZLED,
  os_is_yx_osa2_isa8_osv16_isv4_swizzled_by_2: SWIZZLED,
  os_is_zyx_osa2_isa8_osv16_isv4_swizzled_by_2: SWIZZLED,
  os_is_zyx_osa4_isa8_osv8_isv4: {},
  os_is_yx_osa4_isa8_osv8_isv4: {},
  os_is_yx_osv16_isv4: {},
  os_is_yx_osv8_isv4: {},
  os_is_zyx_osv16_isv16: {},
  os_is_yx_osv32_isv4_swizzled_by_2: SWIZZLED,
  os_is_yx_osv32_isv4: NO_CONSTANT,
  os_is_zyx_osv32_isv4: NO_CONSTANT,
  os_iyx_osv8: {},
  os_iyx_osv32__ai32: {},
  iy_xs_os_xsv2_osv8__ao32: PACKED_LAST_COLUMN,
  iy_xs_os_xsv2_osv16__ao32: PACKED_LAST_COLUMN,
  i_yxs_os_yxsv2_osv16: {},
  os_i_osv16: NO_CONSTANT,
  os_i_osv16__ai8: NO_CONSTANT,
  os_i_osv8__ai8: {},
  // Weights with a separate group axis; o and i count inside a group.
  goiyx: {},
  gioyx: {},
  gyxio: {},
  goizyx: {},
  giozyx: {},
  g_os_iyx_osv8: {},
  g_os_iyx_osv16: {},
  g_os_iyx_osv32: {},
  gs_oiyx_gsv16: {},
  gs_oizyx_gsv16: {},
  gs_oiyx_gsv32: {},
  g_is_os_zyx_isv16_osv16: {},
  g_os_is_yx_osv16_isv4: NO_CONSTANT,
  g_os_is_zyx_osv16_isv16: {},
  g_is_os_yx_isv16_osv16: {},
  g_os_is_zyx_isv8_osv16_isv2: {},
  g_os_is_yx_isv8_osv16_isv2: {},
  g_os_is_zyx_isv16_osv16: {},
  g_os_zyx_is_osv16_isv4: {},
  g_os_zyx_is_osv16_isv16: NO_CONSTANT,
  g_os_zyx_is_osv16_isv32: NO_CONSTANT,
  g_os_zyx_is_osv32_isv4: {},
  g_os_zyx_is_osv32_isv16: NO_CONSTANT,
  g_os_zyx_is_osv32_isv32: NO_CONSTANT,
  g_os_is_yx_isv16_osv16: {},
  gs_oi_yxs_gsv4_yxsv4: {},
  gs_oi_yxs_gsv16_yxsv4: {},
  gs_oi_yxs_gsv32_yxsv4: {},
  gi_yxs_os_yxsv2_osv16: {},
  giy_xs_os_xsv2_osv8__ao32: PACKED_LAST_COLUMN,
  giy_xs_os_xsv2_osv16__ao32: PACKED_LAST_COLUMN,
} as const satisfies Record<string, CatalogueEntry>

type CatalogueName = keyof typeof CATALOGUE

/** A named layout. Every other name of the grammar is accepted as well. */
export type LayoutName = CatalogueName | 'row_major' | 'column_major'

/** The names of the catalogue; without `row_major`, `column_major` and other names of the grammar. */
export const LAYOUT_NAMES = Object.freeze(Object.keys(CATALOGUE)) as readonly CatalogueName[]

/** The line of a name; empty for a name that is not in the catalogue. */
export function catalogueEntry(name: string): CatalogueEntry {
  return Object.hasOwn(CATALOGUE, name) ? CATALOGUE[name as CatalogueName] : {}
}

/**
 * The axis letters of other frameworks: n batch, c channel, d depth, h height, w width, o and i output and input channel,
 * g group. Lower or upper case. The grammar does not use the letters n, c, d and h, so an alias never hides a grammar name.
 *
 * With `exactRank` a shape must have one axis per letter of the alias; otherwise a shorter shape gets trailing ones, as with
 * the canonical layout.
 */
const ALIASES = {
  nchw: { means: 'bfyx' },
  nhwc: { means: 'byxf' },
  ncdhw: { means: 'bfzyx' },
  ndhwc: { means: 'bzyxf' },
  oihw: { means: 'oiyx' },
  ohwi: { means: 'oyxi' },
  hwio: { means: 'yxio' },
  goihw: { means: 'goiyx' },
  chw: { means: 'fyx', exactRank: true },
  hwc: { means: 'yxf', exactRank: true },
  nc: { means: 'bf', exactRank: true },
  hw: { means: 'yx', exactRank: true },
} as const satisfies Record<string, AliasMeaning>

/** The canonical layout of an alias. */
export interface AliasMeaning {
  /** A name of the grammar. */
  readonly means: string
  readonly exactRank?: true
}

/** Another name of a layout, for example `nchw`; upper case is accepted too. */
export type LayoutAlias = keyof typeof ALIASES | Uppercase<keyof typeof ALIASES>

/** The layout names that functions accept. The last member accepts any string and keeps the known names in autocompletion. */
export type AnyLayoutName = LayoutName | LayoutAlias | (string & Record<never, never>)

/** All aliases in lower case. */
export const LAYOUT_ALIASES = Object.freeze(Object.keys(ALIASES)) as readonly (keyof typeof ALIASES)[]

/** What an alias means, in lower or upper case; undefined for other names. */
export function meaningOfAlias(name: string): (AliasMeaning & { readonly alias: string }) | undefined {
  const alias = name.toLowerCase()
  return Object.hasOwn(ALIASES, alias) ? { alias, ...ALIASES[alias as keyof typeof ALIASES] } : undefined
}

/** Names of older releases and of kernels, each with the name that means the same bytes. */
export const OLDER_NAMES: Readonly<Record<string, string>> = {
  bs_xs_xsv8_bsv8: 'bs_fs_fsv8_bsv8',
  bs_xs_xsv8_bsv16: 'bs_fs_fsv8_bsv16',
  bs_x_bsv16: 'bs_f_bsv16',
  bs_f_bsv8__af8: 'bs_fs_fsv8_bsv8',
  bs_f_bsv16__af8: 'bs_fs_fsv8_bsv16',
  bfyx_f16: 'b_fs_yx_fsv16',
  o_i_yx_i16_o16: 'os_is_yx_isv16_osv16',
  byxf_af32: 'byxf__af32',
  byx8_f4: 'byxf__ax8_af4',
  bf8_xy16: 'bf_yxs_yxsv16__af8',
  os_is_y_x8_osv8_isv4: 'os_is_yx_osv8_isv4__ax8',
}

const ROTATED =
  'it is the layout without "_rotate_180" on a window rotated by 180 degrees: flip x and y, then use that name'
const SWIZZLED_BLOCKS =
  'its swizzle permutes channels across blocks, which the layout grammar cannot express; it was removed from OpenVINO'

/** Names of other tools that are refused here, each with the reason. */
export const REFUSED_NAMES: Readonly<Record<string, string>> = {
  any: 'it is a placeholder for a layout that the planner chooses; name the chosen layout',
  custom:
    'it is a placeholder for an explicit list of strides and blocks; write that order as a name of the grammar',
  format_num: 'it is the number of named layouts, not a layout',
  os_iyx_osv16_rotate_180: ROTATED,
  g_os_iyx_osv16_rotate_180: ROTATED,
  b_fs_yx_32fp: 'it packs 32 binary channels into a word, and there is no 1-bit element type',
  os_is_yx_osv32_isv32p: 'it packs 32 binary channels into a word, and there is no 1-bit element type',
  lstm_weights_dio: 'it is plain order: use row_major with the shape [directions, inputs, 4 × hidden]',
  bf_lyx_yx: 'local-convolution weights have an axis that the grammar has no letter for; use row_major',
  is_o32_yx_isv32_swizzled_by_4: SWIZZLED_BLOCKS,
  os_is_osv32_isv32_swizzled_by_4: SWIZZLED_BLOCKS,
  os_is_y_x8_osv8_isv4_swizzled_by_4: SWIZZLED_BLOCKS,
}
