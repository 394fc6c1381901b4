/** Two nodes that do the work of one, or of none, bit for bit. */
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { elementsOf } from '../rewrite/elements.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeRule, Replacement } from '../rewrite/rewriter.js'
import { attributesOf, axesOf, axesOfChange, int, isOnlyUse, reductionAxes, ruleOf } from './facts.js'

/** Neg of Neg, Not of Not. */
function inverse(node: RewriteNode): Replacement | undefined {
  return node.producer(0, node.opType)?.input(0)
}

/** Applied twice, these give what they gave the first time. */
function idempotent(node: RewriteNode): Replacement | undefined {
  return node.producer(0, node.opType)?.output()
}

/** Bounds of Clip, as inputs. */
interface Bound {
  readonly value: RewriteValue
  readonly number: number
}

function boundOf(value: RewriteValue | undefined): Bound | undefined {
  const elements = elementsOf(value)
  const number = elements?.length === 1 && value?.rank === 0 ? Number(elements[0]) : Number.NaN
  return Number.isNaN(number) ? undefined : { value: value!, number }
}

/** The inner bounds, clipped by the outer ones. */
const clip: NodeRule['apply'] = (node, { make }) => {
  const inner = node.producer(0, 'Clip')
  if (!inner || node.opset < 11 || !isOnlyUse(node.input(0), node)) return undefined
  const [low, high] = [boundOf(inner.input(1)), boundOf(inner.input(2))]
  const [least, most] = [boundOf(node.input(1)), boundOf(node.input(2))]
  if (!low || !high || !least || !most || low.number > high.number || least.number > most.number)
    return undefined
  const clipped = (bound: Bound): RewriteValue =>
    bound.number < least.number ? least.value : bound.number > most.number ? most.value : bound.value
  return make('Clip', [inner.input(0), clipped(low), clipped(high)])
}

/** Types that hold every value of a type. */
function holds(to: Dtype, from: Dtype): boolean {
  const [wide, narrow] = [DTYPES[to], DTYPES[from]]
  if (from === 'bool') return NUMBERS.has(to)
  if (!NUMBERS.has(from) || !NUMBERS.has(to)) return false
  if (narrow.kind === 'float') return wide.kind === 'float' && wide.bits > narrow.bits
  if (wide.kind === 'float') return narrow.bits - Number(isSigned(from)) <= EXACT_BITS[to]!
  if (isSigned(from)) return isSigned(to) && wide.bits > narrow.bits
  return isSigned(to) ? wide.bits > narrow.bits : wide.bits >= narrow.bits
}

const isSigned = (dtype: Dtype): boolean => dtype.startsWith('int')

/** Bits of the integers that a float holds without a gap. */
const EXACT_BITS: Readonly<Partial<Record<Dtype, number>>> = {
  float16: 11,
  bfloat16: 8,
  float32: 24,
  float64: 53,
}

const NUMBERS: ReadonlySet<Dtype> = new Set<Dtype>([
  ...(['float16', 'bfloat16', 'float32', 'float64'] as const),
  ...(['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'] as const),
])

const cast: NodeRule['apply'] = (node, { make }) => {
  const inner = node.producer(0, 'Cast')
  const x = inner?.input(0)
  const [between, to] = [inner?.int('to'), node.int('to')].map((code) => DTYPE_OF_CODE.get(code ?? 0))
  const from = x?.dtype
  if (!inner || !x || from === undefined || between === undefined || to === undefined) return undefined
  if (!holds(between, from)) return undefined
  if (to === from) return x
  // Engines differ in what floats beyond the range of an integer become.
  const isDefined = DTYPES[from].kind !== 'float' || DTYPES[to].kind === 'float'
  if (!isDefined || !NUMBERS.has(to) || !isOnlyUse(node.input(0), node)) return undefined
  return make('Cast', [x], attributesOf(node))
}

/** Reduction that keeps its axes, and a Squeeze of the same ones. */
const reduceSqueeze: NodeRule['apply'] = (node, { make }) => {
  const inner = node.input(0)?.producer
  if (!inner?.is(REDUCTIONS) || !isOnlyUse(node.input(0), node) || inner.int('keepdims') !== 1)
    return undefined
  const reduced = reducedAxes(inner)
  const squeezed = axesOfChange(node)
  if (!reduced || !squeezed || reduced.length === 0 || String(reduced) !== String(squeezed)) return undefined
  return make(inner.opType, inner.inputs, attributesOf(inner, { keepdims: int(0) }))
}

const REDUCTIONS = [
  ...['ReduceL1', 'ReduceL2', 'ReduceLogSum', 'ReduceLogSumExp', 'ReduceMax', 'ReduceMean', 'ReduceMin'],
  ...['ReduceProd', 'ReduceSum', 'ReduceSumSquare', 'ArgMax', 'ArgMin'],
]

function reducedAxes(node: RewriteNode): readonly number[] | undefined {
  const rank = node.input(0)?.rank
  if (node.is(['ArgMax', 'ArgMin'])) return axesOf([node.int('axis') ?? 0], rank)
  const { list } = reductionAxes(node)
  return list && axesOf(list, rank)
}

/** What was quantized already, with the same scale. */
function dequantized(node: RewriteNode): Replacement | undefined {
  const inner = node.producer(0, 'DequantizeLinear')
  const x = inner?.input(0)
  if (
    !inner ||
    !x ||
    (x.dtype !== 'int8' && x.dtype !== 'uint8' && x.dtype !== 'int16' && x.dtype !== 'uint16')
  )
    return undefined
  const isSame = inner.int('axis') === node.int('axis') || node.input(1)?.rank === 0
  const isPlain = [inner, node].every((each) => (each.int('block_size') ?? 0) === 0)
  if (!isSame || !isPlain || inner.output()?.dtype !== node.input(1)?.dtype) return undefined
  if (!isSameConstant(inner.input(1), node.input(1)) || !isSameConstant(inner.input(2), node.input(2)))
    return undefined
  return isNormalScale(node.input(1)) && node.output()?.dtype === x.dtype ? x : undefined
}

function isSameConstant(one: RewriteValue | undefined, other: RewriteValue | undefined): boolean {
  if (one === other) return true
  const [left, right] = [elementsOf(one), elementsOf(other)]
  return (
    left !== undefined &&
    left.length === right?.length &&
    one!.dtype === other!.dtype &&
    Array.from(left as ArrayLike<unknown>).every((each, at) => Object.is(each, right[at]))
  )
}

/** Smallest normal float32: below, a scale loses bits that its quotients need. */
const LEAST_NORMAL = 2 ** -126

function isNormalScale(scale: RewriteValue | undefined): boolean {
  const elements = scale?.dtype === 'float32' ? elementsOf(scale) : undefined
  return (
    elements !== undefined &&
    (elements as Float32Array).every((each) => each >= LEAST_NORMAL && each < Number.POSITIVE_INFINITY)
  )
}

export const PAIRS: readonly NodeRule[] = [
  ruleOf('inverse-pair', ['Neg', 'Not'], inverse),
  ruleOf('idempotent', ['Abs', 'Relu', 'Floor', 'Ceil', 'Round', 'Sign'], idempotent),
  ruleOf('clip-clip', ['Clip'], clip),
  ruleOf('cast-cast', ['Cast'], cast),
  ruleOf('reduce-squeeze', ['Squeeze'], reduceSqueeze),
  ruleOf('dequantize-quantize', ['QuantizeLinear'], dequantized),
]
