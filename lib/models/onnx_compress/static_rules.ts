/**
 * Which values of a graph become codes when it is quantized statically, operator by operator, as onnxruntime's quantizer marks
 * them. A rule looks only at what the nodes before it have marked.
 */
import type { DenseTensor } from '../../tensor/tensor.js'
import type { Graph, Node } from '../onnx/document/types.js'
import type { ElementType } from './element_types.js'

/** How a value is quantized: an activation, a weight (per channel along `axis`), or with the parameters of another value. */
export type Mark =
  | { readonly kind: 'activation' }
  | { readonly kind: 'weight'; readonly axis?: number }
  | { readonly kind: 'shared'; readonly with: string }

/** A bias becomes int32 codes whose scale is the product of alpha and the scales of an input and a weight. */
export interface BiasMark {
  readonly node: Node
  readonly bias: string
  readonly input: string
  readonly weight: string
  /** Factors of the product and of the bias. */
  readonly alpha: number
  readonly beta: number
  /** The axis of the output channels in the weight. */
  readonly axis: number
}

/** What the rules know of a graph. */
export interface StaticView {
  readonly graph: Graph
  readonly types: ReadonlyMap<string, ElementType>
  readonly opset: number
  readonly perChannel: boolean
  /** Whether a Relu or Clip may go, because the codes of its output end where it does. */
  clampsTo(node: Node): boolean
  /** Whether a Pad of mode `constant` pads with zeros. */
  padsZeros(node: Node): boolean
  /** The weight of that name; undefined for anything that a caller may change. */
  constant(name: string): DenseTensor | undefined
}

/** The marks of all values of a graph. */
export class Marks {
  readonly values = new Map<string, Mark>()
  readonly biases: BiasMark[] = []
  /** Relu and Clip nodes whose work the codes do. */
  readonly removed = new Set<Node>()
  /** Nodes that take or give codes. */
  readonly quantized = new Set<Node>()
  readonly #view: StaticView

  constructor(view: StaticView) {
    this.#view = view
  }

  has(name: string): boolean {
    return this.values.has(name) || this.biases.some(({ bias }) => bias === name)
  }

