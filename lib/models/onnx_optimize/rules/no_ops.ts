/** Nodes that give an input as it is, bit for bit: neutral elements, movements that move nothing, casts to the same type. */
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { elementsOf, isAll } from '../rewrite/elements.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule, Replacement } from '../rewrite/rewriter.js'
import { isSameDim } from '../rewrite/same_shape.js'
import {
  axisOf,
  FAR,
  int,
  integersOf,
  isFloat,
  isIdentity,
  keepsShape,
  listOf,
  permOf,
  reductionAxes,
  ruleOf,
} from './facts.js'

/** Whether an operand leaves the other one as it is. */
type IsNeutral = (operand: RewriteValue) => boolean

const isOne: IsNeutral = (operand) => isAll(operand, 1)
/** -0 + 0 is 0, so only -0 leaves floats as they are. */
const isNeutralAddend: IsNeutral = (operand) =>
  operand.mayBeKnown && isAll(operand, isFloat(operand) ? -0 : 0)
const isZero: IsNeutral = (operand) => isAll(operand, 0)

/** What is neutral on the left and on the right. */
const NEUTRAL: Readonly<Record<string, { readonly left?: IsNeutral; readonly right: IsNeutral }>> = {
  Mul: { left: isOne, right: isOne },
  Div: { right: isOne },
  Add: { left: isNeutralAddend, right: isNeutralAddend },
  Sub: { right: isZero },
  Pow: { right: isOne },
  PRelu: { right: isOne },
  And: { left: isOne, right: isOne },
  Or: { left: isZero, right: isZero },
  Xor: { left: isZero, right: isZero },
}

function neutral(node: RewriteNode): Replacement | undefined {
  const [one, other] = node.inputs
  if (!one || !other) return undefined
  const { left, right } = NEUTRAL[node.opType]!
  if (right(other) && keepsShape(one, other)) return one
  return left?.(one) && keepsShape(other, one) ? other : undefined
}

function onlyInput(node: RewriteNode): Replacement | undefined {
  return node.inputs.length === 1 ? node.input(0) : undefined
}

function dropout(node: RewriteNode): Replacement | undefined {
  const { opset } = node
  const mode = node.input(2)
  const isTraining =
    opset < FIRST_WITHOUT_TEST
      ? (node.int('is_test') ?? 0) === 0
      : opset >= FIRST_WITH_MODE && mode !== undefined && !isAll(mode, 0)
  // A mask that is used has nothing to take its place.
  return isTraining ? undefined : node.input(0)
}

/** Dropout has the attribute `is_test` below, */
const FIRST_WITHOUT_TEST = 7
/** and from here on an input that says whether the model is in training. */
const FIRST_WITH_MODE = 12

function sameCast(node: RewriteNode): Replacement | undefined {
  const x = node.input(0)
  const to = DTYPE_OF_CODE.get(node.int('to') ?? 0)
  return x && to !== undefined && x.dtype === to ? x : undefined
}

/** A Cast says itself what the other input of CastLike says. */
const castLike: NodeRule['apply'] = (node, { make }) => {
  const [x, like] = node.inputs
  if (!x || like?.dtype === undefined || node.source.attributes.length > 0) return undefined
  if (x.dtype === like.dtype) return x
  const code = [...DTYPE_OF_CODE].find(([, dtype]) => dtype === like.dtype)?.[0]
  return code === undefined ? undefined : make('Cast', [x], { to: int(code) })
}

function transpose(node: RewriteNode): Replacement | undefined {
  const perm = permOf(node)
  return perm && isIdentity(perm) ? node.input(0) : undefined
}

/** All extents are equal, or all but one, and the number of elements says that this one is. */
function reshape(node: RewriteNode): Replacement | undefined {
  const x = node.input(0)
  const [before, after] = [x?.shape, node.output()?.shape]
  if (!before || before.length !== after?.length) return undefined
  const open = before.filter((dim, axis) => !isSameDim(dim, after[axis]))
  if (open.length === 0) return x
  const others = before.filter((dim, axis) => isSameDim(dim, after[axis]))
  const isClear = open.length === 1 && others.every((dim) => typeof dim === 'number' && dim > 0)
  return isClear ? x : undefined
}

function flatten(node: RewriteNode): Replacement | undefined {
  const x = node.input(0)
  return x?.rank === 2 && axisOf(node.int('axis'), 2) === 1 ? x : undefined
}

function unsqueeze(node: RewriteNode): Replacement | undefined {
  return listOf(node, 'axes', 13, 1).list?.length === 0 ? node.input(0) : undefined
}

function expand(node: RewriteNode): Replacement | undefined {
  const x = node.input(0)
  const target = node.input(1)?.elements?.list
  if (!x || !target) return undefined
  if (target.length === 0) return x
  const { shape } = x
  if (!shape || target.length > shape.length) return undefined
  const offset = shape.length - target.length
  return target.every((dim, axis) => dim === 1 || isSameDim(dim, shape[axis + offset])) ? x : undefined
}

function tile(node: RewriteNode): Replacement | undefined {
  return node.opset >= 6 && isAll(node.input(1), 1) ? node.input(0) : undefined
}

function pad(node: RewriteNode): Replacement | undefined {
  const { list } = listOf(node, 'pads', 11, 1)
  return node.opset >= 2 && list?.every((each) => each === 0) ? node.input(0) : undefined
}

