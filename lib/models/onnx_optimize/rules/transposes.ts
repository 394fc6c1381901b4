/**
 * Transposes that go: each is moved behind the operators that use its result, until it meets another one or moves nothing any more.
 * A search runs against the flow, from the node where that may happen, and stops at values that others use as well.
 */

import { DTYPES } from '../../../dtype/dtypes.js'
import { withShape } from '../../../formats/onnx/tensor/rearranged.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeMaker, NodeRule } from '../rewrite/rewriter.js'
import { isSameDim } from '../rewrite/same_shape.js'
import {
  attributesOf,
  axesOf,
  axesOfChange,
  axisOf,
  int,
  ints,
  isIdentity,
  isOnlyUse,
  permOf,
  reductionAxes,
  reductionAxesInput,
  ruleOf,
} from './facts.js'
import { changeAxes, elementwiseInput, listConstant, makeSlice } from './movements.js'
import { sliceOf } from './no_ops.js'

/** A value as the Transpose of another one. */
interface Carried {
  readonly perm: readonly number[]
  /** Transposes that go, less those that come. */
  readonly gain: number
  /** Makes the other one. */
  readonly build: (maker: NodeMaker) => RewriteValue
}

/** One search. */
interface Search {
  /** Operators that it may still move a Transpose behind. */
  left: number
  /** Operands that it may still transpose: where more come than go it has no use. */
  operands: number
}

/** Operators between a Transpose and the node where it goes. */
const MAX_BETWEEN = 32

/** Transposes that come for two or more that go. */
const MAX_OPERANDS = 1

/** An input of `user`, where nothing else uses it. */
function carried(value: RewriteValue | undefined, user: RewriteNode, search: Search): Carried | undefined {
  const node = value?.producer
  if (!node || node.graph !== user.graph || value.onlyUser !== user) return undefined
  if (node.is('Transpose')) {
    const [perm, x] = [permOf(node), node.input(0)]
    return perm && x && { perm, gain: 1, build: () => x }
  }
  search.left -= 1
  return search.left < 0 ? undefined : carriedBehind(node, search)
}

/** The first output of a node, if its input is a Transpose that can be moved behind it. */
function carriedBehind(node: RewriteNode, search: Search): Carried | undefined {
  if (node.domain !== '') return undefined
  const carry = CARRIERS[node.opType]
  if (carry) return carry(node, search)
  const at = elementwiseInput(node)
  return at === undefined ? undefined : behindChain(node, at, search)
}

function behindChain(node: RewriteNode, at: number, search: Search): Carried | undefined {
  const inner = carried(node.input(at), node, search)
  return (
    inner && {
      ...inner,
      build: (maker) => {
        const x = inner.build(maker)
        const inputs = node.inputs.map((input, index) => (index === at ? x : input))
        return maker.make(node.opType, inputs, attributesOf(node))
      },
    }
  )
}

/** An operand that meets a transposed one, before both are transposed. */
type Operand = (maker: NodeMaker) => RewriteValue

/** Operands that meet element by element: at least one is transposed, and the others are as well, or can be. */
function behindOperands(node: RewriteNode, search: Search): Carried | undefined {
  if (node.opset < 7) return undefined
  const values = [...new Set(node.inputs)]
  // Those that no node makes are no transposes. They are looked at first, because they may end the search.
  if (!values.every((value) => value?.producer || mayMeet(value, node, search))) return undefined
  const found = values.map((value) => value?.producer && carried(value, node, search))
  const perm = found.find((each) => each !== undefined)?.perm
  if (!perm) return undefined
  let gain = 0
  const operands = new Map<RewriteValue | undefined, Operand>()
  for (const [at, value] of values.entries()) {
    const own = found[at]
    if (own ? String(own.perm) !== String(perm) : value?.producer && !mayMeet(value, node, search))
      return undefined
    const constant = own ? undefined : constantOperand(value, node, perm)
    const operand = own?.build ?? constant ?? otherOperand(value, perm)
    if (!operand) return undefined
    gain += own?.gain ?? (constant ? 0 : -1)
    operands.set(value, operand)
  }
  return {
    perm,
    gain,
    build: (maker) => {
      const built = new Map([...operands].map(([value, operand]) => [value, operand(maker)]))
      return maker.make(
        node.opType,
        node.inputs.map((value) => built.get(value)),
        attributesOf(node),
      )
    },
  }
}

