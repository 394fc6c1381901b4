/** Fusions that give the same numbers: into a Convolution or FullyConnected that only the present node reads. */

import { countOf } from '../../../models/onnx/evaluate/arrays.js'
import type { KnownNode, TmfileNode, TmfileTensor } from '../../../models/tmfile/index.js'
import { Constant } from './constant.js'
import type { Step } from './step.js'

/** Values of `activation`. */
type Activation = 0 | 6

/** Makes Relu or Clip the activation of the Convolution before it. */
export function fuseActivation(step: Step, tensor: TmfileTensor, activation: Activation): boolean {
  const node = step.b.producerOf(tensor)
  if (node?.operator !== 'Convolution' || !isAlone(step, tensor)) return false
  const { params } = node as KnownNode<'Convolution'>
  // A tensor with a record is rounded before the activation.
  if (params.activation >= 0 || tensor.quantization) return false
  params.activation = activation
  noteFusion(step, node)
  return true
}

/** Whether the present node alone reads the tensor, which is its first input. */
function isAlone(step: Step, tensor: TmfileTensor): boolean {
  return step.isOnlyReader(0) && step.b.consumersOf(tensor).length === 0
}

function noteFusion(step: Step, node: TmfileNode): void {
  step.report.fused.push({ node: step.label, operator: step.view.opType, into: node.name! })
}

/** Makes an Add of one number per output the bias of the FullyConnected before it. */
export function fuseBias(step: Step): TmfileTensor | undefined {
  const at = [0, 1].find((input) => step.constant(input))
  if (at === undefined || !step.isOnlyReader(1 - at)) return undefined
  const sum = step.operand(1 - at)
  const bias = step.constant(at)!
  if (sum instanceof Constant || sum.quantization) return undefined
  const before = step.b.producerOf(sum)
  const inner = before?.operator === 'Reshape' ? before.inputs[0]! : sum
  const node = step.b.producerOf(inner)
  if (node?.operator !== 'FullyConnected' || node.inputs.length !== 2) return undefined
  const { num_output: count } = (node as KnownNode<'FullyConnected'>).params
  const isRow = bias.size === count && bias.shape.at(-1) === count && sum.shape!.at(-1) === count
  if (!isRow || bias.shape.length > sum.shape!.length) return undefined
  const isAlone =
    step.b.consumersOf(sum).length === 0 && (inner === sum || step.b.consumersOf(inner).length === 1)
  if (!isAlone) return undefined
  step.b.addInput(node, step.b.constant(bias, [count]))
  noteFusion(step, node)
  return sum
}

/** What BatchNormalization does to each channel: `x * scale + shift`. */
export interface Affine {
  readonly scale: Float64Array
  readonly shift: Float64Array
}

/** Multiplies scale and shift into weights and bias of the node before; undefined where it has other readers. */
export function fuseAffine(
  step: Step,
  tensor: TmfileTensor,
  { scale, shift }: Affine,
): TmfileTensor | undefined {
  const node = step.b.producerOf(tensor)
  if (!node || !isAlone(step, tensor) || tensor.quantization) return undefined
  const isDeconvolution = node.operator === 'Deconvolution'
  if (!isDeconvolution && node.operator !== 'Convolution' && node.operator !== 'FullyConnected')
    return undefined
  if (((node as KnownNode<'Convolution'>).params.activation ?? -1) >= 0) return undefined
  const weight = step.b.sourceOf(node.inputs[1]!)
  const bias = node.inputs[2] && step.b.sourceOf(node.inputs[2])
  if (!weight || weight.codes || (node.inputs[2] && !bias)) return undefined
  const channelOf = isDeconvolution
    ? transposedChannel(node as KnownNode<'Deconvolution'>, weight)
    : leadingChannel(weight)
  const newWeight = weight.mapped((value, index) => value * scale[channelOf(index)]!)
  const read = (): Float32Array =>
    Float32Array.from(scale, (factor, channel) => (bias?.numbers[channel] ?? 0) * factor + shift[channel]!)
  const newBias = new Constant({ name: bias?.name ?? '', dtype: 'float32', shape: [scale.length], read })
  node.inputs = node.inputs.slice(0, 1)
  step.b.addInput(node, step.b.constant(newWeight))
  step.b.addInput(node, step.b.constant(newBias))
  noteFusion(step, node)
  return tensor
}

function leadingChannel({ shape }: Constant): (index: number) => number {
  const length = countOf(shape.slice(1))
  return (index) => Math.floor(index / length)
}

/** Weights [in, out / group, kh, kw]: the output channel follows from both leading axes. */
function transposedChannel(
  { params }: KnownNode<'Deconvolution'>,
  { shape }: Constant,
): (index: number) => number {
  const [inputs, outputs] = [shape[0]!, shape[1]!]
  const [length, perGroup] = [countOf(shape.slice(2)), inputs / params.group]
  return (index) => {
    const row = Math.floor(index / length)
    return Math.floor(Math.floor(row / outputs) / perGroup) * outputs + (row % outputs)
  }
}