function slice(node: RewriteNode): Replacement | undefined {
  const x = node.input(0)
  const bounds = sliceOf(node)
  if (!x || !bounds) return undefined
  const isFull = bounds.every(({ axis, start, end, step }) => {
    const extent = x.shape?.[axis]
    if (step !== 1) return false
    if (typeof extent !== 'number') return start === 0 && end >= FAR
    return (start === 0 || start <= -extent) && end >= extent
  })
  return isFull ? x : undefined
}

/** What a Slice does to one axis. */
export interface AxisSlice {
  readonly axis: number
  readonly start: number
  readonly end: number
  readonly step: number
}

/** The axes of a Slice with constant bounds; undefined where one does not follow. */
export function sliceOf(node: RewriteNode): readonly AxisSlice[] | undefined {
  const isOld = node.opset < 10
  const starts = isOld ? node.ints('starts') : integersOf(node.input(1))
  const ends = isOld ? node.ints('ends') : integersOf(node.input(2))
  const { isOmitted, list } = listOf(node, 'axes', 10, 3)
  const steps = isOld || !node.input(4) ? starts?.map(() => 1) : integersOf(node.input(4))
  if (!starts || starts.length !== ends?.length || steps?.length !== starts.length) return undefined
  const given = isOmitted ? starts.map((_, at) => at) : list
  if (given?.length !== starts.length) return undefined
  const rank = node.input(0)?.rank
  const axes = given.map((axis) => axisOf(axis, rank))
  if (axes.some((axis) => axis === undefined) || new Set(axes).size < axes.length) return undefined
  return axes.map((axis, at) => ({
    axis: axis!,
    start: starts[at]!,
    end: ends[at]!,
    step: steps[at]!,
  }))
}

function gather(node: RewriteNode): Replacement | undefined {
  const [x, indices] = node.inputs
  const axis = axisOf(node.int('axis'), x?.rank)
  const extent = axis === undefined ? undefined : x?.shape?.[axis]
  if (indices?.rank !== 1 || typeof extent !== 'number') return undefined
  const elements = elementsOf(indices)
  if (elements?.length !== extent) return undefined
  const isAllInOrder = Array.from(elements as ArrayLike<number | bigint>, Number).every(
    (index, at) => index === at || index === at - extent,
  )
  return isAllInOrder ? x : undefined
}

/** Reductions of one element that leave it as it is; those of squares, logarithms and magnitudes do not. */
function reduce(node: RewriteNode): Replacement | undefined {
  if (node.int('noop_with_empty_axes') !== 1) return undefined
  const { isOmitted, list } = reductionAxes(node)
  return isOmitted || list?.length === 0 ? node.input(0) : undefined
}

/** Inputs of Concat without elements along its axis add nothing. */
const concat: NodeRule['apply'] = (node, { make }) => {
  const rank = node.input(0)?.rank
  const axis = axisOf(node.int('axis'), rank)
  if (axis === undefined) return undefined
  const kept = node.inputs.filter((value) => value?.shape?.length !== rank || value?.shape?.[axis] !== 0)
  if (kept.length === node.inputs.length || kept.length === 0) return undefined
  return kept.length === 1 ? kept[0] : make('Concat', kept, { axis: int(axis) })
}

/**
 * A condition that is the same for all elements. onnxruntime gives 0 for a -0 of the first operand, which is no reason to give
 * another result than it does: of floats only the second operand is taken.
 */
function where(node: RewriteNode): Replacement | undefined {
  const [condition, yes, no] = node.inputs
  if (!condition || !yes || !no) return undefined
  if (yes === no && yes.dtype !== undefined && !isFloat(yes) && keepsShape(yes, condition)) return yes
  const [chosen, other] = isAll(condition, 1) ? [yes, no] : isAll(condition, 0) ? [no, yes] : []
  if (!chosen || !other || (chosen === yes && isFloat(yes)) || chosen.dtype === undefined) return undefined
  return keepsShape(chosen, condition) && keepsShape(chosen, other) ? chosen : undefined
}

function leakyRelu(node: RewriteNode): Replacement | undefined {
  return node.float('alpha') === 1 ? node.input(0) : undefined
}

/** Between an input or a weight and an output of the graph an Identity stays: the rewriter sees to that. */
export const IDENTITY: readonly NodeRule[] = [ruleOf('identity', ['Identity'], (node) => node.input(0))]

export const DROPOUT: readonly NodeRule[] = [ruleOf('dropout', ['Dropout'], dropout)]

export const NO_OPS: readonly NodeRule[] = [
  ruleOf('neutral-operand', Object.keys(NEUTRAL), neutral),
  ruleOf('join-of-one', ['Sum', 'Max', 'Min', 'Mean', 'Concat'], onlyInput),
  ruleOf('cast-to-same', ['Cast'], sameCast),
  ruleOf('cast-like', ['CastLike'], castLike),
  ruleOf('transpose-in-order', ['Transpose'], transpose),
  ruleOf('reshape-to-same', ['Reshape'], reshape),
  ruleOf('flatten-matrix', ['Flatten'], flatten),
  ruleOf('unsqueeze-nothing', ['Unsqueeze'], unsqueeze),
  ruleOf('expand-to-same', ['Expand'], expand),
  ruleOf('tile-once', ['Tile'], tile),
  ruleOf('pad-nothing', ['Pad'], pad),
  ruleOf('slice-all', ['Slice'], slice),
  ruleOf('gather-all', ['Gather'], gather),
  ruleOf('reduce-nothing', ['ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceProd'], reduce),
  ruleOf('concat-empty', ['Concat'], concat),
  ruleOf('where-constant', ['Where'], where),
  ruleOf('leaky-relu-one', ['LeakyRelu'], leakyRelu),
]
