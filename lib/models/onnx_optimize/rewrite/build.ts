/** Builds the graphs of a model for rewriting: every name that a node uses becomes the value that it means there. */

import type { NameTable } from '../../../formats/onnx/name_table.js'
import { INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { standardDomain } from '../../onnx/document/node.js'
import { hasSubgraphs, type NodeNames, nodeNamesOf } from '../../onnx/document/node_names.js'
import { sortedNodes } from '../../onnx/document/node_order.js'
import type { Graph, Node } from '../../onnx/document/types.js'
import { annotatedNames, valuesWithAnnotations } from '../../onnx/edit/graph_passes.js'
import { type RewriteContext, RewriteGraph, RewriteNode, RewriteValue } from './rewrite_graph.js'

/** A model as graphs of values. */
export interface Built {
  /** All graphs, each behind the one around it. */
  readonly graphs: readonly RewriteGraph[]
  /** Names that several graphs define: a value of such a name may be hidden from users in another graph. */
  readonly repeated: ReadonlySet<string>
}

const NO_SUBGRAPHS: readonly Graph[] = []

/** The values that a graph defines, by the number of their name. */
interface Scope {
  readonly names: NodeNames
  readonly values: (RewriteValue | undefined)[]
}

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
  /** Whether there are subgraphs, so that names may be repeated. */
  #isNested = false

  constructor(context: RewriteContext) {
    this.#context = context
  }

  /** Graphs inside each other are visited from a list: a file may nest more of them than calls fit on the stack. */
  add(main: RewriteGraph): boolean {
    const waiting: { graph: RewriteGraph; outer: readonly Scope[] }[] = [{ graph: main, outer: [] }]
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const { graph, outer } = next
      this.graphs.push(graph)
      const names = nodeNamesOf(graph.source)
      const scope = { names, values: new Array<RewriteValue | undefined>(names.table.length) }
      this.#isNested ||= names.hasSubgraphs
      const { nodes } = graph.source
      const order = sortedNodes(nodes, names)
      if (!this.#defineEnds(graph, scope) || !this.#defineOutputs(graph, scope, order)) return false
      const scopes = [...outer, scope]
      this.#connect(graph, scopes, order)
      const inside = names.hasSubgraphs ? graph.nodes.flatMap(({ subgraphs }) => subgraphs) : []
      for (const each of inside.reverse()) waiting.push({ graph: each, outer: scopes })
    }
    return true
  }

  /** @returns false where the graph defines the name twice */
  #add({ values }: Scope, number: number, value: RewriteValue): boolean {
    if (values[number]) return false
    values[number] = value
    if (!this.#isNested) return true
    const { name } = value
    if (this.#defined.has(name)) this.repeated.add(name)
    this.#defined.add(name)
    return true
  }

  /** Inputs and initializers. */
  #defineEnds(graph: RewriteGraph, scope: Scope): boolean {
    const { source } = graph
    const { table: names } = scope.names
    const { inputNames } = source
    for (const { name } of source.inputs) {
      const number = names.numberOfText(name)
      const value = new RewriteValue(this.#context, graph, { names, number })
      value.isInput = true
      if (!this.#add(scope, number, value)) return false
      graph.inputs.push(value)
    }
    for (const { name, field } of INITIALIZER_LISTS.flatMap((list) => source.initializerFields(list))) {
      if (inputNames.has(name)) continue
      const number = names.numberOfText(name)
      const tensor = (): Tensor => tensorOfField(field)
      const value = new RewriteValue(this.#context, graph, { names, number, tensor })
      if (!this.#add(scope, number, value)) return false
      graph.constants.add(value)
    }
    return true
  }

  #defineOutputs(graph: RewriteGraph, scope: Scope, order: readonly number[]): boolean {
    const { names } = scope
    const { nodes: sources } = graph.source
    const operators = textsIn(names.operators)
    const domains = textsIn(names.domains).map(standardDomain)
    const nodes: RewriteNode[] = []
    for (const [position, index] of order.entries()) {
      const source = sources[index]!
      const parts = {
        source,
        opType: operators[names.operatorOf.at(index)]!,
        domain: domains[names.domainOf.at(index)]!,
        subgraphs: names.hasSubgraphs && hasSubgraphs(source) ? source.subgraphs : NO_SUBGRAPHS,
      }
      const node = new RewriteNode(this.#context, graph, parts, position)
      nodes.push(node)
      node.setOutputs(
        outputsOf(names, source, index).map((number) =>
          number < 0 ? undefined : new RewriteValue(this.#context, graph, { names: names.table, number }),
        ),
      )
      for (const [at, number] of outputsOf(names, source, index).entries()) {
        const value = node.outputs[at]
        if (value && !this.#add(scope, number, value)) return false
        if (value) value.producer = node
      }
    }
    graph.nodes = nodes
    return true
  }

  #connect(graph: RewriteGraph, scopes: readonly Scope[], order: readonly number[]): void {
    const { names, values } = scopes.at(-1)!
    const find = (number: number): RewriteValue | undefined =>
      number < 0 ? undefined : (values[number] ?? this.#outside(graph, scopes, names.table.text(number)))
    for (const [position, node] of graph.nodes.entries()) {
      node.setInputs(inputsOf(names, node.source, order[position]!).map(find))
      for (const value of node.inputs) value?.users.add(node)
      node.noteInputs()
    }
    const { source } = graph
    const named = (name: string): RewriteValue => find(names.table.numberOfText(name))!
    graph.outputs = source.message.messages('output').map((each) => named(each.text('name')))
    for (const value of graph.outputs) {
      value.isOutput = true
      // An output that is a value of a graph around is not this graph's to change.
      if (value.graph !== graph) value.isPinned = true
    }
    for (const name of [...annotatedNames(source), ...valuesWithAnnotations(source)])
      named(name).isPinned = true
  }

  /** A value of a graph around; a name that nothing defines gets one as well, and `check` reports it. */
  #outside(graph: RewriteGraph, scopes: readonly Scope[], name: string): RewriteValue {
    for (let at = scopes.length - 2; at >= 0; at--) {
      const { names, values } = scopes[at]!
      const found = values[names.table.find(name)]
      if (found) return found
    }
    const [{ names, values }] = scopes as [Scope]
    const number = names.table.numberOfText(name)
    const value = new RewriteValue(this.#context, graph, { names: names.table, number })
    value.isPinned = true
    values[number] = value
    return value
  }
}

function textsIn(table: NameTable): readonly string[] {
  return Array.from({ length: table.length }, (_, number) => table.text(number))
}

/** Numbers of the names of the inputs of a node; -1 for an omitted one. */
function inputsOf(names: NodeNames, node: Node, index: number): readonly number[] {
  const { used, table } = names
  if (names.withOmitted.has(index)) return node.inputs.map((name) => (name === '' ? -1 : table.find(name)))
  const start = used.start(index)
  return Array.from({ length: names.inputCounts.at(index) }, (_, at) => used.at(start + at))
}

function outputsOf(names: NodeNames, node: Node, index: number): readonly number[] {
  const { made, table } = names
  if (names.withOmitted.has(index)) return node.outputs.map((name) => (name === '' ? -1 : table.find(name)))
  const start = made.start(index)
  return Array.from({ length: made.end(index) - start }, (_, at) => made.at(start + at))
}
