/**
 * Scales and shifts by channel, folded into the weights before them: batch normalizations, products and sums behind convolutions.
 * Results are rounded otherwise than those of two nodes.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import { tensor } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { elementsOf as elementsOfTensor, filled, isValueDtype } from '../../onnx/evaluate/value.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeMaker, NodeRule, Replacement } from '../rewrite/rewriter.js'
import { attributesOf, isOnlyUse, ruleOf } from './facts.js'

/** The largest error of a constant that a fusion made: of an element, as a part of the largest one. */
export interface Rounding {
  largest: number
}

const FLOATS: readonly unknown[] = ['float16', 'float32', 'float64']

/** Whether a constant has numbers that a fusion can change. */
export function isWeight(tensor: DenseTensor | undefined): tensor is DenseTensor {
  return tensor !== undefined && FLOATS.includes(tensor.dtype)
}

/** Elements of the axes from one on. */
export function extentFrom(shape: readonly number[], from: number): number {
  return shape.slice(from).reduce((product, extent) => product * extent, 1)
}

/** Numbers of a constant as doubles; undefined where they cannot be read at once. */
export function doublesOf(value: RewriteValue | undefined): Float64Array | undefined {
  const weight = value?.weight
  if (!isWeight(weight)) return undefined
  try {
    return Float64Array.from(elementsOfTensor(weight) as ArrayLike<number>)
  } catch (error) {
    if (error instanceof TileworkError) return undefined
    throw error
  }
}

/** A node of which each output channel is a sum of products with weights of its own. */
interface Weighted {
  readonly node: RewriteNode
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly channels: number
  /** The output channel of an element of the weights. */
  readonly channelOf: (element: number) => number
}

/** @returns undefined for other nodes, and where others use its result or its weights */
function weightedOf(value: RewriteValue | undefined, user: RewriteNode): Weighted | undefined {
  const node = value?.producer
  const weights = node?.input(1)
  const weight = weights?.weight
  if (!node?.is(['Conv', 'ConvTranspose', 'Gemm']) || !isWeight(weight)) return undefined
  if (!isOnlyUse(value, user) || !isOnlyUse(weights, node)) return undefined
  const { shape, dtype } = weight
  const inner = (from: number): number => extentFrom(shape, from)
  if (node.is('Conv'))
    return { node, dtype, shape, channels: shape[0]!, channelOf: (at) => Math.floor(at / inner(1)) }
  if (node.is('Gemm')) {
    const isTransposed = node.int('transB') === 1
    const isPlain = shape.length === 2 && (node.float('beta') === 1 || !node.input(2))
    const [rows, columns] = shape as [number, number]
    return isPlain
      ? {
          ...{ node, dtype, shape, channels: isTransposed ? rows : columns },
          channelOf: (at) => (isTransposed ? Math.floor(at / columns) : at % columns),
        }
      : undefined
  }
  const [inputs = 0, perGroup = 0] = shape
  const groups = node.int('group') ?? 1
  const channelOf = (at: number): number => {
    const input = Math.floor(at / inner(1))
    return Math.floor(input / (inputs / groups)) * perGroup + (Math.floor(at / inner(2)) % perGroup)
  }
  return inputs % groups === 0 ? { node, dtype, shape, channels: perGroup * groups, channelOf } : undefined
}

/** The bias by channel; zeros where there is none, undefined where it has another shape. */
function biasOf({ node, channels }: Weighted): Float64Array | undefined {
  if (!node.input(2)) return new Float64Array(channels)
  const bias = doublesOf(node.input(2))
  const shape = node.input(2)?.weight?.shape
  return shape?.length === 1 && bias?.length === channels ? bias : undefined
}

/** A value for each channel, of a constant that has one, or one for all. */
function byChannel(value: RewriteValue | undefined, { shape, channels }: Weighted): Float64Array | undefined {
  const own = value?.weight?.shape
  const numbers = own && doublesOf(value)
  if (!own || !numbers || own.length > shape.length) return undefined
  if (numbers.length === 1) return new Float64Array(channels).fill(numbers[0]!)
  const axis = own.length - shape.length + 1
  const isOfChannels = axis >= 0 && own.every((extent, at) => extent === (at === axis ? channels : 1))
  return isOfChannels ? numbers : undefined
}

