/** Shapes of operators of signals, texts, images, training and classic machine learning. */

import { greatest } from '../../../long_lists.js'
import {
  asExtent,
  axisOf,
  broadcast,
  type Dim,
  type Dims,
  extent,
  isKnown,
  merged,
  productOfAll,
  quotientOf,
} from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

type Shapes = readonly (Dims | undefined)[]

/** The rows of a matrix; a list is one row. */
function rowsOf(node: NodeView): Dim | undefined {
  const dims = node.dims(0)
  if (dims?.length === 1) return 1
  return dims?.length === 2 ? dims[0]! : undefined
}

/** The length of the longer of two lists, of which a node has one. */
function lengthOf(node: NodeView, one: string, other: string): number {
  const [first, second] = [one, other].map((name) => {
    const list = node.attribute(name)?.value
    return Array.isArray(list) ? list.length : 0
  }) as [number, number]
  return Math.max(first, second)
}

/** A row of numbers for each row. */
const rowOf =
  (width: (node: NodeView) => Dim): ((node: NodeView) => Shapes) =>
  (node) => {
    const rows = rowsOf(node)
    return rows === undefined ? [] : [[rows, width(node)]]
  }

/** A label and a row of scores for each row. */
const classified =
  (width: (node: NodeView) => Dim): ((node: NodeView) => Shapes) =>
  (node) => {
    const rows = rowsOf(node)
    return rows === undefined ? [] : [[rows], [rows, width(node)]]
  }

/** Operators of `ai.onnx.ml`. */
const CLASSIC: Readonly<Record<string, (node: NodeView) => Shapes>> = {
  CastMap: () => [[1, null]],
  DictVectorizer: (node) => [[1, lengthOf(node, 'string_vocabulary', 'int64_vocabulary')]],
  FeatureVectorizer: (node) => {
    const widths = node.ints('inputdimensions')
    const isWhole = widths?.length === node.inputs.length
    return rowOf(() => (isWhole ? extent(widths.reduce((sum, width) => sum + width, 0)) : null))(node)
  },
  LinearClassifier: classified((node) =>
    Math.max(1, lengthOf(node, 'classlabels_strings', 'classlabels_ints')),
  ),
  LinearRegressor: rowOf((node) => extent(node.int('targets', 1))),
  OneHotEncoder: (node) => {
    const count = lengthOf(node, 'cats_strings', 'cats_int64s')
    return [node.dims(0) && [...node.dims(0)!, count]]
  },
  SVMClassifier: classified(() => null),
  SVMRegressor: rowOf(() => 1),
  TreeEnsembleClassifier: (node) => {
    if (node.dims(0)?.length !== 2) return []
    return classified(() => lengthOf(node, 'classlabels_strings', 'classlabels_int64s'))(node)
  },
  TreeEnsembleRegressor: (node) => {
    const dims = node.dims(0)
    return [dims?.length === 2 ? [dims[0]!, node.int('n_targets') ?? null] : undefined]
  },
}

export const RARER_SHAPES: Readonly<Record<string, (node: NodeView) => Shapes>> = {
  CausalConvWithState: causalConvolution,
  LinearAttention: linearAttention,
  FlexAttention: (node) => {
    const [query, key, value] = [node.dims(0), node.dims(1), node.dims(2)]
    if (query?.length !== 4 || value?.length !== 4) return []
    return [[agreed([query[0]!, key?.[0] ?? null, value[0]!]), query[1]!, query[2]!, value[3]!]]
  },
  SwiGLU: (node) => {
    const [gate, value] = [node.dims(0), node.dims(1)]
    return [gate && value && broadcast([gate, value])]
  },
  DFT: (node) => [fourier(node)],
  AffineGrid: (node) => [affineGrid(node)],
  Col2Im: (node) => [image(node)],
  ImageDecoder: () => [[null, null, null]],
  StringSplit: (node) => [node.dims(0) && [...node.dims(0)!, null], node.dims(0)],
  StringNormalizer: (node) => [
    node.dims(0)?.length === 1 ? [null] : node.dims(0)?.length === 2 ? [1, null] : undefined,
  ],
  TfIdfVectorizer: (node) => {
    const indices = node.ints('ngram_indexes')
    const dims = node.dims(0)
    if (!indices || !dims || dims.length < 1 || dims.length > 2) return []
    return [[...dims.slice(0, -1), greatest(indices) + 1]]
  },
  TreeEnsemble: (node) => [
    node.dims(0)?.length === 2 ? [node.dims(0)![0]!, node.int('n_targets') ?? null] : undefined,
  ],
  ArrayFeatureExtractor: (node) => {
    const [dims, indices] = [node.dims(0), node.dims(1)]
    return [
      dims && indices && dims.length > 0
        ? [...(dims.length === 1 ? [1] : dims.slice(0, -1)), productOfAll(indices)]
        : undefined,
    ]
  },
  ...CLASSIC,
  Adam: optimized,
  Adagrad: optimized,
  Momentum: optimized,
}

