/** Values of a graph, looked up in the graph by name at each access; see the interface `Value`. */
import { readInput } from '../../../caller_input.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { Tensor } from '../../../tensor/tensor.js'
import type { Attribute, Graph, Node, Use, Value, ValueType } from './types.js'

export class GraphValue implements Value {
  readonly graph: Graph
  readonly name: string

  constructor(graph: Graph, name: string) {
    this.graph = graph
    this.name = name
  }

  get type(): ValueType {
    return this.graph.typeOf(this.name)
  }

  get producer(): Node | undefined {
    return this.graph.producerOf(this.name)
  }

  get outputIndex(): number {
    return this.producer?.outputs.indexOf(this.name) ?? -1
  }

  get uses(): readonly Use[] {
    return this.graph.usesOf(this.name)
  }

  get isInput(): boolean {
    return this.graph.inputNames.has(this.name)
  }

  get isOutput(): boolean {
    return this.graph.outputNames.has(this.name)
  }

  get isInitializer(): boolean {
    return this.graph.hasInitializer(this.name)
  }

  get constant(): Tensor | undefined {
    if (this.isInput) return undefined
    const { producer } = this
    return producer ? constantOf(producer) : this.graph.initializer(this.name)
  }

  replaceAllUses(other: Value | string): void {
    const name = readInput('The other value', () => (typeof other === 'string' ? other : other.name))
    this.graph.replaceAllUses(this.name, name)
  }

  rename(name: string): Value {
    this.graph.rename(this.name, name)
    return new GraphValue(this.graph, name)
  }
}

/**
 * The value of a `Constant` node; undefined for other nodes, for string constants that are not tensors, and for
 * references to an attribute of a function that `attributeOf` does not resolve.
 */
export function constantOf(
  node: Node,
  attributeOf: (name: string) => Attribute | undefined = (name) => node.attribute(name),
): Tensor | undefined {
  const [output, ...others] = node.outputs
  const isStandardDomain = node.domain === '' || node.domain === 'ai.onnx'
  const [first] = node.attributes
  if (node.opType !== 'Constant' || !isStandardDomain || !first || !output || others.length > 0)
    return undefined
  const attribute = attributeOf(first.name)
  return attribute?.refName === '' ? constantValue(first.name, attribute) : undefined
}

function constantValue(name: string, { tensors, value: given }: Attribute): Tensor | undefined {
  if (name === 'value' || name === 'sparse_value') return tensors[0]?.hasData ? tensors[0] : undefined
  const value = given as number & readonly number[]
  if (name === 'value_float' || name === 'value_floats') return tensorOf(value, { dtype: 'float32' })
  if (name === 'value_int' || name === 'value_ints') return tensorOf(value, { dtype: 'int64' })
  return undefined
}