/** Weights times `scale`, and `bias` times `scale` plus `shift`, by channel; undefined for what is not finite. */
function scaled(
  weighted: Weighted,
  { scale, shift }: { readonly scale: Float64Array | undefined; readonly shift: Float64Array },
  maker: NodeMaker,
  rounding: Rounding,
): Replacement | undefined {
  const { node, dtype, shape, channelOf } = weighted
  const bias = biasOf(weighted)
  if (!bias) return undefined
  const shifted = bias.map((each, at) => each * (scale?.[at] ?? 1) + shift[at]!)
  const weights = scale && doublesOf(node.input(1))
  if (scale && !weights) return undefined
  const products = weights?.map((each, at) => each * scale![channelOf(at)]!)
  const newWeights = products ? constantOf(products, { dtype, shape }, maker, rounding) : node.input(1)
  const newBias = constantOf(shifted, { dtype, shape: [shifted.length] }, maker, rounding)
  if (!newWeights || !newBias) return undefined
  return maker.make(node.opType, [node.input(0), newWeights, newBias], attributesOf(node))
}

/** A constant of the numbers; undefined where one is not finite in its type. */
export function constantOf(
  exact: Float64Array,
  { dtype, shape }: { readonly dtype: Dtype; readonly shape: readonly number[] },
  maker: NodeMaker,
  rounding: Rounding,
): RewriteValue | undefined {
  const elements = isValueDtype(dtype) && rounded(exact, dtype, rounding)
  if (!elements) return undefined
  return maker.constant(tensor(elements as Float32Array, { dtype: dtype as 'float32', shape }))
}

function rounded(exact: Float64Array, dtype: string, rounding: Rounding) {
  const elements = filled(dtype as 'float32', exact.length, (at) => exact[at]!)
  let [most, error] = [0, 0]
  for (const [at, each] of exact.entries()) {
    const found = elements[at] as number
    if (!Number.isFinite(found)) return undefined
    most = Math.max(most, Math.abs(each))
    error = Math.max(error, Math.abs(each - found))
  }
  if (most > 0) rounding.largest = Math.max(rounding.largest, error / most)
  return elements
}

/** BatchNormalization of which scale, shift, mean and variance are constants, outside of training. */
function normalization(node: RewriteNode, maker: NodeMaker, rounding: Rounding): Replacement | undefined {
  const weighted = weightedOf(node.input(0), node)
  if (!weighted || node.opset < 9 || (node.int('training_mode') ?? 0) !== 0) return undefined
  if (node.outputs.slice(1).some((value) => value && !value.isUnused)) return undefined
  const lists = [1, 2, 3, 4].map((at) => doublesOf(node.input(at)))
  if (lists.some((list) => list?.length !== weighted.channels)) return undefined
  const [scale, shift, mean, variance] = lists as Float64Array[]
  const epsilon = node.float('epsilon') ?? 0
  const factor = scale!.map((each, at) => each / Math.sqrt(variance![at]! + epsilon))
  if (!factor.every(Number.isFinite)) return undefined
  return scaled(
    weighted,
    { scale: factor, shift: shift!.map((each, at) => each - mean![at]! * factor[at]!) },
    maker,
    rounding,
  )
}

function product(node: RewriteNode, maker: NodeMaker, rounding: Rounding): Replacement | undefined {
  return eitherOrder(node, (weighted, scale) =>
    scaled(weighted, { scale, shift: new Float64Array(weighted.channels) }, maker, rounding),
  )
}

function sum(node: RewriteNode, maker: NodeMaker, rounding: Rounding): Replacement | undefined {
  return eitherOrder(node, (weighted, shift) =>
    scaled(weighted, { scale: undefined, shift }, maker, rounding),
  )
}

function eitherOrder(
  node: RewriteNode,
  fuse: (weighted: Weighted, byChannel: Float64Array) => Replacement | undefined,
): Replacement | undefined {
  for (const [value, other] of [node.inputs, [...node.inputs].reverse()]) {
    const weighted = weightedOf(value, node)
    // Gemm has an own pass, which leaves its weights.
    const numbers = weighted?.node.is(['Conv', 'ConvTranspose']) && byChannel(other, weighted)
    if (weighted && numbers) return fuse(weighted, numbers)
  }
  return undefined
}

export function normalizationRules(rounding: Rounding): readonly NodeRule[] {
  return [
    ruleOf('batch-normalization', ['BatchNormalization'], (node, maker) =>
      normalization(node, maker, rounding),
    ),
    ruleOf('channel-product', ['Mul'], (node, maker) => product(node, maker, rounding)),
  ]
}

export function channelSumRule(rounding: Rounding): NodeRule {
  return ruleOf('channel-sum', ['Add'], (node, maker) => sum(node, maker, rounding))
}