/** Whether an operand keeps its elements, or may be transposed. */
function mayMeet(value: RewriteValue | undefined, user: RewriteNode, search: Search): boolean {
  if (axesOfElements(value, user)) return true
  search.operands -= 1
  return search.operands >= 0
}

/** The axes of a constant that keeps the order of its elements: none or one of more than one element, and not too many. */
function axesOfElements(value: RewriteValue | undefined, user: RewriteNode): readonly number[] | undefined {
  const axes = value?.shape?.flatMap((extent, axis) => (extent === 1 ? [] : [axis]))
  if (!value || !axes || axes.length === 0) return axes
  const { weight } = value
  if (axes.length > 1 || !weight || DTYPES[weight.dtype].bits < 8) return undefined
  // A constant that others use as well is there twice then.
  return value.onlyUser === user || weight.storage.byteLength <= MAX_COPIED_BYTES ? axes : undefined
}

/** A constant that keeps the order of its elements, in another shape. */
function constantOperand(
  value: RewriteValue | undefined,
  user: RewriteNode,
  perm: readonly number[],
): Operand | undefined {
  const axes = axesOfElements(value, user)
  const offset = perm.length - (value?.rank ?? 0)
  if (!value || !axes || offset < 0) return undefined
  const [axis] = axes
  if (axis === undefined) return () => value
  const { weight } = value
  const extents = perm.map((_, at) => (perm[axis + offset] === at ? weight!.size : 1))
  return ({ constant }) => constant(withShape(weight!, extents))
}

/** Bytes of a constant that may be in the file twice for a Transpose that goes. */
const MAX_COPIED_BYTES = 64

/** Any operand of the same rank: a Transpose of it takes it back. */
function otherOperand(value: RewriteValue | undefined, perm: readonly number[]): Operand | undefined {
  if (!value || value.rank !== perm.length) return undefined
  const back = perm.map((_, axis) => perm.indexOf(axis))
  return ({ make }) => make('Transpose', [value], { perm: ints(back) })
}

/** Parts of a Concat that are transposed alike. */
function behindConcat(node: RewriteNode, search: Search): Carried | undefined {
  const parts: Carried[] = []
  for (const value of node.inputs) {
    const part = carried(value, node, search)
    if (!part || (parts[0] && String(parts[0].perm) !== String(part.perm))) return undefined
    parts.push(part)
  }
  const perm = parts[0]?.perm
  const axis = axisOf(node.int('axis'), perm?.length)
  if (!perm || axis === undefined || new Set(node.inputs).size < node.inputs.length) return undefined
  return {
    perm,
    gain: parts.reduce((sum, part) => sum + part.gain, 0),
    build: (maker) =>
      maker.make(
        'Concat',
        parts.map((part) => part.build(maker)),
        { axis: int(perm[axis]!) },
      ),
  }
}

function behindSqueeze(node: RewriteNode, search: Search): Carried | undefined {
  const inner = carried(node.input(0), node, search)
  const axes = axesOfChange(node)
  if (!inner || !axes?.every((axis) => axis < inner.perm.length)) return undefined
  return {
    perm: without(inner.perm, axes),
    gain: inner.gain,
    build: (maker) => {
      const change = { x: inner.build(maker), axes: mapped(axes, inner.perm), opset: node.opset }
      return changeAxes(maker, 'Squeeze', change)
    },
  }
}

/** The new axes keep their places. */
function behindUnsqueeze(node: RewriteNode, search: Search): Carried | undefined {
  const inner = carried(node.input(0), node, search)
  const axes = axesOfChange(node)
  const rank = (inner?.perm.length ?? 0) + (axes?.length ?? 0)
  if (!inner || !axes?.every((axis) => axis < rank)) return undefined
  const places = Array.from({ length: rank }, (_, axis) => axis).filter((axis) => !axes.includes(axis))
  const perm = Array.from({ length: rank }, (_, axis) => {
    const at = places.indexOf(axis)
    return at < 0 ? axis : places[inner.perm[at]!]!
  })
  return {
    perm,
    gain: inner.gain,
    build: (maker) => changeAxes(maker, 'Unsqueeze', { x: inner.build(maker), axes, opset: node.opset }),
  }
}

