/**
 * Cases of `npm run bench -- cast`: pairs of element types, shapes, and layouts for casts that also reorder. cast_goals.mjs
 * has their goals.
 */
import { DTYPES, parseLayout } from '../dist/index.js'
import { reorderText } from '../scripts/reorder_text.mjs'
import { roundsOf } from './native_program.mjs'

/** Sizes for L2, L3 and DRAM with any type, and odd dimensions (D). */
const SHAPES = {
  A: [1, 64, 32, 32],
  B: [1, 64, 112, 112],
  C: [32, 256, 56, 56],
  D: [3, 19, 37, 53],
}
const WHOLE = ['A', 'B', 'C']

const FLOAT8 = ['float8_e4m3fn', 'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz', 'float8_e8m0fnu']

const GROUPS = [
  {
    group: 'float16',
    pairs: [
      ['float32', 'float16'],
      ['float16', 'float32'],
    ],
  },
  {
    group: 'to int8',
    pairs: [
      ['float32', 'int8'],
      ['float32', 'uint8'],
    ],
  },
  {
    group: 'bfloat16',
    pairs: [
      ['float32', 'bfloat16'],
      ['bfloat16', 'float32'],
    ],
  },
  { group: 'to float8', pairs: FLOAT8.map((to) => ['float32', to]) },
  { group: 'from float8', pairs: FLOAT8.map((from) => [from, 'float32']) },
  {
    group: '4 bit',
    pairs: [
      ['int4', 'int8'],
      ['int8', 'int4'],
      ['uint4', 'uint8'],
      ['uint8', 'uint4'],
    ],
  },
  {
    group: 'more',
    pairs: [
      ['float32', 'float64'],
      ['float64', 'float32'],
      ['float32', 'int16'],
      ['float32', 'int32'],
      ['float32', 'bool'],
      ['float32', 'int4'],
      ['float32', 'uint2'],
      ['float32', 'float4_e2m1fn'],
      ['int8', 'float32'],
      ['uint8', 'float32'],
      ['int32', 'float32'],
      ['int64', 'float32'],
      ['int4', 'float32'],
      ['float4_e2m1fn', 'float32'],
      ['int2', 'int8'],
      ['uint8', 'uint2'],
      ['int8', 'int16'],
      ['int8', 'int32'],
      ['int32', 'int8'],
      ['int32', 'int64'],
      ['int64', 'int32'],
      ['float16', 'bfloat16'],
      ['bfloat16', 'float16'],
      ['float16', 'int8'],
      ['float16', 'float8_e4m3fn'],
      ['bfloat16', 'float8_e5m2'],
      ['float64', 'float16'],
      ['float64', 'int8'],
    ],
  },
]

const FUSED_PAIRS = [
  ['float32', 'float16'],
  ['float16', 'float32'],
  ['float32', 'bfloat16'],
  ['float32', 'int8'],
  ['int8', 'float32'],
]
const FUSED_LAYOUTS = [
  ['bfyx', 'byxf'],
  ['byxf', 'bfyx'],
  ['bfyx', 'b_fs_yx_fsv16'],
]

/** Casts without a reorder, followed by casts with one. */
export function castCases() {
  const plain = GROUPS.flatMap(({ group, pairs }) =>
    pairs.flatMap(([dtype, castTo]) =>
      Object.keys(SHAPES).map((label) => caseOf({ group, label, dtype, castTo, layouts: ['bfyx', 'bfyx'] })),
    ),
  )
  const fused = FUSED_LAYOUTS.flatMap((layouts) =>
    FUSED_PAIRS.flatMap(([dtype, castTo]) =>
      WHOLE.map((label) => caseOf({ group: 'fused', label, dtype, castTo, layouts })),
    ),
  )
  return [...plain, ...fused]
}

function caseOf({ group, label, dtype, castTo, layouts: [from, to] }) {
  return { group, label, shape: SHAPES[label], dtype, castTo, from, to }
}

/** The types, the layouts where they differ, and the label of the shape. */
export function castName({ dtype, castTo, from, to, label }) {
  return [`${dtype}>${castTo}`, ...(from === to ? [] : [`${from}>${to}`]), label].join(' ')
}

/** Whether every word is the group or the shape of a case, or part of its types or layouts. */
export function castMatches({ group, dtype, castTo, from, to, label }, words) {
  return words.every(
    (word) =>
      [group, label].includes(word) || `${dtype}>${castTo}`.includes(word) || `${from}>${to}`.includes(word),
  )
}

/** Bytes read and written. */
export function castBytes({ shape, dtype, castTo }) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  return Math.ceil((elements * DTYPES[dtype].bits) / 8) + Math.ceil((elements * DTYPES[castTo].bits) / 8)
}

/** One input line of bench/native/cast_bench.cc. @param rounds - for the smallest cases */
export function castLine(each, rounds) {
  const { shape, dtype, castTo, from, to } = each
  const [source, destination] = [from, to].map((name) => parseLayout(name).storage(shape, { dtype }))
  const reorder = reorderText(DTYPES[dtype].bits, source, destination)
  return `${roundsOf(castBytes(each), rounds)} ${dtype} ${castTo} ${reorder}`
}
