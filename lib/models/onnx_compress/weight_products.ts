/** Nodes that multiply with a matrix: what MatMulNBits, which takes [K, N] alone, needs before and behind it. */
import { integersOf } from '../onnx/document/attribute.js'
import { isStandard } from '../onnx/document/scope.js'
import type { NewAttribute, NewNode, Node } from '../onnx/document/types.js'

/** A node as `data × weight + bias`. */
export interface WeightProduct {
  readonly data: string
  readonly weight: string
  /** Whether the weight is [N, K]. */
  readonly isTransposed: boolean
  /** Of Gemm and Conv; empty for none. */
  readonly bias: string
  /** Rank of the data of a Conv, whose channels are axis 1 and have to be the last axis; undefined for other nodes. */
  readonly channelsFirst?: number
}

/** A node that follows the product, and the end of the name of its input. */
export interface ProductStep {
  readonly suffix: string
  nodeOf(input: string, output: string): NewNode
}

/** @returns why the node is no such product */
export function productOf(
  node: Node,
  shapeOfWeight: (name: string) => readonly number[] | undefined,
): WeightProduct | string {
  const [data = '', weight = '', bias = ''] = node.inputs
  if (isStandard(node, 'Gemm'))
    return whyNoGemm(node) ?? { data, weight, isTransposed: flag(node, 'transB'), bias }
  if (!isStandard(node, 'Conv')) return { data, weight, isTransposed: false, bias: '' }
  const shape = shapeOfWeight(weight)
  if (!shape) return 'its second input is not a weight'
  return (
    whyNoPointwise(node, shape) ?? { data, weight, isTransposed: true, bias, channelsFirst: shape.length }
  )
}

function whyNoGemm(node: Node): string | undefined {
  if (flag(node, 'transA')) return 'its first input is transposed'
  const [alpha, beta] = [factor(node, 'alpha'), factor(node, 'beta')]
  if (alpha !== 1) return `its alpha is ${alpha}`
  const hasBias = (node.inputs[2] ?? '') !== ''
  if (hasBias && beta !== 1) return `its beta is ${beta}`
  return hasBias && node.attribute('broadcast') ? 'it is of an early operator set' : undefined
}

/** A Conv is a product with a matrix where its kernel is one element and moves by one. */
function whyNoPointwise(node: Node, shape: readonly number[]): string | undefined {
  const isOne = (each: number): boolean => each === 1
  if (shape.length < 3 || !shape.slice(2).every(isOne))
    return `its kernel is [${shape.slice(2)}], not of one element`
  if (Number(node.attribute('group')?.value ?? 1) !== 1) return 'it has groups'
  if (!integers(node, 'strides')?.every(isOne)) return 'its strides are not 1'
  return integers(node, 'pads')?.every((each) => each === 0) ? undefined : 'it has padding'
}

/** What gives the data its channels as last axis, and their new name. */
export function channelsLast(
  { data, channelsFirst }: WeightProduct,
  take: (name: string) => string,
): { readonly data: string; readonly before: readonly NewNode[] } {
  if (channelsFirst === undefined) return { data, before: [] }
  const moved = take(`${data}_channels_last`)
  const axes = Array.from({ length: channelsFirst - 2 }, (_, at) => at + 2)
  return { data: moved, before: [transpose(data, moved, [0, ...axes, 1])] }
}

/** The bias, and the channels back as axis 1. */
export function stepsBehind({ bias, channelsFirst }: WeightProduct): ProductStep[] {
  const steps: ProductStep[] = []
  if (bias !== '') {
    steps.push({
      suffix: 'product',
      nodeOf: (input, output) => ({ opType: 'Add', inputs: [input, bias], outputs: [output] }),
    })
  }
  if (channelsFirst !== undefined) {
    const axes = Array.from({ length: channelsFirst - 2 }, (_, at) => at + 1)
    const perm = [0, channelsFirst - 1, ...axes]
    steps.push({ suffix: 'channels_last', nodeOf: (input, output) => transpose(input, output, perm) })
  }
  return steps
}

function transpose(input: string, output: string, perm: readonly number[]): NewNode {
  const attributes = { perm: { type: 'INTS', value: perm } as NewAttribute }
  return { opType: 'Transpose', inputs: [input], outputs: [output], attributes }
}

function flag(node: Node, name: string): boolean {
  return Number(node.attribute(name)?.value ?? 0) !== 0
}

function factor(node: Node, name: string): number {
  return Number(node.attribute(name)?.value ?? 1)
}

function integers(node: Node, name: string): readonly number[] | undefined {
  const attribute = node.attribute(name)
  return attribute ? integersOf(attribute) : []
}
