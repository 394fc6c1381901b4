/** A value of a graph: what its name stands for, who makes it and who uses it, as the graph is now. */
import type { Tensor } from '../../../tensor/tensor.js'
import { constantOf } from './constant.js'
import type { Graph } from './graph.js'
import type { Use } from './graph_names.js'
import type { Node } from './node.js'
import type { ValueType } from './value_type.js'

export class Value {
  readonly graph: Graph
  readonly name: string

  /** For code of the library itself: values come from graphs. */
  constructor(graph: Graph, name: string) {
    this.graph = graph
    this.name = name
  }

  /** What the graph declares of it; `none` where it declares nothing. */
  get type(): ValueType {
    return this.graph.typeOf(this.name)
  }

  /** The node that makes it; absent for inputs and initializers. */
  get producer(): Node | undefined {
    return this.graph.producerOf(this.name)
  }

  /** Its place among the outputs of `producer`; -1 where there is none. */
  get outputIndex(): number {
    return this.producer?.outputs.indexOf(this.name) ?? -1
  }

  /** Where nodes ask for it, those in graphs inside included that have no value of the name. */
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

  /**
   * Its values where they are known without running anything: those of an initializer that is no input, or of a node
   * Constant.
   *
   * @throws TileworkError for a tensor whose rules do not hold
   */
  get constant(): Tensor | undefined {
    if (this.isInput) return undefined
    const { producer } = this
    return producer ? constantOf(producer) : this.graph.initializer(this.name)
  }

  /** See `Graph.replaceAllUses`. */
  replaceAllUses(other: Value | string): void {
    this.graph.replaceAllUses(this.name, typeof other === 'string' ? other : other.name)
  }

  /** See `Graph.rename`. This object keeps the old name, which then stands for nothing. @returns the value of the new name */
  rename(name: string): Value {
    this.graph.rename(this.name, name)
    return new Value(this.graph, name)
  }
}
