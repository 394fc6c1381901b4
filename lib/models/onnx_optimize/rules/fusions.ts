/** Nodes of the standard for what exporters write as several. Results are rounded otherwise than those of the several. */
import { elementsOf, isAll } from '../rewrite/elements.js'
import { any, constant, node, type Pattern } from '../rewrite/pattern.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule } from '../rewrite/rewriter.js'
import { nodeRuleOf, rule } from '../rewrite/rules.js'
import { isSameDims } from '../rewrite/same_shape.js'
import { attributesOf, axesOf, int, ints, isOnlyUse, listOf, permOf, reductionAxes, ruleOf } from './facts.js'

const commutative = { commutative: true } as const
const x = any('x')

/** Padding with zeros, which Conv and some poolings do themselves. */
const padInto: NodeRule['apply'] = (conv, { make }) => {
  const pad = conv.producer(0, 'Pad')
  const { list } = pad ? listOf(pad, 'pads', 11, 1) : { list: undefined }
  if (!pad || !list || pad.opset < 2 || !isOnlyUse(conv.input(0), conv) || pad.input(3)) return undefined
  if (pad.text('mode') !== 'constant' || (pad.input(2) && !isZero(pad.input(2)))) return undefined
  if (pad.opset < 11 && pad.float('value') !== 0) return undefined
  if ((conv.text('auto_pad') ?? 'NOTSET') !== 'NOTSET') return undefined
  if (conv.is('AveragePool') && (conv.int('count_include_pad') !== 1 || conv.int('ceil_mode') === 1))
    return undefined
  const rank = list.length / 2
  const [begins, ends] = [list.slice(0, rank), list.slice(rank)]
  const isSpatial = [begins, ends].every(([batch, channel]) => batch === 0 && channel === 0)
  if (!isSpatial || list.some((each) => each < 0)) return undefined
  const own = conv.ints('pads') ?? new Array<number>(2 * (rank - 2)).fill(0)
  const added = [...begins.slice(2), ...ends.slice(2)]
  if (own.length !== added.length) return undefined
  const pads = ints(own.map((each, at) => each + added[at]!))
  return make(conv.opType, [pad.input(0), ...conv.inputs.slice(1)], attributesOf(conv, { pads }))
}

function isZero(value: RewriteValue | undefined): boolean {
  return isAll(value, 0) || isAll(value, -0)
}

const gemm = rule({
  name: 'matmul-add',
  match: node(
    'Add',
    [
      node('MatMul', [any('a', { rank: 2 }), any('b', { rank: 2 })], { outputs: ['product'] }),
      any('c', { maxRank: 2 }),
    ],
    commutative,
  ),
  where: ({ output, product, same, root }) =>
    root.opset >= 7 && same(output, product) && (product.dtype === 'float32' || product.dtype === 'float16'),
  replace: ({ a, b, c, make }) => make('Gemm', [a, b, c]),
})

/** A transposed factor, which Gemm takes as it is. */
const transposedFactor: NodeRule['apply'] = (product, { make }) => {
  for (const [at, flag] of [
    [0, 'transA'],
    [1, 'transB'],
  ] as const) {
    const transpose = product.producer(at, 'Transpose')
    if (!transpose || String(permOf(transpose)) !== '1,0' || !isOnlyUse(product.input(at), product)) continue
    const inputs = product.inputs.map((value, index) => (index === at ? transpose.input(0) : value))
    return make('Gemm', inputs, attributesOf(product, { [flag]: int(1 - (product.int(flag) ?? 0)) }))
  }
  return undefined
}

/** `x / √2` and `x · 1/√2`. */
const scaledByRoot = [
  node('Div', [x, constant(Math.SQRT2)]),
  node('Mul', [x, constant(Math.SQRT1_2)], commutative),
]
/** `√(2/π) · (x + 0.044715 · x³)`, as exporters write it. */
const cubic = node('Mul', [node('Pow', [x, constant(3)]), constant(0.044715)], commutative)
const tanhArgument = node(
  'Mul',
  [node('Add', [x, cubic], commutative), constant(Math.sqrt(2 / Math.PI))],
  commutative,
)

type Scaled = Pattern<{ readonly x: RewriteValue }>

/** The orders in which exporters multiply `x`, ½ and the third factor. */
function halves(factor: Pattern): readonly Scaled[] {
  const half = constant(0.5)
  const plusOne = node('Add', [factor, constant(1)], commutative)
  return [
    node('Mul', [node('Mul', [x, plusOne], commutative), half], commutative),
    node('Mul', [node('Mul', [x, half], commutative), plusOne], commutative),
    node('Mul', [x, node('Mul', [plusOne, half], commutative)], commutative),
  ]
}

