/** What the row of an operator works with: one ONNX node, what is known of its inputs, and the graph being built. */
import type { Dtype } from '../../../dtype/dtypes.js'
import type { Shape } from '../../../models/onnx/evaluate/arrays.js'
import { axisOf } from '../../../models/onnx/evaluate/dims.js'
import type { NodeView } from '../../../models/onnx/infer/node_view.js'
import type { TmfileTensor } from '../../../models/tmfile/index.js'
import type { Constant } from './constant.js'
import { type GraphBuilder, isConstantOperand, type Operand } from './graph_builder.js'
import { refuse } from './refusal.js'
import type { ReportBuilder } from './report.js'

export interface StepInit {
  readonly view: NodeView
  readonly builder: GraphBuilder
  readonly report: ReportBuilder
  readonly operandOf: (name: string) => Operand | undefined
  readonly shapes: readonly Shape[]
  /** How many nodes and graph outputs read a value. */
  readonly usesOf: (name: string) => number
  /** Whether the value is an output of the graph. */
  readonly isOutput: (name: string) => boolean
  readonly keepsQuantized: boolean
}

export class Step {
  readonly view: NodeView
  readonly b: GraphBuilder
  readonly report: ReportBuilder
  /** Inferred shapes of the outputs. */
  readonly shapes: readonly Shape[]
  readonly usesOf: (name: string) => number
  readonly isOutput: (name: string) => boolean
  readonly keepsQuantized: boolean
  readonly #init: StepInit
  /** Operands in place of those of the node. */
  readonly #given: readonly (Operand | undefined)[] | undefined

  constructor(init: StepInit, given?: readonly (Operand | undefined)[]) {
    this.#init = init
    this.#given = given
    this.view = init.view
    this.b = init.builder
    this.report = init.report
    this.shapes = init.shapes
    this.usesOf = init.usesOf
    this.isOutput = init.isOutput
    this.keepsQuantized = init.keepsQuantized
  }

  /** The same node with other operands. */
  withOperands(operands: readonly (Operand | undefined)[]): Step {
    return new Step(this.#init, operands)
  }

  /** Name of the node, or of its first output. */
  get label(): string {
    return this.view.node.name || this.view.outputs.find((name) => name !== '') || this.view.opType
  }

  get opset(): number {
    return this.view.opset
  }

  has(input: number): boolean {
    return this.#given ? this.#given[input] !== undefined : this.view.has(input)
  }

  /** Number of inputs, omitted ones at the end not counted. */
  get inputCount(): number {
    return this.view.inputs.findLastIndex((name) => name !== '') + 1
  }

  dtype(input: number): Dtype | number | undefined {
    return this.view.dtype(input)
  }

  operand(input: number): Operand {
    if (this.#given) return this.#given[input] ?? refuse(`input ${input} is missing`)
    const name = this.view.inputs[input] ?? ''
    return (name === '' ? undefined : this.#init.operandOf(name)) ?? refuse(`input ${input} is missing`)
  }

  get operands(): Operand[] {
    return Array.from({ length: this.inputCount }, (_, input) => this.operand(input))
  }

  shape(input: number): Shape {
    return this.operand(input).shape!
  }

  /** An input as a tensor of the engine; a constant is stored. */
  tensor(input: number): TmfileTensor {
    const operand = this.operand(input)
    return isConstantOperand(operand) ? this.b.constant(operand) : operand
  }

  /** Undefined for an input that is absent or not constant. */
  constant(input: number): Constant | undefined {
    if (!this.has(input)) return undefined
    const operand = this.operand(input)
    return isConstantOperand(operand) ? operand : undefined
  }

  /** A constant that has to be one. */
  required(input: number, what: string): Constant {
    return this.constant(input) ?? refuse(this.has(input) ? `${what} is not constant` : `${what} is missing`)
  }

  /** Elements of a constant input; undefined where it is absent. */
  values(input: number, what: string): readonly number[] | undefined {
    return this.has(input) ? Array.from(this.required(input, what).numbers) : undefined
  }

  number(name: string, absent: number): number {
    return Number(this.view.attribute(name)?.value ?? absent)
  }

  numbers(name: string): readonly number[] | undefined {
    const value = this.view.attribute(name)?.value
    return Array.isArray(value) ? (value as readonly (number | bigint)[]).map(Number) : undefined
  }

  text(name: string, absent: string): string {
    return this.view.attribute(name) ? (this.view.text(name) ?? absent) : absent
  }

  /** An axis of an attribute, from the front. */
  axis(name: string, absent: number, rank: number): number {
    return this.axisOf(this.number(name, absent), rank)
  }

  axisOf(axis: number, rank: number): number {
    return axisOf(axis, rank) ?? refuse(`axis ${axis} is outside rank ${rank}`)
  }

  /** Axes by attribute, or by an input since a version; undefined for none. */
  axes(since: number, rank: number): readonly number[] | undefined {
    const given = this.opset < since ? this.numbers('axes') : this.values(1, 'the list of axes')
    return given?.map((axis) => this.axisOf(axis, rank))
  }

  /** The inferred shape of an output. */
  output(index = 0): Shape {
    return this.shapes[index]!
  }

  isUsed(output: number): boolean {
    const name = this.view.outputs[output] ?? ''
    return name !== '' && this.usesOf(name) > 0
  }

  /** Whether this node alone reads the value of an input, so that its producer may take over what the node does. */
  isOnlyReader(input: number): boolean {
    const name = this.view.inputs[input] ?? ''
    return name !== '' && this.usesOf(name) === 1 && !this.isOutput(name)
  }
}

/** What a row gives: the tensor of each output; undefined for one that nothing reads. */
export type Converted = TmfileTensor | readonly (TmfileTensor | undefined)[]

/** An operator of ONNX in the table. */
export interface OperatorRow {
  readonly operator: string
  /** Operators of the tmfile, for the documentation. */
  readonly target: string
  /** Limits and remarks, for the documentation. */
  readonly note?: string
  readonly convert: (step: Step) => Converted
}