  add(name: string, mark: Mark = { kind: 'activation' }): void {
    if (name === '' || this.#view.types.get(name)?.dtype !== 'float32') return
    const known = this.values.get(name)
    // Parameters of another value win over a range of its own.
    if (!known || mark.kind === 'shared') this.values.set(name, mark)
    else if (known.kind === 'weight' && known.axis !== axisOf(mark)) this.values.set(name, { kind: 'weight' })
  }
}

/** Kernels take scales along the axis of their output channels alone, so a weight of two axes has one scale. */
function axisOf(mark: Mark): number | undefined {
  return mark.kind === 'weight' ? mark.axis : undefined
}

type Rule = (node: Node, marks: Marks, view: StaticView) => void

/** Every float input and output. */
const all: Rule = (node, marks) => {
  for (const name of [...node.inputs, ...node.outputs]) marks.add(name)
}

/** The output takes the parameters of the input, if that is quantized already. */
const follow: Rule = ({ inputs, outputs }, marks) => {
  const [input = ''] = inputs
  if (marks.has(input)) for (const name of outputs) marks.add(name, { kind: 'shared', with: input })
}

const followFrom =
  (opset: number): Rule =>
  (node, marks, view) => {
    if (view.opset >= opset) follow(node, marks, view)
  }

function weightMark(name: string, axis: number, view: StaticView): Mark {
  const isPerChannel = view.perChannel && (view.constant(name)?.shape.length ?? 0) > 1
  return isPerChannel ? { kind: 'weight', axis } : constantMark(name, view)
}

/** A weight with one scale, or an activation. */
function constantMark(name: string, view: StaticView): Mark {
  return { kind: view.constant(name) ? 'weight' : 'activation' }
}

function addBias(node: Node, marks: Marks, view: StaticView, axis: number): void {
  const [input = '', weight = '', bias = ''] = node.inputs
  if (view.constant(bias)?.dtype !== 'float32') return
  if (marks.values.get(weight)?.kind !== 'weight') return
  const factor = (name: string): number =>
    node.opType === 'Gemm' ? Number(node.attribute(name)?.value ?? 1) : 1
  marks.biases.push({ node, bias, input, weight, axis, alpha: factor('alpha'), beta: factor('beta') })
}

/** Input, output, weight and bias; the axis is that of the output channels in the weight. */
const weighted =
  (axisOf: (node: Node) => number): Rule =>
  (node, marks, view) => {
    const [input = '', weight = ''] = node.inputs
    marks.add(input)
    marks.add(node.outputs[0] ?? '')
    marks.add(weight, weightMark(weight, axisOf(node), view))
    addBias(node, marks, view, axisOf(node))
  }

/** onnxruntime's QLinearMatMul takes scales along the columns of a matrix that is the second input, and no others. */
const matMul: Rule = ({ inputs: [first = '', second = ''], outputs }, marks, view) => {
  marks.add(first, constantMark(first, view))
  const isMatrix = view.constant(second)?.shape.length === 2
  marks.add(second, isMatrix ? weightMark(second, 1, view) : constantMark(second, view))
  for (const name of outputs) marks.add(name)
}

const normalization: Rule = (node, marks, view) => {
  const [input = '', scale = ''] = node.inputs
  marks.add(input)
  marks.add(scale, constantMark(scale, view))
  addBias(node, marks, view, 0)
  for (const name of node.outputs) marks.add(name)
}

const clamp: Rule = (node, marks, view) => {
  const [input = ''] = node.inputs
  const [output = ''] = node.outputs
  if (!marks.has(input)) return
  const { graph } = view
  const isOnlyUse = graph.usesOf(input).length === 1 && graph.producerOf(input) !== undefined
  if (isOnlyUse && !graph.outputNames.has(input) && view.clampsTo(node)) {
    marks.values.delete(input)
    marks.removed.add(node)
  } else marks.add(input)
  marks.add(output)
}

const gather: Rule = (node, marks, view) => {
  const [input = ''] = node.inputs
  if (view.constant(input)?.dtype === 'float32') marks.add(input)
  follow(node, marks, view)
}

const split: Rule = (node, marks, view) => {
  marks.add(node.inputs[0] ?? '')
  follow(node, marks, view)
}

const where: Rule = ({ inputs, outputs }, marks) => {
  if (marks.has(inputs[1] ?? '') && marks.has(inputs[2] ?? '')) for (const name of outputs) marks.add(name)
}

/** The parameters of the input represent its own values and zero; another constant needs those of the output. */
const pad: Rule = (node, marks, view) => {
  for (const name of node.inputs) marks.add(name)
  const mode = node.attribute('mode')
  const isConstant = mode?.type !== 'STRING' || mode.text === 'constant'
  if (!isConstant || view.padsZeros(node)) follow(node, marks, view)
  else marks.add(node.outputs[0] ?? '')
}

/** The operators that are quantized unless a caller names others. */
export const STATIC_RULES: Readonly<Record<string, Rule>> = {
  Add: all,
  ArgMax: all,
  AveragePool: follow,
  BatchNormalization: normalization,
  Clip: clamp,
  Concat: all,
  Conv: weighted(() => 0),
  ConvTranspose: weighted(() => 1),
  CumSum: all,
  EmbedLayerNormalization: all,
  Flatten: follow,
  Gather: gather,
  GatherElements: gather,
  Gemm: weighted((node) => (Number(node.attribute('transB')?.value ?? 0) === 1 ? 0 : 1)),
  GlobalAveragePool: all,
  InstanceNormalization: normalization,
  LayerNormalization: normalization,
  LeakyRelu: all,
  MatMul: matMul,
  MaxPool: followFrom(12),
  Mul: all,
  Pad: pad,
  Relu: clamp,
  Reshape: follow,
  Resize: followFrom(11),
  Sigmoid: all,
  Slice: follow,
  Softmax: all,
  Split: split,
  Squeeze: follow,
  TopK: follow,
  Transpose: follow,
  Unsqueeze: follow,
  Where: where,
}

/** Marks all values that the nodes quantize. */
export function markValues(nodes: readonly Node[], view: StaticView): Marks {
  const marks = new Marks(view)
  for (const node of nodes) {
    const rule = STATIC_RULES[node.opType] ?? all
    rule(node, marks, view)
    const ends = [...node.inputs, ...node.outputs]
    if (marks.removed.has(node) || ends.some((name) => name !== '' && marks.has(name)))
      marks.quantized.add(node)
  }
  return marks
}
