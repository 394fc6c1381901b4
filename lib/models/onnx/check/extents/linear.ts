/** Dimensions of products of matrices, attention, recurrent layers, normalizations and losses. */
import { broadcast, type Dims, isKnown } from '../../evaluate/dims.js'
import type { NodeView } from '../../infer/node_view.js'
import { axisProblem, constantList, constantOf, type ExtentRule, rankProblem, textOfDims } from './rule.js'

const ANY = Number.POSITIVE_INFINITY

function matmul(first: number, second: number): ExtentRule {
  return (node) => {
    const [left, right] = [node.dims(first), node.dims(second)]
    if (!left || !right) return undefined
    const early = rankProblem(node, first, 1, ANY) ?? rankProblem(node, second, 1, ANY)
    if (early !== undefined) return early
    const [inner, other] = [left.at(-1)!, right.at(right.length === 1 ? -1 : -2)!]
    const isEqual = !isKnown(inner) || !isKnown(other) || inner === other
    const isBroadcast = broadcast([left.slice(0, -2), right.slice(0, -2)]) !== undefined
    return isEqual && isBroadcast ? undefined : `cannot multiply ${textOfDims(left)} by ${textOfDims(right)}`
  }
}

const gemm: ExtentRule = (node, since) => {
  const early = rankProblem(node, 0, 2) ?? rankProblem(node, 1, 2)
  const [left, right] = [node.dims(0), node.dims(1)]
  if (early !== undefined || !left || !right) return early
  const inner = left[node.int('transA', 0) !== 0 ? 0 : 1]!
  const other = right[node.int('transB', 0) !== 0 ? 1 : 0]!
  if (since >= 13 && isKnown(inner) && isKnown(other) && inner !== other)
    return `cannot multiply ${textOfDims(left)} by ${textOfDims(right)}`
  return undefined
}

/** Terms of the equation have as many letters as inputs have axes. */
const einsum: ExtentRule = (node) => {
  const equation = node.text('equation')?.replaceAll(' ', '')
  if (!equation) return undefined
  const [left = '', right] = equation.split('->') as [string?, string?]
  const terms = left.split(',')
  const shapes = node.inputs.map((_, input) => node.dims(input))
  if (!shapes.every((shape) => shape !== undefined)) return undefined
  if (terms.length !== shapes.length)
    return `has ${shapes.length} inputs for ${terms.length} terms of its equation`
  const rests = new Set<number>()
  for (const [input, term] of terms.entries()) {
    const letters = term.replace(/[^A-Za-z]/g, '').length
    const rank = shapes[input]!.length
    const isOpen = term.includes('...')
    if (isOpen ? rank < letters : rank !== letters)
      return `has the rank ${rank} for input ${input}; the term ${JSON.stringify(term)} takes ${letters}`
    if (isOpen) rests.add(rank - letters)
  }
  if (rests.size > 1) return 'has inputs whose ellipses have different ranks'
  const missing = [...(right ?? '').replaceAll('.', '')].find(
    (letter) => /[A-Za-z]/.test(letter) && !left.includes(letter),
  )
  return missing === undefined ? undefined : `has ${missing} in the output of its equation alone`
}

const batchNormalization: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  let channels = dims && (dims.length > 1 ? dims[1]! : 1)
  for (const input of [1, 2, 3, 4]) {
    const parameter = node.dims(input)
    if (!parameter) continue
    const wrong = since < 14 ? undefined : rankProblem(node, input, 1)
    if (wrong !== undefined) return wrong
    const dim = parameter[0]
    if (!isKnown(dim) || since < 14) continue
    if (isKnown(channels) && dim !== channels)
      return `has ${dim} elements in input ${input} for ${channels} channels`
    channels = dim
  }
  const count = node.outputs.length
  if (since < 14) return count === 1 || count === 5 ? undefined : `has ${count} outputs; it takes 1 or 5`
  const wanted = node.int('training_mode', 0) !== 0 ? 3 : 1
  return count === wanted ? undefined : `has ${count} outputs; it takes ${wanted} with this training_mode`
}

const recurrent: ExtentRule = (node) => rankProblem(node, 0, 3)

/** Scores [N, C, …], labels [N, …], weights [C]. */
const loss: ExtentRule = (node, since) => {
  const [scores, labels] = [node.dims(0), node.dims(1)]
  if (!scores || !labels) return undefined
  const early = rankProblem(node, 0, 2, ANY) ?? rankProblem(node, 1, scores.length - 1)
  if (early !== undefined) return early
  for (const [at, dim] of labels.entries()) {
    const axis = at === 0 ? 0 : at + 1
    const other = scores[axis]!
    if (isKnown(dim) && isKnown(other) && dim !== other)
      return `has ${dim} for dimension ${at} of input 1; ${other} is needed`
  }
  const [weights, classes] = [node.dims(2), scores[1]!]
  if (!weights) return undefined
  const wrong = rankProblem(node, 2, 1)
  if (wrong !== undefined) return wrong
  return since >= 22 && isKnown(weights[0]) && isKnown(classes) && weights[0] !== classes
    ? `has ${weights[0]} weights for ${classes} classes`
    : undefined
}

