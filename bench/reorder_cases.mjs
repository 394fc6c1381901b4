/**
 * Cases of `npm run bench -- reorder`: layouts and shapes, and the encoding of a case for the C++ program. The oneDNN tag of
 * a layout is from the catalogue (`Layout.onednnTag`). reorder_goals.mjs has the goals of the groups.
 */
import { LAYOUT_NAMES, parseLayout } from '../dist/index.js'
import { reorderText } from '../scripts/reorder_text.mjs'
import { roundsOf } from './native_program.mjs'

const SHAPES = {
  // L2 (A), L3 (B), DRAM (C), odd dimensions (D), one image (E), a batch of images (F).
  A: [1, 32, 32, 32],
  B: [1, 64, 112, 112],
  C: [32, 256, 56, 56],
  D: [3, 19, 37, 53],
  E: [1, 3, 224, 224],
  F: [64, 3, 224, 224],
  // E and F with four channels.
  E4: [1, 4, 224, 224],
  F4: [64, 4, 224, 224],
  // D rounded up to whole blocks of every layout; rows are not a power of two.
  R: [3, 32, 32, 40],
  W7: [64, 3, 7, 7],
  W1: [1024, 1024, 1, 1],
  W3: [512, 512, 3, 3],
}

const DTYPES = {
  float32: { bits: 32, onednn: 'f32' },
  float16: { bits: 16, onednn: 'f16' },
  bfloat16: { bits: 16, onednn: 'bf16' },
  uint8: { bits: 8, onednn: 'u8' },
  int8: { bits: 8, onednn: 's8' },
  // oneDNN does not support 4-bit elements.
  uint4: { bits: 4, onednn: '-' },
}
const ALL_DTYPES = ['float32', 'float16', 'bfloat16', 'uint8', 'int8']
/** One per width: our reorder kernels depend only on the element width. */
const ONE_OF_EACH_WIDTH = ['float32', 'float16', 'uint8']

/** Each pair of `between` is measured in both directions. */
const GROUPS = [
  {
    group: 'nhwc',
    between: [['bfyx', 'byxf']],
    shapes: ['A', 'B', 'C', 'D', 'R', 'E', 'F', 'E4', 'F4'],
    dtypes: ALL_DTYPES,
  },
  {
    group: 'blocked',
    between: [['bfyx', 'b_fs_yx_fsv16']],
    shapes: ['A', 'B', 'C', 'D', 'R', 'E', 'F'],
    dtypes: ALL_DTYPES,
  },
  {
    group: 'blocked',
    between: [
      ['bfyx', 'b_fs_yx_fsv4'],
      ['bfyx', 'b_fs_yx_fsv8'],
      ['bfyx', 'b_fs_yx_fsv32'],
    ],
    shapes: ['A', 'B', 'C', 'D', 'R', 'E', 'F'],
    dtypes: ONE_OF_EACH_WIDTH,
  },
  {
    group: 'blocked',
    between: [['byxf', 'b_fs_yx_fsv16']],
    shapes: ['A', 'B', 'C', 'D', 'R'],
    dtypes: ONE_OF_EACH_WIDTH,
  },
  {
    group: 'block to block',
    between: [
      ['b_fs_yx_fsv16', 'b_fs_yx_fsv32'],
      ['b_fs_yx_fsv4', 'b_fs_yx_fsv16'],
    ],
    shapes: ['A', 'B', 'C'],
    dtypes: ONE_OF_EACH_WIDTH,
  },
  {
    // Only the batch of C fills a block.
    group: 'block to block',
    between: [
      ['b_fs_yx_fsv16', 'bs_fs_yx_bsv16_fsv16'],
      ['bfyx', 'bs_fs_yx_bsv16_fsv16'],
      ['bs_fs_yx_bsv16_fsv16', 'bs_fs_yx_bsv32_fsv32'],
    ],
    shapes: ['C'],
    dtypes: ONE_OF_EACH_WIDTH,
  },
  {
    group: 'weights',
    between: [
      ['oiyx', 'yxio'],
      ['oiyx', 'os_is_yx_isv8_osv8'],
      ['oiyx', 'os_is_yx_isv16_osv16'],
    ],
    shapes: ['W7', 'W1', 'W3'],
    dtypes: ['float32', 'bfloat16', 'int8'],
  },
  {
    group: 'weights',
    between: [
      ['oiyx', 'os_is_yx_isa4_osv16_isv4'],
      ['oiyx', 'os_is_yx_isa8_osv16_isv4'],
    ],
    shapes: ['W7', 'W1', 'W3'],
    dtypes: ['int8'],
  },
  {
    group: '4 bit',
    between: [
      ['oiyx', 'os_iyx_osv32'],
      ['oiyx', 'os_iyx_osv64'],
      ['oiyx', 'os_is_yx_osv32_isv2'],
      ['oiyx', 'os_is_yx_osv64_isv2'],
    ],
    shapes: ['W1'],
    dtypes: ['uint4'],
  },
  {
    group: '4 bit',
    between: [['bfyx', 'byxf']],
    shapes: ['B'],
    dtypes: ['uint4'],
  },
  {
    // 3 x 3 kernels in pairs of columns: blocks do not divide the dimensions.
    group: 'lookup',
    between: [['oiyx', 'i_yxs_os_yxsv2_osv16']],
    shapes: ['W3'],
    dtypes: ['float32', 'uint8'],
  },
  {
    // A crop of a larger image; every other pixel; reversed channels.
    group: 'slice',
    between: [
      ['bfyx', 'byxf'],
      ['bfyx', 'b_fs_yx_fsv16'],
    ],
    shapes: ['B'],
    dtypes: ['float32', 'uint8'],
    slices: {
      crop: { whole: [1, 64, 128, 160], start: [0, 0, 8, 24], step: [1, 1, 1, 1] },
      half: { whole: [1, 64, 224, 224], start: [0, 0, 0, 0], step: [1, 1, 2, 2] },
    },
  },
  {
    group: 'slice',
    between: [['byxf', 'bfyx']],
    shapes: ['E'],
    dtypes: ['float32', 'uint8'],
    slices: {
      bgr: { whole: [1, 3, 224, 224], start: [0, 2, 0, 0], step: [1, -1, 1, 1] },
    },
  },
  {
    group: 'identity',
    between: [['bfyx', 'bfyx']],
    shapes: ['A', 'B', 'C', 'D', 'E', 'F'],
    dtypes: ['float32'],
  },
]

