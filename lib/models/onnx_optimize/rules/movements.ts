/** Neighbours that move elements: one movement instead of two, or none. */
import { tensor } from '../../../tensor/from_values.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeMaker, NodeRule, Replacement } from '../rewrite/rewriter.js'
import { isSameDim, isSameDims } from '../rewrite/same_shape.js'
import {
  attributesOf,
  axesOfChange,
  axisOf,
  FAR,
  int,
  integersOf,
  ints,
  isOnlyUse,
  permOf,
  ruleOf,
} from './facts.js'
import { type AxisSlice, sliceOf } from './no_ops.js'

/** A list of int64, as an input. */
export function listConstant(maker: NodeMaker, values: readonly number[]): RewriteValue {
  const elements = BigInt64Array.from(values, (value) =>
    value >= FAR ? LAST : value <= -FAR ? -LAST : BigInt(value),
  )
  return maker.constant(tensor(elements, { shape: [values.length] }))
}

/** Largest int64, which means the end of an axis. */
const LAST = 2n ** 63n - 1n

/** Operators that compute each element from one element; others are those whose second input is one number. */
export const UNARY: ReadonlySet<string> = new Set([
  ...[
    'Abs',
    'Acos',
    'Acosh',
    'Asin',
    'Asinh',
    'Atan',
    'Atanh',
    'BitwiseNot',
    'Cast',
    'Ceil',
    'Celu',
    'Cos',
    'Cosh',
  ],
  ...[
    'Elu',
    'Erf',
    'Exp',
    'Floor',
    'Gelu',
    'HardSigmoid',
    'HardSwish',
    'IsInf',
    'IsNaN',
    'LeakyRelu',
    'Log',
    'Mish',
  ],
  ...[
    'Neg',
    'Not',
    'Reciprocal',
    'Relu',
    'Round',
    'Selu',
    'Shrink',
    'Sigmoid',
    'Sign',
    'Sin',
    'Sinh',
    'Softplus',
  ],
  ...['Softsign', 'Sqrt', 'Swish', 'Tan', 'Tanh', 'ThresholdedRelu'],
])

const WITH_NUMBER: ReadonlySet<string> = new Set(['Add', 'Clip', 'Div', 'Max', 'Min', 'Mul', 'Pow', 'Sub'])

/** The input whose elements an operator computes one by one, if all others are scalars. */
export function elementwiseInput(node: RewriteNode): number | undefined {
  if (node.domain !== '') return undefined
  if (UNARY.has(node.opType)) return 0
  if (!WITH_NUMBER.has(node.opType) || node.opset < 7) return undefined
  const wide = node.inputs.flatMap((value, at) => (value === undefined || value.rank === 0 ? [] : [at]))
  return wide.length === 1 ? wide[0] : undefined
}

/** Longest chain between two movements that undo each other. */
const MAX_BETWEEN = 16

/** Elementwise operators that only this chain uses, above a node, nearest first; and the node above them. */
function chainAbove(
  node: RewriteNode,
): { readonly chain: readonly RewriteNode[]; readonly first: RewriteNode } | undefined {
  const chain: RewriteNode[] = []
  let user = node
  let at = 0
  while (chain.length < MAX_BETWEEN) {
    const value = user.input(at)
    const above = value?.producer
    if (!above || above.graph !== node.graph) return undefined
    const next = isOnlyUse(value, user) ? elementwiseInput(above) : undefined
    if (next === undefined) return chain.length === 0 ? undefined : { chain, first: above }
    chain.push(above)
    user = above
    at = next
  }
  return undefined
}

/** The same operators on another value. */
function rebuilt(chain: readonly RewriteNode[], value: RewriteValue, { make }: NodeMaker): RewriteValue {
  return [...chain].reverse().reduce((above, each) => {
    const at = elementwiseInput(each)!
    const inputs = each.inputs.map((input, index) => (index === at ? above : input))
    return make(each.opType, inputs, attributesOf(each))
  }, value)
}

const RESHAPES = ['Reshape', 'Flatten', 'Squeeze', 'Unsqueeze']