const attention: ExtentRule = (node, since) => {
  const query = node.dims(0)
  if (!query) return undefined
  const [heads, pairs] = [node.attribute('q_num_heads'), node.attribute('kv_num_heads')]
  const early = rankProblem(node, 0, 3, 4) ?? rankProblem(node, 1, 3, 4) ?? rankProblem(node, 2, 3, 4)
  if (early !== undefined) return early
  if (query.length === 3 && !(heads && pairs))
    return 'needs q_num_heads and kv_num_heads for inputs of rank 3'
  const bad = [node.int('q_num_heads', 1), node.int('kv_num_heads', 1)].find((count) => count <= 0)
  if (query.length === 3 && bad !== undefined) return `has ${bad} heads; at least 1 is needed`
  const hasPresent = [1, 2].map((output) => (node.outputs[output] ?? '') !== '')
  const hasPast = [node.has(4), node.has(5)]
  if (hasPresent.every(Boolean) && hasPast.every(Boolean)) {
    const wrong = rankProblem(node, 4, 4) ?? rankProblem(node, 5, 4)
    if (wrong !== undefined) return wrong
  }
  return since < 25
    ? undefined
    : laterAttention(node, { query, hasPast, hasPresent, hasHeads: (heads ?? pairs) !== undefined })
}

function laterAttention(
  node: NodeView,
  given: {
    readonly query: Dims
    readonly hasPast: readonly boolean[]
    readonly hasPresent: readonly boolean[]
    readonly hasHeads: boolean
  },
): string | undefined {
  const { query, hasPast, hasPresent, hasHeads } = given
  for (const name of ['left_window_size', 'right_window_size']) {
    const size = node.int(name, -1)
    if (size < -1) return `has ${size} for ${name}; at least -1 is needed`
  }
  if (hasPast[0] !== hasPast[1]) return 'needs past_key and past_value together'
  if (hasPresent[0] !== hasPresent[1]) return 'needs present_key and present_value together'
  if (node.has(6) && (hasPast[0] || hasPresent[0])) return 'has both nonpad_kv_seqlen and a cache'
  return query.length === 4 && hasHeads
    ? 'has numbers of heads, which inputs of rank 4 have themselves'
    : undefined
}

const rotary: ExtentRule = (node) => {
  const dims = node.dims(0)
  if (!dims) return undefined
  const isOpen = dims.length === 3 && node.attribute('num_heads') === undefined
  return rankProblem(node, 0, 3, 4) ?? (isOpen ? 'needs num_heads for an input of rank 3' : undefined)
}

/** An axis from which on elements are normalized; only the rank below is checked by readers. */
const layerNormalization: ExtentRule = (node) => {
  const [dims, axis] = [node.dims(0), node.int('axis', -1)]
  return dims && axis < 0 ? axisProblem(axis, dims.length) : undefined
}

const reverseSequence: ExtentRule = (node) =>
  node.dims(0) && node.dims(1) ? (rankProblem(node, 0, 2, ANY) ?? rankProblem(node, 1, 1)) : undefined

const fourier: ExtentRule = (node, since) => {
  const dims = node.dims(0)
  if (!dims) return undefined
  const early = rankProblem(node, 0, 2, ANY)
  if (early !== undefined) return early
  // Readers follow nothing for an axis that is not constant.
  if (since >= 20 && node.has(2) && !constantList(node, 2)) return undefined
  for (const input of since < 20 ? [1] : [1, 2]) {
    const isConstant = constantList(node, input) !== undefined
    if (isConstant && node.dims(input)?.length !== 0) return rankProblem(node, input, 0)
  }
  const isInverse = node.int('inverse', 0) !== 0
  const last = dims.at(-1)!
  const wanted = isInverse ? 2 : 1
  // Readers of version 17 let inverse transforms pass.
  const isFixed = node.int('onesided', 0) !== 0 && (since >= 20 || !isInverse)
  if (isFixed && isKnown(last) && last !== wanted)
    return `has ${last} as last dimension of a one-sided transform; ${wanted} is needed`
  const axis = since < 20 ? node.int('axis', 1) : node.has(2) ? constantOf(node, 2)?.[0] : -2
  if (axis === undefined) return undefined
  const rank = dims.length
  return axis < -rank || axis === -1 || axis >= rank - 1
    ? `has the axis ${axis}; the rank is ${rank}`
    : undefined
}

export const LINEAR_RULES: Readonly<Record<string, ExtentRule>> = {
  Attention: attention,
  BatchNormalization: batchNormalization,
  DFT: fourier,
  Einsum: einsum,
  GRU: recurrent,
  Gemm: gemm,
  LSTM: recurrent,
  LayerNormalization: layerNormalization,
  MatMul: matmul(0, 1),
  MatMulInteger: matmul(0, 1),
  NegativeLogLikelihoodLoss: loss,
  QLinearMatMul: matmul(0, 3),
  RMSNormalization: layerNormalization,
  RNN: recurrent,
  ReverseSequence: reverseSequence,
  RotaryEmbedding: rotary,
}
