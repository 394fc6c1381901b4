/** Changes of one graph, collected and applied together: the time is linear, however many values change their name. */

import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import type { Graph, Node } from '../document/types.js'
import { namesInside, namesToKeep, renameUses } from '../edit/graph_passes.js'

export class Rewrite {
  readonly #graph: Graph
  /** Names that keep their meaning: inputs, outputs, annotated values. */
  readonly #fixed: ReadonlySet<string>
  readonly #outputs: ReadonlySet<string>
  /** Names that a subgraph defines, which would hide a value of this graph. */
  readonly #inside: ReadonlySet<string>
  readonly #renamed = new Map<string, string>()
  readonly #removed = new Set<Node>()
  /** Nodes whose output gets the name of an output of the graph. */
  readonly #renamedNodes = new Set<Node>()
  #producers: ReadonlyMap<string, Node> | undefined

  constructor(graph: Graph) {
    this.#graph = graph
    this.#fixed = namesToKeep(graph)
    this.#outputs = new Set(graph.outputs.map(({ name }) => name))
    this.#inside = namesInside(graph)
  }

  /** The name that a value has after the changes so far. */
  resolve(name: string): string {
    let found = name
    for (let next = this.#renamed.get(found); next !== undefined; next = this.#renamed.get(found))
      found = next
    return found
  }

  remove(node: Node): void {
    this.#removed.add(node)
  }

  /** Whether the users of a value may take another one. */
  mayReplace(name: string, other: string): boolean {
    return !this.#fixed.has(name) && !this.#inside.has(this.resolve(other))
  }

  /** Makes the users of a value take another one. */
  replace(name: string, other: string): void {
    this.#renamed.set(name, this.resolve(other))
  }

  /** Removes a node whose output is its input. @returns false where the output has to stay, and no other node can give it */
  bypass(node: Node, input: string, output: string): boolean {
    const source = this.resolve(input)
    if (this.mayReplace(output, source)) this.replace(output, source)
    else if (!this.#giveName(source, output)) return false
    this.remove(node)
    return true
  }

  /** Gives the value of a node of this graph the name of an output of the graph. */
  #giveName(name: string, output: string): boolean {
    if (!this.#outputs.has(output) || this.#fixed.has(name) || this.#inside.has(output)) return false
    const producer = this.#producerOf(name)
    if (!producer) return false
    this.#renamedNodes.add(producer)
    this.#renamed.set(name, output)
    return true
  }

  #producerOf(name: string): Node | undefined {
    this.#producers ??= new Map(
      this.#graph.nodes.flatMap((node) => node.outputs.map((output) => [output, node] as const)),
    )
    return this.#producers.get(name)
  }

  /** @returns number of removed nodes */
  apply(): number {
    if (this.#removed.size === 0) return 0
    const graph = this.#graph
    const names = new Map([...this.#renamed.keys()].map((name) => [name, this.resolve(name)] as const))
    const gone = new Set([...names.keys(), ...[...this.#removed].flatMap(({ outputs }) => outputs)])
    for (const name of names.values()) gone.delete(name)
    removeNodes(graph, this.#removed)
    renameUses(graph, names)
    for (const node of this.#renamedNodes) node.outputs = node.outputs.map((name) => names.get(name) ?? name)
    removeValueInfo(graph, gone)
    return this.#removed.size
  }
}

/** Removes nodes, whatever uses their outputs. */
export function removeNodes({ message }: Graph, gone: ReadonlySet<Node>): void {
  const fields = new Set<MessageField>([...gone].map((node) => node.message))
  message.filter('node', (field) => !fields.has(field))
}

/** Removes declared types of values that are gone. */
export function removeValueInfo({ message }: Graph, gone: ReadonlySet<string>): void {
  message.filter('value_info', (field) => !gone.has((field as Message).text('name')))
}
