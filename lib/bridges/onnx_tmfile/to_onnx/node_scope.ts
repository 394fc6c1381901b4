/**
 * What the rule of an operator works with: one node of the tmfile with the shapes of its inputs and outputs, and the ONNX graph
 * behind it. Values are names; a rule adds nodes, and ends with one that makes the output.
 */

import { countOf, type Shape } from '../../../models/onnx/evaluate/arrays.js'
import type { OperatorName, OperatorParams, TmfileNode, TmfileTensor } from '../../../models/tmfile/index.js'
import { refuse } from '../to_tmfile/refusal.js'
import type { Constants } from './constants.js'
import type { Attributes, OnnxWriter } from './onnx_writer.js'

export interface NodeScopeInit {
  /** With parameters and shapes in NCHW. */
  readonly node: TmfileNode
  /** As the runtime infers them. */
  readonly outputShapes: readonly Shape[]
  readonly writer: OnnxWriter
  readonly constants: Constants
  /** The name of a tensor's real values. */
  readonly valueOf: (tensor: TmfileTensor) => string
  /** Names of the results of this node, before they are quantized. */
  readonly results: readonly string[]
  readonly note: (message: string) => void
  /** Whether the batch size is to be set later. */
  readonly hasOpenBatch: boolean
  /** Whether the model was NHWC; shapes and parameters are NCHW. */
  readonly isNhwc: boolean
  /** Whether the first output is integers in the file. */
  readonly hasCodes: boolean
}

export class NodeScope<Name extends OperatorName = OperatorName> {
  readonly params: OperatorParams[Name]
  readonly inputShapes: readonly Shape[]
  readonly outputShapes: readonly Shape[]
  readonly #init: NodeScopeInit
  #added = 0

  constructor(init: NodeScopeInit) {
    this.#init = init
    this.params = init.node.params as OperatorParams[Name]
    this.inputShapes = init.node.inputs.map(({ shape }) => shape!)
    this.outputShapes = init.outputShapes
  }

  get hasOpenBatch(): boolean {
    return this.#init.hasOpenBatch
  }

  get isNhwc(): boolean {
    return this.#init.isNhwc
  }

  get hasCodes(): boolean {
    return this.#init.hasCodes
  }

  get tensors(): readonly TmfileTensor[] {
    return this.#init.node.inputs
  }

  /** The shape of an input. @throws Refusal where the node has fewer */
  shape(index: number): Shape {
    return this.inputShapes[index] ?? refuse(`it has ${this.inputShapes.length} inputs`)
  }

  /** The name of an input's values, as floats. */
  input(index: number): string {
    return this.#init.valueOf(this.#tensor(index))
  }

  /** A constant input in another shape with the same elements; other inputs are reshaped by a node. */
  inputAs(index: number, shape: Shape): string {
    const tensor = this.#tensor(index)
    if (String(shape) === String(this.shape(index))) return this.input(index)
    if (tensor.role === 'constant') return this.#init.constants.floats(tensor, shape)
    return this.reshape(this.input(index), this.shape(index), shape)
  }

  /** A constant input of integers, which stay integers. @throws Refusal for a variable */
  integers(index: number, shape: Shape): string {
    return this.#init.constants.integers(this.#constant(index), shape)
  }

  /** A constant input whose floats are multiplied by a factor. @throws Refusal for a variable */
  scaledInput(index: number, factor: number): string {
    return this.#init.constants.scaled(this.#constant(index), factor)
  }

  /** The bias of a convolution or product: one axis, in a quantized model with the scales of data and weights. */
  bias(index: number): string | undefined {
    if (index >= this.tensors.length) return undefined
    const [data, weight] = this.tensors
    const tensor = this.#constant(index)
    const count = countOf(this.shape(index))
    return this.#init.constants.bias(tensor, [count], { data: data!, weight: weight! })
  }

  numbers(values: readonly number[], dtype: 'int64' | 'float32' | 'int32', shape?: Shape): string {
    return this.#init.writer.addNumbers(this.#fresh(), values, dtype, shape ?? [values.length])
  }

  scalar(value: number): string {
    return this.numbers([value], 'float32', [])
  }

  /** Adds a node whose output only this node uses. */
  add(opType: string, inputs: readonly string[], attributes: Attributes = {}): string {
    this.#added += 1
    return this.#init.writer.addNode(opType, `${this.#init.results[0]}__${this.#added}`, inputs, attributes)
  }

  /** Adds a TopK of the last axis, which makes the first output. @returns the name of its indices */
  addTopK(k: number): string {
    const { writer, node, results } = this.#init
    const indices = this.#fresh()
    writer.add('TopK', node.name!, [this.input(0), this.numbers([k], 'int64')], [results[0]!, indices])
    return indices
  }

  /** As `add`, with the name that the linear part of an activated node has. */
  addLinear(opType: string, inputs: readonly string[], attributes: Attributes): string {
    const { writer, node } = this.#init
    const output = writer.freshValue(`${this.#init.results[0]}__linear`)
    writer.add(opType, node.name!, inputs, [output], attributes)
    return output
  }

  /** Adds the node that makes the output, or all outputs. */
  finish(
    opType: string,
    inputs: readonly string[],
    attributes: Attributes = {},
    { suffix = '', at }: { readonly suffix?: string; readonly at?: number } = {},
  ): void {
    const { writer, node, results } = this.#init
    const outputs = at === undefined ? results : [results[at]!]
    writer.add(opType, `${node.name}${suffix}`, inputs, outputs, attributes)
  }

  /** An extent that stays at its first place is copied, so that the batch size can change. */
  reshapeTarget(from: Shape, to: Shape): string {
    const target = from[0] === to[0] ? [0, ...to.slice(1)] : to
    return this.numbers(target, 'int64')
  }

  reshape(value: string, from: Shape, to: Shape): string {
    return this.add('Reshape', [value, this.reshapeTarget(from, to)])
  }

  finishReshape(value: string, from: Shape, to: Shape): void {
    this.finish('Reshape', [value, this.reshapeTarget(from, to)])
  }

  /** Tells the user something about this node. */
  note(message: string): void {
    this.#init.note(message)
  }

  #tensor(index: number): TmfileTensor {
    return this.tensors[index] ?? refuse(`it has ${this.tensors.length} inputs`)
  }

  #constant(index: number): TmfileTensor {
    const tensor = this.#tensor(index)
    if (tensor.role !== 'constant') refuse(`its input ${index}, "${tensor.name}", is no constant`)
    return tensor
  }

  #fresh(): string {
    this.#added += 1
    return this.#init.writer.freshValue(`${this.#init.results[0]}__${this.#added}`)
  }
}

/** An operator of a tmfile, and what it becomes. */
export interface OperatorRow {
  readonly operator: OperatorName
  /** Operators of ONNX, for the documentation. */
  readonly target: string
  /** Limits and remarks, for the documentation. */
  readonly note?: string
  /** Writes the ONNX nodes of one node. @throws Refusal */
  readonly convert: (scope: NodeScope) => void
}

/** A row whose rule knows the parameters of its operator. */
export function row<Name extends OperatorName>(
  operator: Name,
  target: string,
  convert: (scope: NodeScope<Name>) => void,
  note?: string,
): OperatorRow {
  return { operator, target, ...(note !== undefined && { note }), convert: convert as OperatorRow['convert'] }
}
