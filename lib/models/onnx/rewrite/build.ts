/** Builds the graphs of a model for rewriting: every name that a node uses becomes the value that it means there. */

import { INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { hasSubgraphs, nodeNamesOf } from '../document/node_names.js'
import { orderedNodes } from '../document/node_order.js'
import type { Graph } from '../document/types.js'
import { annotatedNames, valuesWithAnnotations } from '../edit/graph_passes.js'
import { textsOf } from '../infer/node_view.js'
import { type RewriteContext, RewriteGraph, RewriteNode, RewriteValue } from './rewrite_graph.js'

/** A model as graphs of values. */
export interface Built {
  /** All graphs, each behind the one around it. */
  readonly graphs: readonly RewriteGraph[]
  /** Names that several graphs define: a value of such a name may be hidden from users in another graph. */
  readonly repeated: ReadonlySet<string>
}

const NO_SUBGRAPHS: readonly Graph[] = []

type Scope = ReadonlyMap<string, RewriteValue>

/**
 * @returns undefined for a model in which a graph defines a name twice
 * @throws TileworkError ERR_GRAPH for a cycle of nodes
 */
export function buildGraphs(graph: Graph, context: RewriteContext): Built | undefined {
  const builder = new Builder(context)
  return builder.add(new RewriteGraph(graph)) ? builder : undefined
}

class Builder {
  readonly graphs: RewriteGraph[] = []
  readonly repeated = new Set<string>()
  readonly #context: RewriteContext
  readonly #defined = new Set<string>()
  /** Names of the inputs of the nodes of the graph that is being connected. */
  readonly #inputs = new Map<RewriteNode, readonly string[]>()

  constructor(context: RewriteContext) {
    this.#context = context
  }

  /** Graphs inside each other are visited from a list: a file may nest more of them than calls fit on the stack. */
  add(main: RewriteGraph): boolean {
    const waiting: { graph: RewriteGraph; outer: readonly Scope[] }[] = [{ graph: main, outer: [] }]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { graph, outer } = next
      this.graphs.push(graph)
      const scope = this.#define(graph)
      if (!scope) return false
      const scopes = [...outer, scope]
      this.#connect(graph, scopes)
      const inside = graph.nodes.flatMap(({ subgraphs }) => subgraphs)
      for (const each of inside.reverse()) waiting.push({ graph: each, outer: scopes })
    }
    return true
  }

  /** @returns the values of a graph by name; undefined where it defines one twice */
  #define(graph: RewriteGraph): Scope | undefined {
    const { source } = graph
    const scope = new Map<string, RewriteValue>()
    const add = (value: RewriteValue): boolean => {
      const { name } = value
      if (scope.has(name)) return false
      if (this.#defined.has(name)) this.repeated.add(name)
      this.#defined.add(name)
      scope.set(name, value)
      return true
    }
    const { inputNames } = source
    for (const { name } of source.inputs) {
      const value = new RewriteValue(this.#context, graph, name, { isOriginal: true })
      value.isInput = true
      if (!add(value)) return undefined
      graph.inputs.push(value)
    }
    for (const { name, field } of INITIALIZER_LISTS.flatMap((list) => source.initializerFields(list))) {
      if (inputNames.has(name)) continue
      const value = new RewriteValue(this.#context, graph, name, {
        isOriginal: true,
        tensor: () => tensorOfField(field),
      })
      if (!add(value)) return undefined
      graph.constants.add(value)
    }
    return this.#defineOutputs(graph, add) ? scope : undefined
  }

  #defineOutputs(graph: RewriteGraph, add: (value: RewriteValue) => boolean): boolean {
    const nodes: RewriteNode[] = []
    graph.nodes = nodes
    const names = nodeNamesOf(graph.source)
    for (const [position, source] of orderedNodes(graph.source.nodes, names).entries()) {
      const texts = textsOf(source)
      const subgraphs = names.hasSubgraphs && hasSubgraphs(source) ? source.subgraphs : NO_SUBGRAPHS
      const node = new RewriteNode(this.#context, graph, { ...texts, source, subgraphs }, position)
      nodes.push(node)
      this.#inputs.set(node, texts.inputs)
      node.setOutputs(
        texts.outputs.map((name) =>
          name === '' ? undefined : new RewriteValue(this.#context, graph, name, { isOriginal: true }),
        ),
      )
      for (const value of node.outputs) {
        if (value && !add(value)) return false
        if (value) value.producer = node
      }
    }
    return true
  }

  #connect(graph: RewriteGraph, scopes: readonly Scope[]): void {
    const find = (name: string): RewriteValue => {
      for (let at = scopes.length - 1; at >= 0; at--) {
        const found = scopes[at]!.get(name)
        if (found) return found
      }
      return this.#unknown(graph, scopes, name)
    }
    for (const node of graph.nodes) {
      node.setInputs(this.#inputs.get(node)!.map((name) => (name === '' ? undefined : find(name))))
      for (const value of node.inputs) value?.users.add(node)
    }
    this.#inputs.clear()
    const { source } = graph
    graph.outputs = source.message.messages('output').map((each) => find(each.text('name')))
    for (const value of graph.outputs) {
      value.isOutput = true
      // An output that is a value of a graph around is not this graph's to change.
      if (value.graph !== graph) value.isPinned = true
    }
    for (const name of [...annotatedNames(source), ...valuesWithAnnotations(source)])
      find(name).isPinned = true
  }

  /** A name that nothing defines; `check` reports it. */
  #unknown(graph: RewriteGraph, scopes: readonly Scope[], name: string): RewriteValue {
    const value = new RewriteValue(this.#context, graph, name, { isOriginal: true })
    value.isPinned = true
    ;(scopes[0] as Map<string, RewriteValue>).set(name, value)
    return value
  }
}