function behindSlice(node: RewriteNode, search: Search): Carried | undefined {
  const inner = node.opset < 10 ? undefined : carried(node.input(0), node, search)
  const axes = inner && sliceOf(node)
  if (!axes?.every(({ axis }) => axis < inner!.perm.length)) return undefined
  const moved = axes.map((each) => ({ ...each, axis: inner!.perm[each.axis]! }))
  return { ...inner!, build: (maker) => makeSlice(maker, inner!.build(maker), moved) }
}

function behindReduction(node: RewriteNode, search: Search): Carried | undefined {
  const inner = carried(node.input(0), node, search)
  const { list } = reductionAxes(node)
  const axes = list && axesOf(list, inner?.perm.length)
  if (!inner || !axes || axes.length === 0) return undefined
  const { perm } = inner
  if (!keepsBits(node, axes, perm)) return undefined
  const before = mapped(axes, perm)
  return {
    perm: node.int('keepdims') === 0 ? without(perm, axes) : perm,
    gain: inner.gain,
    build: (maker) => {
      const x = inner.build(maker)
      return node.opset >= reductionAxesInput(node)
        ? maker.make(node.opType, [x, listConstant(maker, before)], attributesOf(node))
        : maker.make(node.opType, [x], attributesOf(node, { axes: ints(before) }))
    },
  }
}

/**
 * Whether a reduction gives the same bits for another order of the axes. Of floats it does for one or two elements along the last axes:
 * onnxruntime adds more in an order that follows from the layout, and from the address of a row; takes a maximum of 0, -0 and NaN by
 * it; and has another sum of -0 alone along an axis that is not the last.
 */
function keepsBits(node: RewriteNode, axes: readonly number[], perm: readonly number[]): boolean {
  const { dtype, shape } = node.input(0)!
  if (dtype === 'int32' || dtype === 'int64') return !node.is('ReduceMean')
  if (dtype !== 'float32' || !shape) return false
  const count = axes.reduce((product, axis) => product * Number(shape[axis] ?? Number.NaN), 1)
  const first = perm.length - axes.length
  return count <= 2 && axes.every((axis, at) => axis === first + at && perm[axis] === axis)
}

/** Axes of the Transpose of a value as axes of the value, in order. */
function mapped(axes: readonly number[], perm: readonly number[]): readonly number[] {
  return axes.map((axis) => perm[axis]!).sort((one, other) => one - other)
}

/** The order of the axes that are left. */
function without(perm: readonly number[], axes: readonly number[]): readonly number[] {
  const left = perm.filter((_, at) => !axes.includes(at))
  const inOrder = [...left].sort((one, other) => one - other)
  return left.map((axis) => inOrder.indexOf(axis))
}

/** Operators of two operands that meet element by element. */
const BINARY = ['Add', 'And', 'Div', 'Equal', 'Greater', 'Less', 'Mul', 'Or', 'Pow', 'Sub', 'Xor']

const REDUCTIONS = ['ReduceMax', 'ReduceMean', 'ReduceMin', 'ReduceSum']

type Carry = (node: RewriteNode, search: Search) => Carried | undefined

const CARRIERS: Readonly<Record<string, Carry>> = {
  ...Object.fromEntries(BINARY.map((opType) => [opType, behindOperands])),
  ...Object.fromEntries(REDUCTIONS.map((opType) => [opType, behindReduction])),
  Concat: behindConcat,
  Slice: behindSlice,
  Squeeze: behindSqueeze,
  Unsqueeze: behindUnsqueeze,
}

/** Whether the only user is another Transpose: the last one of a row does the work of all, at once. */
function isFollowed(node: RewriteNode, perm: readonly number[]): boolean {
  const user = node.output()?.onlyUser
  if (!user?.is('Transpose') || user.output()?.isPinned) return false
  return isOnlyUse(node.output(), user) && permOf(user)?.length === perm.length
}

/** Transposes in a row: one, or none, instead of those that nothing else uses; one that others use may be undone. */
const row: NodeRule['apply'] = (node, { make }) => {
  const own = permOf(node)
  if (!own || isFollowed(node, own)) return undefined
  let [perm, value, user] = [own, node.input(0), node]
  for (let inner = node.producer(0, 'Transpose'); inner; inner = inner.producer(0, 'Transpose')) {
    const innerPerm = permOf(inner)
    if (innerPerm?.length !== perm.length) break
    const both: readonly number[] = perm.map((axis) => innerPerm[axis]!)
    if (!isOnlyUse(value, user)) {
      if (isIdentity(both)) return inner.input(0)
      break
    }
    ;[perm, value, user] = [both, inner.input(0), inner]
  }
  if (user === node) return undefined
  return isIdentity(perm) ? value : make('Transpose', [value], { perm: ints(perm) })
}