/** Operators between two changes of the shape, of which the second restores it. */
const reshapesAround: NodeRule['apply'] = (node, maker) => {
  const found = chainAbove(node)
  if (!found?.first.is(RESHAPES)) return undefined
  const x = found.first.input(0)
  if (!x) return undefined
  const isRestored = isSameDims(x.shape, node.output()?.shape) || isOtherWay(found.first, node)
  return isRestored ? rebuilt(found.chain, x, maker) : undefined
}

/** Squeeze and Unsqueeze of the same axes, which are inverse whatever the extents of others are. */
function isOtherWay(first: RewriteNode, second: RewriteNode): boolean {
  const names = [first.opType, second.opType].sort()
  const [one, other] = [axesOfChange(first), axesOfChange(second)]
  return String(names) === 'Squeeze,Unsqueeze' && one !== undefined && String(one) === String(other)
}

/** Whether a node keeps the order of elements: a change of the shape, or a Transpose that moves only axes of one element. */
function isReshape(node: RewriteNode | undefined): node is RewriteNode {
  if (node?.is(RESHAPES)) return true
  const perm = node?.is('Transpose') ? permOf(node) : undefined
  // The shape is asked for last: it has to be inferred.
  const shape = perm && node?.input(0)?.shape
  return perm !== undefined && shape !== undefined && isInOrder(perm, (axis) => shape[axis] !== 1)
}

/** Whether the axes that count have the same order before and behind a Transpose. */
function isInOrder(perm: readonly number[], counts: (axis: number) => boolean): boolean {
  return perm.filter(counts).every((axis, at, kept) => at === 0 || kept[at - 1]! < axis)
}

/** One change of the shape instead of two. */
const reshapes: NodeRule['apply'] = (node, maker) => {
  const inner = node.input(0)?.producer
  const x = inner?.input(0)
  if (!inner || !x || node.opset < 5) return undefined
  // Transposes in a row have a rule that needs no shapes.
  if (inner.is('Transpose') && node.is('Transpose')) return undefined
  if (!isReshape(inner) || !isReshape(node)) return undefined
  const shape = node.output()?.shape
  if (isSameDims(x.shape, shape)) return x
  if (!isOnlyUse(node.input(0), node)) return undefined
  const target = targetOf(node)
  const attributes = target?.includes(0) ? { allowzero: int(1) } : {}
  if (target) return maker.make('Reshape', [x, listConstant(maker, target)], attributes)
  const removed = addedOnes(shape, x.shape)
  if (removed) return changeAxes(maker, 'Squeeze', { x, axes: removed, opset: node.opset })
  const added = addedOnes(x.shape, shape)
  return added && changeAxes(maker, 'Unsqueeze', { x, axes: added, opset: node.opset })
}

/** The axes of one element that the longer shape has and the shorter one has not, where all others are the same. */
function addedOnes(shorter: RewriteValue['shape'], longer: RewriteValue['shape']): number[] | undefined {
  if (!shorter || !longer || shorter.length >= longer.length) return undefined
  const added: number[] = []
  for (const [axis, dim] of longer.entries()) {
    if (isSameDim(dim, shorter[axis - added.length])) continue
    if (dim !== 1) return undefined
    added.push(axis)
  }
  return shorter.length + added.length === longer.length ? added : undefined
}

/** A Squeeze or Unsqueeze, with its axes where the operator set wants them. */
export function changeAxes(
  maker: NodeMaker,
  opType: 'Squeeze' | 'Unsqueeze',
  { x, axes, opset }: { readonly x: RewriteValue; readonly axes: readonly number[]; readonly opset: number },
): RewriteValue {
  return opset >= 13
    ? maker.make(opType, [x, listConstant(maker, axes)])
    : maker.make(opType, [x], { axes: ints(axes) })
}

