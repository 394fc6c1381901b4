/**
 * Collects nodes and initializers of the ONNX graph that is being written. They are plain objects until the model is built, so
 * that two conversions can be compared; names are unique from the start.
 */

import type { Dtype } from '../../../dtype/dtypes.js'
import type { Dimension, NewAttributeValue, NewNode, ValueType } from '../../../models/onnx/index.js'
import { OnnxModel } from '../../../models/onnx/index.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { refuse } from '../to_tmfile/refusal.js'

/** Everything that the converter writes is in this operator set, which IR version 7 has: the smallest that fits. */
export const OPSET = 13
const IR_VERSION = 7

export type Attributes = Readonly<Record<string, NewAttributeValue>>

export const int = (value: number): NewAttributeValue => ({ type: 'INT', value })
export const ints = (value: readonly number[]): NewAttributeValue => ({ type: 'INTS', value })
export const float = (value: number): NewAttributeValue => ({ type: 'FLOAT', value })
export const text = (value: string): NewAttributeValue => ({ type: 'STRING', value })

/** Element types of `Cast`, by their ONNX numbers. */
export const CAST_TO = { float32: 1, int32: 6, int64: 7, bool: 9 } as const

/** An input or output of the graph. */
export interface GraphEnd {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly Dimension[]
}

/** Element types of constants made of numbers. */
type SmallDtype = 'int64' | 'float32' | 'int32' | 'uint8' | 'int8'

export class OnnxWriter {
  readonly nodes: NewNode[] = []
  readonly #initializers = new Map<string, DenseTensor>()
  /** Constants made of numbers, by dtype, shape and numbers. */
  readonly #numbers = new Map<string, string>()
  readonly #values = new Set<string>()
  readonly #nodeNames = new Set<string>()

  /** `base`, or `base` with a number, as the name of a value. */
  freshValue(base: string): string {
    return fresh(base, this.#values)
  }

  /** @param nodeName - made unique */
  add(
    opType: string,
    nodeName: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Attributes = {},
  ): void {
    this.nodes.push({ opType, name: fresh(nodeName, this.#nodeNames), inputs, outputs, attributes })
  }

  /** Adds a node with one output, which gives it its name. @returns that name, made unique */
  addNode(opType: string, base: string, inputs: readonly string[], attributes: Attributes = {}): string {
    const output = this.freshValue(base)
    this.add(opType, output, inputs, [output], attributes)
    return output
  }

  /** Whether a node makes the value. */
  isMade(value: string): boolean {
    return this.nodes.some(({ outputs }) => outputs?.includes(value))
  }

  /** @returns the name of the initializer */
  addTensor(base: string, tensor: DenseTensor): string {
    const name = this.freshValue(base)
    this.#initializers.set(name, tensor)
    return name
  }

  /** An initializer of a few numbers; equal ones are stored once. */
  addNumbers(base: string, values: readonly number[], dtype: SmallDtype, shape: readonly number[]): string {
    const key = `${dtype} [${shape}] ${values}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (dtype !== 'float32' && !values.every(Number.isSafeInteger))
      refuse('its parameters and the shapes of its inputs do not belong together')
    const data = dtype === 'int64' ? values.map(BigInt) : [...values]
    const name = this.addTensor(base, tensorOf(data as number[], { dtype, shape }) as DenseTensor)
    this.#numbers.set(key, name)
    return name
  }

  /** What depends on shapes: nodes and small constants, in order. */
  outline(): readonly string[] {
    const constants = [...this.#numbers].map(([key, name]) => `${name} ${key}`)
    return [...this.nodes.map((node) => JSON.stringify(node)), ...constants]
  }

  /** Names of the nodes that lines of the outline describe, or that take the constants they describe. */
  nodesOf(lines: readonly string[]): readonly string[] {
    const constants = new Set(lines.map((line) => line.slice(0, line.indexOf(' '))))
    const isMeant = (node: NewNode) =>
      lines.includes(JSON.stringify(node)) || node.inputs?.some((name) => constants.has(name))
    return this.nodes.filter(isMeant).map(({ name }) => name!)
  }

  build(graphName: string, inputs: readonly GraphEnd[], outputs: readonly GraphEnd[]): OnnxModel {
    const model = OnnxModel.create({ irVersion: IR_VERSION, opset: OPSET, graphName })
    model.producerName = 'tilework'
    const { graph } = model
    const typeOf = ({ dtype, shape }: GraphEnd): ValueType => ({ kind: 'tensor', dtype, shape })
    for (const end of inputs) graph.addInput(end.name, typeOf(end))
    for (const [name, tensor] of this.#initializers) graph.setInitializer(name, tensor)
    for (const node of this.nodes) graph.addNode(node)
    for (const end of outputs) graph.addOutput(end.name, typeOf(end))
    return model
  }
}

function fresh(base: string, taken: Set<string>): string {
  let name = base
  for (let count = 2; taken.has(name) || name === ''; count += 1) name = `${base}__${count}`
  taken.add(name)
  return name
}
