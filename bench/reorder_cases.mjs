/**
 * What `npm run bench -- reorder` measures, as data: one table of layouts and shapes, and the means to say a case to the
 * C++ half of the benchmark. A pair of layouts is written `from>to`.
 */
import { LAYOUT_NAMES, parseLayout } from '../dist/index.js'

/** Second-level cache, third-level cache, memory, odd extents, one image, a batch of images. */
export const ACTIVATIONS = {
  A: [1, 32, 32, 32],
  B: [1, 64, 112, 112],
  C: [32, 256, 56, 56],
  D: [3, 19, 37, 53],
  E: [1, 3, 224, 224],
  F: [64, 3, 224, 224],
}
export const WEIGHTS = { W7: [64, 3, 7, 7], W1: [1024, 1024, 1, 1], W3: [512, 512, 3, 3] }

const BITS = { float64: 64, float32: 32, float16: 16, bfloat16: 16, uint8: 8, int8: 8 }

/** 1 MiB of float32 for each set of axes, with no holes in any layout of that set. */
const WORST_SHAPES = {
  bf: [512, 512],
  bfyx: [32, 32, 16, 16],
  bfzyx: [32, 32, 4, 8, 8],
  bfwzyx: [16, 16, 4, 4, 8, 8],
  bfuwzyx: [8, 8, 4, 4, 4, 8, 8],
  bfvuwzyx: [8, 8, 4, 4, 4, 4, 4, 4],
  byxc: [4, 256, 128, 2],
  oi: [512, 512],
  oiyx: [64, 64, 8, 8],
  oizyx: [64, 64, 4, 4, 4],
  goiyx: [32, 32, 32, 2, 4],
  goizyx: [32, 32, 32, 2, 2, 2],
}

/** The same for layouts that take certain extents only; 1020 KiB where 1 MiB is no multiple of them. */
const WORST_SHAPES_OF_LAYOUT = {
  image_2d_rgba: [1, 4, 256, 256],
  winograd_2x3_s1_weights: [128, 170, 3, 4],
  winograd_2x3_s1_fused_weights: [128, 170, 3, 4],
  winograd_6x3_s1_fused_weights: [64, 170, 3, 8],
  image_2d_weights_winograd_6x3_s1_fbxyb: [64, 170, 3, 8],
  image_2d_weights_winograd_6x3_s1_xfbyb: [64, 170, 3, 8],
}

/** Every layout of the catalogue from and to row_major, 1 MiB of float32 a side. */
export function everyLayoutCases() {
  return LAYOUT_NAMES.flatMap((name) => {
    const shape = WORST_SHAPES_OF_LAYOUT[name] ?? WORST_SHAPES[parseLayout(name).axes]
    return [
      ['row_major', name],
      [name, 'row_major'],
    ].map(([from, to]) => ({ label: '1MiB', shape, from, to, dtype: 'float32' }))
  })
}

/** The name of a case: the pair, the element type and the label of the shape. */
export function caseName({ from, to, dtype, label }) {
  return `${from}>${to} ${dtype} ${label}`
}

/**
 * One line of the form that bench/native/reorder_bench.cc reads.
 * @param {number} rounds - of the smallest cases; large ones take fewer, at least 5
 */
export function caseLine({ shape, from, to, dtype }, rounds) {
  const sides = [from, to].map((name) => parseLayout(name).storage(shape, { dtype }))
  const [source, destination] = sides
  const bytes = source.byteLength + destination.byteLength
  const tokens = [
    BITS[dtype],
    Math.max(5, Math.min(rounds, Math.round((rounds * 2 ** 22) / bytes))),
    source.extents.length,
    ...source.extents,
    ...sides.flatMap(({ side }) => sideTokens(side)),
  ]
  return tokens.join(' ')
}

function sideTokens({ lower, upper, elements, pieces }) {
  const digitTokens = ({ axes, radix, weight }) => [axes.length, ...axes, radix, weight]
  return [
    ...lower,
    ...upper,
    elements,
    pieces.length,
    ...pieces.flatMap(({ axis, lo, hi, digits }) => [
      axis,
      lo,
      hi,
      digits.length,
      ...digits.flatMap(digitTokens),
    ]),
  ]
}