/** The shape that a change of the shape gives, with at most one -1; no 0 stands for an extent of its input. */
function targetOf(node: RewriteNode): readonly number[] | undefined {
  const list = node.is('Reshape') && node.opset >= 5 ? integersOf(node.input(1)) : undefined
  const keepsZero = node.int('allowzero') === 1
  const resolved = list?.map((extent, axis) =>
    extent === 0 && !keepsZero ? node.input(0)?.shape?.[axis] : extent,
  )
  if (resolved?.every((extent) => typeof extent === 'number') && (keepsZero || !resolved.includes(0)))
    return resolved as readonly number[]
  const { shape } = node.output() ?? {}
  const open = shape?.filter((dim) => typeof dim !== 'number').length ?? 2
  if (!shape || open > 1 || shape.includes(0)) return undefined
  return shape.map((dim) => (typeof dim === 'number' ? dim : -1))
}

/** Whether only Unsqueezes read a value: each of them can do its work as well, and it goes. */
function feedsUnsqueezes(value: RewriteValue | undefined): boolean {
  if (!value || value.isOutput || value.isPinned) return false
  for (const user of value.users)
    if (!user.is('Unsqueeze') || user.input(0) !== value || !axesOfChange(user)) return false
  return true
}

/** Squeeze of Unsqueeze, and the other way, of the same axes; two Unsqueezes are one. */
const unsqueezes: NodeRule['apply'] = (node, maker) => {
  const inner = node.producer(0, ['Squeeze', 'Unsqueeze'])
  const x = inner?.input(0)
  if (!inner || !x) return undefined
  const [outer, own] = [axesOfChange(node), axesOfChange(inner)]
  if (!outer || !own) return undefined
  if (isOtherWay(inner, node)) return x
  if (!inner.is('Unsqueeze') || !node.is('Unsqueeze') || !feedsUnsqueezes(node.input(0))) return undefined
  const total = outer.length + own.length + (x.rank ?? Number.NaN)
  const inserted = new Set(outer)
  // Axes of the inner one count those of its own output, which fill the places that the outer one leaves.
  const places = Array.from({ length: total }, (_, axis) => axis).filter((axis) => !inserted.has(axis))
  const axes = [...outer, ...own.map((axis) => places[axis])]
  if (axes.some((axis) => axis === undefined)) return undefined
  const all = (axes as number[]).sort((one, other) => one - other)
  return changeAxes(maker, 'Unsqueeze', { x, axes: all, opset: node.opset })
}

/** Two Slices: of different axes at once, of one axis by the bounds that both leave. */
const slices: NodeRule['apply'] = (node, maker) => {
  const inner = node.producer(0, 'Slice')
  const x = inner?.input(0)
  if (!inner || !x || node.opset < 10 || !isOnlyUse(node.input(0), node)) return undefined
  const [outer, own] = [sliceOf(node), sliceOf(inner)]
  if (!outer || !own) return undefined
  const all = new Map(own.map((each) => [each.axis, each]))
  for (const each of outer) {
    const known = all.get(each.axis)
    const both = known ? sliceOfSlice(known, each, x.shape?.[each.axis]) : each
    if (!both) return undefined
    all.set(each.axis, both)
  }
  return makeSlice(maker, x, [...all.values()])
}

/** A Slice of these axes, from operator set 10 on. */
export function makeSlice(maker: NodeMaker, x: RewriteValue, bounds: readonly AxisSlice[]): RewriteValue {
  const axes = [...bounds].sort((one, other) => one.axis - other.axis)
  const list = (numbers: readonly number[]): RewriteValue => listConstant(maker, numbers)
  const steps = axes.map(({ step }) => step)
  return maker.make('Slice', [
    x,
    list(axes.map(({ start }) => start)),
    list(axes.map(({ end }) => end)),
    list(axes.map(({ axis }) => axis)),
    ...(steps.every((step) => step === 1) ? [] : [list(steps)]),
  ])
}

/** The outer Slice of what the inner one leaves of an axis; undefined where it depends on an extent that is not known. */
function sliceOfSlice(inner: AxisSlice, outer: AxisSlice, extent: unknown): AxisSlice | undefined {
  if (inner.step < 1 || outer.step < 1) return undefined
  const first = typeof extent === 'number' ? withoutNegatives(inner, extent) : inner
  if (first.start < 0 || first.end < 0) return undefined
  const length = Math.max(0, Math.ceil((first.end - first.start) / first.step))
  const second = typeof extent === 'number' ? withoutNegatives(outer, length) : outer
  if (second.start < 0 || second.end < 0) return undefined
  const start = Math.min(first.start + first.step * second.start, FAR)
  const end = Math.min(first.end, second.end >= FAR ? FAR : first.start + first.step * second.end)
  return { axis: inner.axis, start, end: Math.max(end, start), step: Math.min(first.step * second.step, FAR) }
}

