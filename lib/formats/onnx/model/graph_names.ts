/**
 * Who makes and who uses the names of one graph, so that a look-up costs no walk over its nodes. It is made when someone
 * asks, follows the edits that nodes and graphs tell it of, and is made anew after any other.
 */
import type { Message } from '../protobuf/message.js'
import { type Graph, type NamedField, subgraphsOf } from './graph.js'
import type { Node } from './node.js'

/** A place where a node asks for a value. */
export interface Use {
  readonly node: Node
  /** Place among the inputs of the node. */
  readonly index: number
}

interface NamesOfNode {
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
}

export class GraphNames {
  /** The `edits` of the graph that the names are of. */
  edits: number
  readonly inputs: ReadonlySet<string>
  readonly outputs: ReadonlySet<string>
  readonly initializers: Map<string, NamedField>
  /** Messages that say what type a value has. */
  readonly declared: ReadonlyMap<string, Message>
  /** Nodes that have graphs inside, which may use names of this one, and these graphs. */
  readonly enclosing = new Map<Node, readonly Graph[]>()
  readonly #nodes = new Map<Node, NamesOfNode>()
  readonly #producers = new Map<string, Node[]>()
  readonly #users = new Map<string, Set<Node>>()

  constructor(graph: Graph, initializers: readonly NamedField[]) {
    this.edits = graph.message.edits
    const [inputs, outputs, others] = ['input', 'output', 'value_info'].map((list) =>
      graph.message.messages(list).map((value) => [value.text('name'), value] as const),
    )
    this.inputs = new Set(inputs!.map(([name]) => name))
    this.outputs = new Set(outputs!.map(([name]) => name))
    this.declared = new Map([...others!, ...outputs!, ...inputs!])
    // Of several of one name the first counts, as a look through the list would find it.
    this.initializers = new Map([...initializers].reverse().map((each) => [each.name, each]))
    for (const node of graph.nodes) this.add(node)
  }

  producerOf(name: string): Node | undefined {
    return this.#producers.get(name)?.[0]
  }

  /** Nodes of this graph that have the name among their inputs. */
  usersOf(name: string): readonly Node[] {
    return [...(this.#users.get(name) ?? [])]
  }

  usesOf(name: string): readonly Use[] {
    return this.usersOf(name).flatMap((node) =>
      this.#nodes.get(node)!.inputs.flatMap((input, index) => (input === name ? [{ node, index }] : [])),
    )
  }

  /** True for a name that is an input, an initializer or an output of a node. */
  defines(name: string): boolean {
    return this.inputs.has(name) || this.#producers.has(name) || this.initializers.has(name)
  }

  holds(node: Node): boolean {
    return this.#nodes.has(node)
  }

  add(node: Node): void {
    const { inputs, outputs } = node
    this.#nodes.set(node, { inputs, outputs })
    for (const name of outputs) {
      if (name === '') continue
      const producers = this.#producers.get(name)
      if (producers) producers.push(node)
      else this.#producers.set(name, [node])
    }
    for (const name of inputs) {
      if (name === '') continue
      const users = this.#users.get(name)
      if (users) users.add(node)
      else this.#users.set(name, new Set([node]))
    }
    if (hasGraphs(node)) this.enclosing.set(node, subgraphsOf(node))
  }

  delete(node: Node): void {
    const { inputs, outputs } = this.#nodes.get(node)!
    this.#nodes.delete(node)
    this.enclosing.delete(node)
    for (const name of outputs) {
      const left = (this.#producers.get(name) ?? []).filter((each) => each !== node)
      if (left.length > 0) this.#producers.set(name, left)
      else this.#producers.delete(name)
    }
    for (const name of inputs) {
      const users = this.#users.get(name)
      users?.delete(node)
      if (users?.size === 0) this.#users.delete(name)
    }
  }
}

function hasGraphs({ message }: Node): boolean {
  return message.messages('attribute').some((attribute) => attribute.has('g') || attribute.has('graphs'))
}
