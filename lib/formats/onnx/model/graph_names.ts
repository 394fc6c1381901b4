/**
 * An index of the names of one graph: producers, users, declarations, initializers.
 *
 * Without it each look-up would visit all nodes. It is built on first use and updated by edits of single nodes; any other
 * edit of the message leaves it out of date (see `edits`), and the graph builds a new one.
 */
import type { Message } from '../protobuf/message.js'
import type { Graph, InitializerField, Node, Use } from './types.js'

interface NamesOfNode {
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
}

export class GraphNames {
  /** Edit count of the graph's message that the index matches. */
  edits: number
  readonly inputs: ReadonlySet<string>
  readonly outputs: ReadonlySet<string>
  readonly initializers: Map<string, InitializerField>
  /** ValueInfoProto by name; inputs win over outputs, outputs over `value_info`. */
  readonly declared: ReadonlyMap<string, Message>
  /** Nodes with subgraphs, which may use names of this graph. */
  readonly subgraphs = new Map<Node, readonly Graph[]>()
  readonly #nodes = new Map<Node, NamesOfNode>()
  readonly #producers = new Map<string, Node[]>()
  readonly #users = new Map<string, Set<Node>>()

  constructor(graph: Graph, initializers: readonly InitializerField[]) {
    this.edits = graph.message.edits
    const [inputs, outputs, others] = ['input', 'output', 'value_info'].map((list) =>
      graph.message.messages(list).map((value) => [value.text('name'), value] as const),
    )
    this.inputs = new Set(inputs!.map(([name]) => name))
    this.outputs = new Set(outputs!.map(([name]) => name))
    this.declared = new Map([...others!, ...outputs!, ...inputs!])
    // The first of equal names wins, so it is set last.
    this.initializers = new Map([...initializers].reverse().map((each) => [each.name, each]))
    for (const node of graph.nodes) this.add(node)
  }

  producerOf(name: string): Node | undefined {
    return this.#producers.get(name)?.[0]
  }

  /** Nodes of this graph with the name among their inputs. */
  usersOf(name: string): readonly Node[] {
    return [...(this.#users.get(name) ?? [])]
  }

  usesOf(name: string): readonly Use[] {
    return this.usersOf(name).flatMap((node) =>
      this.#nodes.get(node)!.inputs.flatMap((input, index) => (input === name ? [{ node, index }] : [])),
    )
  }

  /** True for an input, an initializer or an output of a node. */
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
    if (hasSubgraphs(node)) this.subgraphs.set(node, node.subgraphs)
  }

  delete(node: Node): void {
    const { inputs, outputs } = this.#nodes.get(node)!
    this.#nodes.delete(node)
    this.subgraphs.delete(node)
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

/** Makes no Graph objects: most nodes have no subgraph. */
function hasSubgraphs({ message }: Node): boolean {
  return message.messages('attribute').some((attribute) => attribute.has('g') || attribute.has('graphs'))
}