function withoutNegatives(slice: AxisSlice, extent: number): AxisSlice {
  const clamp = (bound: number): number => Math.min(Math.max(bound < 0 ? bound + extent : bound, 0), extent)
  return { ...slice, start: clamp(slice.start), end: clamp(slice.end) }
}

/** Concats of one axis whose results nothing else uses. */
const concats: NodeRule['apply'] = (node, { make }) => {
  const rank = node.output()?.rank
  const axis = axisOf(node.int('axis'), rank)
  if (axis === undefined) return undefined
  const isInner = (value: RewriteValue | undefined): boolean => {
    const inner = value?.producer
    return inner?.is('Concat') === true && isOnlyUse(value, node) && axisOf(inner.int('axis'), rank) === axis
  }
  if (!node.inputs.some(isInner)) return undefined
  const inputs = node.inputs.flatMap((value) => (isInner(value) ? value!.producer!.inputs : [value]))
  return make('Concat', inputs, { axis: int(axis) })
}

/** All parts of a Split, joined in order. */
function splitConcat(node: RewriteNode): Replacement | undefined {
  const split = node.producer(0, 'Split')
  if (!split || split.outputs.length !== node.inputs.length) return undefined
  const rank = split.input(0)?.rank
  const axis = axisOf(node.int('axis'), rank)
  if (axis === undefined || axisOf(split.int('axis') ?? 0, rank) !== axis) return undefined
  return node.inputs.every((value, at) => value !== undefined && value === split.outputs[at])
    ? split.input(0)
    : undefined
}

/** A Split into the parts that a Concat joined. */
function concatSplit(node: RewriteNode): Replacement | undefined {
  const concat = node.producer(0, 'Concat')
  if (!concat || concat.inputs.length !== node.outputs.length) return undefined
  const rank = node.input(0)?.rank
  const axis = axisOf(concat.int('axis'), rank)
  if (axis === undefined || axisOf(node.int('axis') ?? 0, rank) !== axis) return undefined
  const isSame = node.outputs.every((output, at) => {
    const extent = concat.inputs[at]?.shape?.[axis]
    return typeof extent === 'number' && isSameDim(extent, output?.shape?.[axis])
  })
  return isSame ? concat.inputs : undefined
}

/** An element of a sequence that was just made. */
function sequenceAt(node: RewriteNode): Replacement | undefined {
  const sequence = node.producer(0, 'SequenceConstruct')
  const [at] = integersOf(node.input(1)) ?? []
  if (!sequence || at === undefined) return undefined
  return sequence.inputs.at(at >= -sequence.inputs.length && at < sequence.inputs.length ? at : Number.NaN)
}

const sequenceConcat: NodeRule['apply'] = (node, { make }) => {
  const sequence = node.producer(0, 'SequenceConstruct')
  if (!sequence || node.int('new_axis') !== 0 || node.int('axis') === undefined) return undefined
  return make('Concat', sequence.inputs, { axis: int(node.int('axis')!) })
}

export const MOVEMENTS: readonly NodeRule[] = [
  ruleOf('unsqueeze-squeeze', ['Squeeze', 'Unsqueeze'], unsqueezes),
  ruleOf('reshape-reshape', [...RESHAPES, 'Transpose'], reshapes),
  ruleOf('reshapes-around', RESHAPES, reshapesAround),
  ruleOf('slice-slice', ['Slice'], slices),
  ruleOf('concat-concat', ['Concat'], concats),
  ruleOf('split-concat', ['Concat'], splitConcat),
  ruleOf('concat-split', ['Split'], concatSplit),
  ruleOf('sequence-element', ['SequenceAt'], sequenceAt),
  ruleOf('sequence-concat', ['ConcatFromSequence'], sequenceConcat),
]