/** What several sources say of one extent: a number wins, then the first name. */
function agreed(dims: Dims): Dim {
  return dims.reduce((one, other) => merged(one, other) ?? null)
}

function causalConvolution(node: NodeView): Shapes {
  const [input, weight] = [node.dims(0), node.dims(1)]
  if (input?.length !== 3 || weight?.length !== 3) return []
  const kernel = weight[2]!
  const sources = [input[1]!, weight[0]!, node.dims(2)?.[0] ?? null, node.dims(3)?.[1] ?? null]
  const channels = agreed(sources)
  const batch = agreed([input[0]!, node.dims(3)?.[0] ?? null])
  return [input, [batch, channels, isKnown(kernel) ? extent(kernel - 1) : null]]
}

/** The result has the heads of the query and the size of the value; the state is a matrix for each head of key and value. */
function linearAttention(node: NodeView): Shapes {
  const [query, key, value] = [node.dims(0), node.dims(1), node.dims(2)]
  const [queryHeads, heads] = [node.int('q_num_heads'), node.int('kv_num_heads')]
  if (query?.length !== 3 || key?.length !== 3 || value?.length !== 3 || !queryHeads || !heads) return []
  const [keySize, valueSize] = [quotientOf(key[2]!, heads), quotientOf(value[2]!, heads)]
  const width = isKnown(valueSize) ? extent(queryHeads * valueSize) : null
  const batch = agreed([query[0]!, key[0]!, value[0]!, node.dims(3)?.[0] ?? null])
  const length = agreed([query[1]!, key[1]!, value[1]!])
  return [
    [batch, length, width],
    [batch, heads, keySize, valueSize],
  ]
}

/** The last axis holds real and imaginary parts; a one-sided transform has half of the frequencies, and 0. */
function fourier(node: NodeView): Dims | undefined {
  const dims = node.dims(0)
  if (!dims || dims.length < 2) return undefined
  const given = node.opset < 20 ? node.int('axis', 1) : node.has(2) ? node.integers(2)?.[0] : -2
  const isOneSided = node.int('onesided', 0) !== 0
  const hasLength = node.has(1)
  const isInverse = node.int('inverse', 0) !== 0
  if (isOneSided && isInverse) return undefined
  const result: Dim[] = [...dims.slice(0, -1), 2]
  if (!isOneSided && !hasLength) return result
  const axis = given === undefined ? undefined : axisOf(given, dims.length)
  if (axis === undefined || axis === dims.length - 1) return undefined
  const length = hasLength ? (node.values(1)?.[0] ?? null) : dims[axis]!
  result[axis] = isOneSided ? (isKnown(length) ? extent(Math.floor(length / 2) + 1) : null) : asExtent(length)
  return result
}

function affineGrid(node: NodeView): Dims | undefined {
  const sizes = node.values(1)
  const count = sizes?.length ?? node.dims(1)?.[0]
  if (count !== 4 && count !== 5) return undefined
  if (!sizes) return [...Array(count - 1).fill(null), count - 2]
  return [asExtent(sizes[0]!), ...sizes.slice(2).map(asExtent), count - 2]
}

/** Columns that become an image: the second axis holds the elements of a block for each channel. */
function image(node: NodeView): Dims | undefined {
  const [dims, sizes, block] = [node.dims(0), node.values(1), node.integers(2)]
  if (dims?.length !== 3) return undefined
  const count = sizes?.length ?? node.dims(1)?.[0]
  if (!isKnown(count) || count > 8) return undefined
  const channels = block
    ? quotientOf(
        dims[1]!,
        block.reduce((product, each) => product * each, 1),
      )
    : null
  return [dims[0]!, channels, ...(sizes ? sizes.map(asExtent) : Array(count).fill(null))]
}

/** After the rate and the step: tensors, gradients and states, each as often as there are tensors. */
function optimized(node: NodeView): Shapes {
  return node.outputs.map((_, at) => node.dims(optimizedInput(node, at)))
}

/** The input that has the type of an output of an operator of training: the tensor itself, or its state. */
export function optimizedInput(node: NodeView, output: number): number {
  const states = node.opType === 'Adam' ? 2 : 1
  const count = node.outputs.length / (states + 1)
  return output < count ? 2 + output : 2 + count + output
}