/**
 * 1 MiB of float32 per set of axes, without holes in any layout of that set. Layouts with fixed dimensions use the first
 * shape that they accept, which is 1020 KiB where 1 MiB is not a multiple of these dimensions.
 */
const EVERY_LAYOUT_SHAPES = {
  bf: [[512, 512]],
  bfyx: [
    [32, 32, 16, 16],
    [1, 4, 256, 256],
  ],
  bfzyx: [[32, 32, 4, 8, 8]],
  bfwzyx: [[16, 16, 4, 4, 8, 8]],
  bfuwzyx: [[8, 8, 4, 4, 4, 8, 8]],
  bfvuwzyx: [[8, 8, 4, 4, 4, 4, 4, 4]],
  byxc: [[4, 256, 128, 2]],
  oi: [[512, 512]],
  oiyx: [
    [64, 64, 8, 8],
    [128, 170, 3, 4],
    [64, 170, 3, 8],
  ],
  oizyx: [[64, 64, 4, 4, 4]],
  goiyx: [[32, 32, 32, 2, 4]],
  goizyx: [[32, 32, 32, 2, 2, 2]],
}

/** All cases of the table above. */
export function reorderCases() {
  return GROUPS.flatMap(({ group, between, shapes, dtypes, slices }) =>
    between
      .flatMap(bothDirections)
      .flatMap(([from, to]) =>
        shapes.flatMap((label) =>
          dtypes.flatMap((dtype) =>
            sliced({ group, label, shape: SHAPES[label], from, to, ...typed(dtype) }, slices),
          ),
        ),
      ),
  )
}

/** The case itself, or one case per slice. */
function sliced(each, slices) {
  if (!slices) return [each]
  return Object.entries(slices).map(([name, slice]) => ({ ...each, label: `${each.label} ${name}`, slice }))
}

/** Every layout of the catalogue from and to row_major, with 1 MiB of float32. */
export function everyLayoutCases() {
  return LAYOUT_NAMES.flatMap((name) => {
    const layout = parseLayout(name)
    const shape = EVERY_LAYOUT_SHAPES[layout.axes].find((extents) => accepts(layout, extents))
    return bothDirections(['row_major', name]).map(([from, to]) => ({
      group: 'every layout',
      label: '1MiB',
      shape,
      from,
      to,
      ...typed('float32'),
    }))
  })
}

function accepts(layout, shape) {
  try {
    return layout.storage(shape).elements > 0
  } catch {
    return false
  }
}

function bothDirections([from, to]) {
  return from === to
    ? [[from, to]]
    : [
        [from, to],
        [to, from],
      ]
}

function typed(dtype) {
  return { dtype, bits: DTYPES[dtype].bits }
}

/** The pair, the element type and the label of the shape. */
export function caseName({ from, to, dtype, label }) {
  return `${from}>${to} ${dtype} ${label}`
}

/** Whether every word is in the group, the type or the shape of a case, or part of its pair of layouts. */
export function matchesWords({ group, from, to, dtype, label }, words) {
  return words.every(
    (word) =>
      [...group.split(' '), dtype, ...label.split(' ')].includes(word) || `${from}>${to}`.includes(word),
  )
}

/**
 * One input line of bench/native/reorder_bench.cc.
 * @param {number} rounds - for the smallest cases; large ones take fewer, at least 9
 */
export function caseLine({ shape, from, to, dtype, bits, slice }, rounds) {
  const layouts = [from, to].map(parseLayout)
  const shapes = [slice?.whole ?? shape, shape]
  const [source, destination] = layouts.map((layout, i) => layout.storage(shapes[i], { dtype }))
  const bytes = source.byteLength + destination.byteLength
  const tokens = [
    roundsOf(bytes, rounds),
    reorderText(bits, source, destination, slice),
    DTYPES[dtype].onednn,
    // oneDNN supports only contiguous views, without steps.
    ...layouts.map(({ onednnTag }) => (slice ? '-' : (onednnTag ?? '-'))),
  ]
  return tokens.join(' ')
}