const gelus = scaledByRoot
  .flatMap((inner) => halves(node('Erf', [inner])))
  .map((match, at) =>
    rule({
      name: `gelu-${at + 1}`,
      match,
      where: ({ root }) => root.opset >= 20,
      replace: ({ x, make }) => make('Gelu', [x]),
    }),
  )

const tanhGelus = halves(node('Tanh', [tanhArgument])).map((match, at) =>
  rule({
    name: `gelu-tanh-${at + 1}`,
    match,
    where: ({ root }) => root.opset >= 20,
    replace: ({ x, make }) => make('Gelu', [x], { approximate: 'tanh' }),
  }),
)

/** `(x - mean) / √(variance + ε) · scale + bias`, with axes in an attribute or an input. */
function layerNormalization(axes: readonly Pattern[], isPower: boolean) {
  const mean = node('ReduceMean', [x, ...axes], { as: 'mean' })
  const centre = node('Sub', [x, mean], { as: 'centre' })
  const square = isPower ? node('Pow', [centre, constant(2)]) : node('Mul', [centre, centre])
  const variance = node('ReduceMean', [square, ...axes], { as: 'variance' })
  const root = node('Sqrt', [node('Add', [variance, constant('epsilon')], commutative)])
  const scaled = node('Mul', [node('Div', [centre, root]), constant('scale')], commutative)
  return node('Add', [scaled, constant('bias')], commutative) as Pattern<{
    readonly x: RewriteValue
    readonly mean: RewriteNode
    readonly variance: RewriteNode
    readonly epsilon: RewriteValue
    readonly scale: RewriteValue
    readonly bias: RewriteValue
  }>
}

/** The first of the axes of a mean, if these are the last ones, and stay as 1. */
function firstOfLastAxes(mean: RewriteNode): number | undefined {
  const rank = mean.input(0)?.rank
  const { list } = reductionAxes(mean)
  const axes = list && axesOf(list, rank)
  if (rank === undefined || !axes || axes.length === 0 || mean.int('keepdims') !== 1) return undefined
  const first = rank - axes.length
  return axes.every((axis, at) => axis === first + at) ? first - rank : undefined
}

const layerNormalizations = [[], [any('axes')]]
  .flatMap((axes) => [true, false].map((isPower) => layerNormalization(axes, isPower)))
  .map((match, at) =>
    rule({
      name: `layer-normalization-${at + 1}`,
      match,
      where: ({ root, x, mean, variance, epsilon, scale, bias }) => {
        const axis = firstOfLastAxes(mean)
        const extents = axis === undefined ? undefined : x.shape?.slice(axis)
        return (
          root.opset >= 17 &&
          axis === firstOfLastAxes(variance) &&
          elementsOf(epsilon)?.length === 1 &&
          [scale, bias].every((value) => value.dtype === x.dtype && isSameDims(value.shape, extents))
        )
      },
      replace: ({ x, mean, epsilon, scale, bias, make }) =>
        make('LayerNormalization', [x, scale, bias], {
          axis: firstOfLastAxes(mean)!,
          epsilon: Number(elementsOf(epsilon)![0]),
        }),
    }),
  )

const clipped = node('Clip', [node('Add', [x, constant(3)], commutative), constant(0), constant(6)])

const hardSwishes = [
  node('Div', [node('Mul', [x, clipped], commutative), constant(6)]),
  node('Mul', [x, node('Div', [clipped, constant(6)])], commutative),
  node('Mul', [x, node('HardSigmoid', [x], { attributes: { alpha: 1 / 6, beta: 0.5 } })], commutative),
].map((match, at) =>
  rule({
    name: `hard-swish-${at + 1}`,
    match: match as Scaled,
    where: ({ root }) => root.opset >= 14,
    replace: ({ x, make }) => make('HardSwish', [x]),
  }),
)

export const FUSE_PAD: readonly NodeRule[] = [ruleOf('pad-into', ['Conv', 'AveragePool'], padInto)]
export const FUSE_GEMM: readonly NodeRule[] = [
  nodeRuleOf(gemm),
  ruleOf('transposed-factor', ['Gemm'], transposedFactor),
]
export const FUSE_GELU: readonly NodeRule[] = [...gelus, ...tanhGelus].map(nodeRuleOf)
export const FUSE_LAYER_NORMALIZATION: readonly NodeRule[] = layerNormalizations.map(nodeRuleOf)
export const FUSE_HARD_SWISH: readonly NodeRule[] = hardSwishes.map(nodeRuleOf)
