/**
 * Constant factors in front of Conv, ConvTranspose, MatMul and Gemm, folded into their weights: Gelu of older operator sets halves its
 * result, and attention divides by the root of a dimension. Padding with zeros stays zeros.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeMaker, NodeRule, Replacement } from '../rewrite/rewriter.js'
import { attributesOf, isOnlyUse, keepsShape, ruleOf } from './facts.js'
import { constantOf, doublesOf, extentFrom, isWeight, type Rounding } from './fuse_channels.js'

/** Weights that are multiplied with the channels of input 0. */
interface Inputs {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly channels: number
  /** Axis of the channels in input 0, from the last one. */
  readonly axis: number
  /** The input channel of an element of the weights. */
  readonly channelOf: (element: number) => number
}

/** @returns undefined for other nodes, and where others use the weights */
function inputsOf(node: RewriteNode): Inputs | undefined {
  const weight = node.input(1)?.weight
  if (!isWeight(weight) || !isOnlyUse(node.input(1), node)) return undefined
  const { shape, dtype } = weight
  const [first = 0, second = 0] = shape
  const inner = (from: number): number => extentFrom(shape, from)
  if (node.is('Conv')) {
    const groups = node.int('group') ?? 1
    const channelOf = (at: number): number =>
      Math.floor(Math.floor(at / inner(1)) / (first / groups)) * second + (Math.floor(at / inner(2)) % second)
    const isWhole = shape.length > 2 && groups > 0 && first % groups === 0
    return isWhole
      ? { dtype, shape, channels: second * groups, axis: shape.length - 2, channelOf }
      : undefined
  }
  if (node.is('ConvTranspose')) {
    const channelOf = (at: number): number => Math.floor(at / inner(1))
    return shape.length > 2 ? { dtype, shape, channels: first, axis: shape.length - 2, channelOf } : undefined
  }
  if (shape.length !== 2 || (node.is('Gemm') && node.int('transA') === 1)) return undefined
  return node.is('Gemm') && node.int('transB') === 1
    ? { dtype, shape, channels: second, axis: 0, channelOf: (at) => at % second }
    : { dtype, shape, channels: first, axis: 0, channelOf: (at) => Math.floor(at / second) }
}

interface Factor {
  readonly value: RewriteValue
  readonly constant: RewriteValue
  readonly numbers: Float64Array
}

/** The value that a product or a quotient with a constant scales, and what by; undefined for other nodes. */
function factorOf(node: RewriteNode | undefined): Factor | undefined {
  if (!node?.is(['Mul', 'Div']) || node.opset < 7) return undefined
  const pairs = [[node.input(0), node.input(1)] as const, [node.input(1), node.input(0)] as const]
  for (const [value, constant] of node.is('Mul') ? pairs : pairs.slice(0, 1)) {
    const numbers = value && !value.weight ? doublesOf(constant) : undefined
    if (!value || !constant || !numbers || !keepsShape(value, constant)) continue
    return { value, constant, numbers: node.is('Mul') ? numbers : numbers.map((each) => 1 / each) }
  }
  return undefined
}

/** The constant has one number, or one for each channel on the axis of the channels. */
function isByChannel({ weight }: RewriteValue, { channels, axis }: Inputs): boolean {
  const shape = weight?.shape ?? []
  const count = shape.reduce((product, extent) => product * extent, 1)
  return count === 1 || (count === channels && shape[shape.length - 1 - axis] === channels)
}

function factor(node: RewriteNode, maker: NodeMaker, rounding: Rounding): Replacement | undefined {
  const scaling = node.input(0)?.producer
  const inputs = scaling && isOnlyUse(node.input(0), node) ? inputsOf(node) : undefined
  const found = inputs && factorOf(scaling)
  if (!inputs || !found || !isByChannel(found.constant, inputs)) return undefined
  const { numbers, value } = found
  const products = doublesOf(node.input(1))?.map(
    (each, at) => each * numbers[numbers.length === 1 ? 0 : inputs.channelOf(at)]!,
  )
  const weights = products && constantOf(products, inputs, maker, rounding)
  return weights && maker.make(node.opType, [value, weights, ...node.inputs.slice(2)], attributesOf(node))
}

export function factorRule(rounding: Rounding): NodeRule {
  return ruleOf('factor-of-input', ['Conv', 'ConvTranspose', 'MatMul', 'Gemm'], (node, maker) =>
    factor(node, maker, rounding),
  )
}
