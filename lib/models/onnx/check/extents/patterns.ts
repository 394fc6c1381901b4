/** Ranks and dimensions that operators fix, as a table of patterns. */
import { type Dim, isKnown } from '../../evaluate/dims.js'
import type { NodeView } from '../../infer/node_view.js'
import { type ExtentRule, rankProblem } from './rule.js'

/**
 * Shapes of inputs, by operator. A letter is a dimension, the same for the same letter; a number is that dimension; `.` is any
 * dimension; `+` stands for any number of dimensions; `-` is a scalar; `*` is any shape.
 *
 * Source: the inference functions in `onnx/defs`, and the specifications of the operators.
 */
const PATTERNS: Readonly<Record<string, string>> = {
  AffineGrid: '+ .',
  CausalConvWithState: 'BCL C1. C BC.',
  Col2Im: '... S S',
  Det: '+NN',
  Dropout: '* - -',
  EyeLike: '..',
  FlexAttention: 'B..E BHSE BHS.',
  ImageDecoder: '.',
  LinearAttention: 'BT. BT. BT. B... BT. BT.',
  MaxRoiPool: '.... R5',
  Multinomial: '..',
  OneHot: '.+ * 2',
  ReverseSequence: '..+ .',
  RoiAlign: '.... R4 R',
  TensorScatter: 'B+ * B',
  TreeEnsemble: '..',
  TreeEnsembleClassifier: '..',
  TreeEnsembleRegressor: '..',
  Trilu: '+..',
}
/** Of operators whose inputs had other ranks before a version: the version from which on the pattern holds. */
const SINCE: Readonly<Record<string, number>> = {
  Dropout: 12,
  TreeEnsembleClassifier: 3,
  TreeEnsembleRegressor: 3,
}
/** The version from which on readers compare dimensions, of those that compared ranks alone before. */
const DIMS_SINCE: Readonly<Record<string, number>> = { MaxRoiPool: 22, RoiAlign: 22 }

interface Pattern {
  /** Dimensions before `+`, and behind it. */
  readonly first: readonly string[]
  readonly last: readonly string[]
  readonly isOpen: boolean
}

const PARSED = new Map(
  Object.entries(PATTERNS).map(([name, text]) => [name, text.split(' ').map(parsePattern)]),
)

function parsePattern(text: string): Pattern | undefined {
  if (text === '*') return undefined
  const [first, last] = text.replace('-', '').split('+') as [string, string?]
  return { first: [...first], last: [...(last ?? '')], isOpen: last !== undefined }
}

/** Compares the inputs of a node with the pattern of its operator. */
export const patternRule: ExtentRule = (node, since) => {
  const patterns = since >= (SINCE[node.opType] ?? 0) ? PARSED.get(node.opType) : undefined
  const found = new Map<string, number>()
  for (const [input, pattern] of (patterns ?? []).entries()) {
    const problem =
      pattern &&
      inputProblem(node, input, pattern, since >= (DIMS_SINCE[node.opType] ?? 0) ? found : undefined)
    if (problem !== undefined) return problem
  }
  return undefined
}

function inputProblem(
  node: NodeView,
  input: number,
  { first, last, isOpen }: Pattern,
  found: Map<string, number> | undefined,
): string | undefined {
  const dims = node.dims(input)
  if (!dims) return undefined
  const least = first.length + last.length
  const problem = rankProblem(node, input, least, isOpen ? Number.POSITIVE_INFINITY : least)
  if (problem !== undefined || !found) return problem
  for (const [at, letter] of first.entries()) {
    const different = dimProblem(letter, dims[at]!, `dimension ${at} of input ${input}`, found)
    if (different !== undefined) return different
  }
  for (const [at, letter] of last.entries()) {
    const axis = dims.length - last.length + at
    const different = dimProblem(letter, dims[axis]!, `dimension ${axis} of input ${input}`, found)
    if (different !== undefined) return different
  }
  return undefined
}

function dimProblem(letter: string, dim: Dim, what: string, found: Map<string, number>): string | undefined {
  if (!isKnown(dim) || letter === '.') return undefined
  const wanted = /\d/.test(letter) ? Number(letter) : found.get(letter)
  if (wanted === undefined) found.set(letter, dim)
  return wanted === undefined || wanted === dim ? undefined : `has ${dim} for ${what}; ${wanted} is needed`
}
