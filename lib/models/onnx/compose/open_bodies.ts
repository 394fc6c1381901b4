/**
 * Puts nodes of branches and bodies beside the node that has them, so that their values can be cut: what a branch computes where it is
 * taken, and what a body computes in one iteration. Inputs of a body become inputs of the model.
 */
import { FIRST_IR_WITH_FREE_INITIALIZERS, INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { FreshNames } from '../document/fresh_names.js'
import type { OnnxModel } from '../document/model.js'
import type { Graph, Node, ValueType } from '../document/types.js'
import { inferModel } from '../infer/infer.js'

/** A copy of the model in which these values are in the main graph, those that no graph has left out; the model itself where all are. */
export function withBodiesOf(model: OnnxModel, names: readonly string[]): OnnxModel {
  if (names.every((name) => model.graph.value(name))) return model
  const opened = new OpenedModel(model.copy())
  for (const name of names) opened.reach(opened.model.graph.nodes, name)
  opened.renameInside()
  return opened.model
}

const holds = (graph: Graph, name: string): boolean =>
  graph.value(name) !== undefined || [...graph.subgraphs()].some((inner) => inner.value(name) !== undefined)

class OpenedModel {
  readonly model: OnnxModel
  readonly #names: FreshNames
  readonly #types: ReadonlyMap<Graph, ReadonlyMap<string, ValueType>>
  /** Nodes of the main graph that were those of a graph inside a node. */
  readonly #moved = new Map<Graph, readonly Node[]>()

  constructor(model: OnnxModel) {
    this.model = model
    this.#names = new FreshNames(model)
    this.#types = inferModel(model).types
  }

  /** Opens the graphs inside these nodes, outermost first, until the main graph has the value. */
  reach(nodes: readonly Node[], name: string): void {
    if (this.model.graph.value(name)) return
    for (const node of nodes) {
      const graph = node.subgraphs.find((each) => holds(each, name))
      if (!graph) continue
      const moved = this.#moved.get(graph) ?? this.#open(graph)
      this.#moved.set(graph, moved)
      this.reach(moved, name)
      return
    }
  }

  /** Adds what the graph has to the main graph, whose nodes need none of it: so it can stand behind them. */
  #open(graph: Graph): readonly Node[] {
    const main = this.model.graph
    const own = graph.values().map(({ name }) => name)
    for (const name of own) if (main.value(name)) graph.rename(name, this.#names.take(name))
    for (const { name, type } of graph.inputs)
      if (!graph.hasInitializer(name)) main.addInput(name, this.#typeOf(graph, name, type))
    for (const list of INITIALIZER_LISTS)
      for (const { name } of graph.initializerFields(list)) this.#addInitializer(graph, name)
    const first = main.nodes.length
    for (const node of graph.nodes) main.message.adopt('node', node.message)
    for (const { name, type } of [...graph.valueInfo, ...graph.outputs])
      if (type.kind !== 'none' && main.producerOf(name)) main.setType(name, type)
    return main.nodes.slice(first)
  }

  #typeOf(graph: Graph, name: string, declared: ValueType): ValueType {
    return declared.kind === 'none' ? (this.#types.get(graph)?.get(name) ?? declared) : declared
  }

  #addInitializer(graph: Graph, name: string): void {
    const value = graph.initializer(name)!
    this.model.graph.setInitializer(name, value)
    if (Number(this.model.irVersion) >= FIRST_IR_WITH_FREE_INITIALIZERS) return
    const { dtype, shape } = value
    this.model.graph.addInput(name, { kind: 'tensor', dtype, shape })
  }

  /** A graph inside a node may not make a value that an earlier node makes. */
  renameInside(): void {
    const main = this.model.graph
    for (const node of [...this.#moved.values()].flat()) {
      for (const graph of node.subgraphs.flatMap((each) => [each, ...each.subgraphs()])) {
        const made = graph.nodes.flatMap(({ outputs }) => outputs)
        for (const name of made)
          if (name !== '' && main.value(name)) graph.rename(name, this.#names.take(name))
      }
    }
  }
}