/** A Transpose that one above it can be moved to: both become one, or go. */
function around(node: RewriteNode, maker: NodeMaker, search: Search): RewriteValue | undefined {
  const outer = permOf(node)
  if (!outer || isFollowed(node, outer)) return undefined
  const found = carried(node.input(0), node, search)
  if (!found || outer.length !== found.perm.length) return undefined
  const perm = outer.map((axis) => found.perm[axis]!)
  const isGone = isIdentity(perm)
  if (found.gain + Number(isGone) <= 0) return undefined
  const value = found.build(maker)
  return isGone ? value : maker.make('Transpose', [value], { perm: ints(perm) })
}

/** A node of which several operands are transposed, or that removes the axes which a Transpose moves. */
function behind(node: RewriteNode, maker: NodeMaker, search: Search): RewriteValue | undefined {
  const found = carriedBehind(node, search)
  if (!found) return undefined
  const isGone = isIdentity(found.perm)
  if (found.gain + Number(isGone) <= 1) return undefined
  const value = found.build(maker)
  return isGone ? value : maker.make('Transpose', [value], { perm: ints(found.perm) })
}

/** A Reshape that moves axes of one element is another Transpose of what a Transpose moves. */
const transposeReshape: NodeRule['apply'] = (node, { make }) => {
  const inner = node.producer(0, 'Transpose')
  const perm = inner && permOf(inner)
  if (!perm || !isOnlyUse(node.input(0), node)) return undefined
  const moved = movedOnes(inner.output()?.shape, node.output()?.shape)
  return moved && make('Transpose', [inner.input(0)], { perm: ints(moved.map((axis) => perm[axis]!)) })
}

/** For each axis of the second shape the one of the first, if the axes of more elements have one order in both. */
function movedOnes(
  before: RewriteValue['shape'],
  after: RewriteValue['shape'],
): readonly number[] | undefined {
  if (!before || before.length !== after?.length) return undefined
  const [from, to] = [axesBySize(before), axesBySize(after)]
  if (from.wide.length !== to.wide.length) return undefined
  const open = from.wide.filter((axis, at) => !isSameDim(before[axis], after[to.wide[at]!]))
  // One extent that is not known follows from the number of elements.
  const isClear = from.wide.every((axis) => open.includes(axis) || Number(before[axis]) > 0)
  if (open.length > 1 || (open.length === 1 && !isClear)) return undefined
  const moved = new Array<number>(before.length)
  for (const [at, axis] of to.wide.entries()) moved[axis] = from.wide[at]!
  for (const [at, axis] of to.ones.entries()) moved[axis] = from.ones[at]!
  return moved
}

/** Axes of one element, and the others. */
function axesBySize(shape: NonNullable<RewriteValue['shape']>): {
  readonly wide: readonly number[]
  readonly ones: readonly number[]
} {
  const axes = [...shape.keys()]
  return {
    wide: axes.filter((axis) => shape[axis] !== 1),
    ones: axes.filter((axis) => shape[axis] === 1),
  }
}

/** A rule that moves transposes behind operators, at most a number of them. */
const byMoving = (name: string, opTypes: readonly string[], move: typeof around): NodeRule =>
  ruleOf(name, opTypes, (node, maker) => move(node, maker, { left: MAX_BETWEEN, operands: MAX_OPERANDS }))

/** Two operands that are transposed alike: sums of many values are frequent, so that nothing is searched above them. */
const alike: NodeRule['apply'] = (node, maker) =>
  node.inputs.every((value) => value?.producer?.is('Transpose'))
    ? behind(node, maker, { left: 0, operands: 0 })
    : undefined

export const TRANSPOSES: readonly NodeRule[] = [
  ruleOf('transpose-transpose', ['Transpose'], row),
  byMoving('transposes-around', ['Transpose'], around),
  ruleOf('transposed-operands', BINARY, alike),
  byMoving('transposed-parts', ['Concat'], behind),
  byMoving('transposed-axes', [...REDUCTIONS, 'Squeeze'], behind),
  ruleOf('transpose-reshape', ['Reshape'], transposeReshape),
]
