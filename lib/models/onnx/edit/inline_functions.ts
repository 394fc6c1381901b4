/**
 * Replaces calls of functions by the nodes of their bodies. Values of a body, and those of graphs inside its nodes, get names that
 * nothing else in the model has.
 */
import { TileworkError } from '../../../errors.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { append } from '../../../long_lists.js'
import { FreshNames } from '../document/fresh_names.js'
import { GRAPHS } from '../document/graph.js'
import type { OnnxModel } from '../document/model.js'
import type { ModelFunction } from '../document/model_function.js'
import { ProtoNode, standardDomain } from '../document/node.js'
import { hasSubgraphs } from '../document/node_names.js'
import type { Attribute, Graph, Node } from '../document/types.js'
import { callOf, keyOf } from './function_edits.js'
import { definedNames, renameInputs } from './graph_passes.js'
import { importMissingOpsets } from './missing_opsets.js'

/** Nodes that a model may get: functions that call others twice double them with each level (CWE-400). */
const MAX_INLINED_NODES = 2 ** 20

/**
 * Functions that call themselves, or that import another version of an operator set than the model, stay.
 *
 * @param options - `anyOpsets`: only the former stay; the nodes then have operator sets that they were not made for
 * @returns the number of replaced calls
 * @throws TileworkError ERR_LIMIT, before anything is changed
 */
export function inlineFunctions(model: OnnxModel, { anyOpsets = false } = {}): number {
  const functions = inlinable(anyOpsets ? allFunctions(model) : compatibleFunctions(model))
  if (functions.size === 0) return 0
  const graphs = [model.graph, ...model.graph.subgraphs()]
  const calls = graphs.flatMap((graph) => graph.nodes.map((node) => functions.get(callOf(node))))
  const added = calls.reduce((sum, called) => sum + (called?.nodes ?? 0), 0)
  if (added > MAX_INLINED_NODES) {
    const message = `The functions of the model have ${added} nodes after inlining; the limit is ${MAX_INLINED_NODES}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
  }
  const inliner = new Inliner(model, functions)
  for (const graph of graphs) inliner.run(graph)
  for (const { opsetImports } of inliner.inlined) importMissingOpsets(model, opsetImports)
  return inliner.count
}

interface Inlinable {
  readonly body: ModelFunction
  /** Nodes of the body after inlining. */
  readonly nodes: number
}

/** Functions that can be inlined, by key; sizes follow from those of the functions that they call (Kahn's algorithm). */
function inlinable(bodies: ReadonlyMap<string, ModelFunction>): ReadonlyMap<string, Inlinable> {
  const callers = new Map<string, string[]>()
  const missing = new Map<string, number>()
  const calls = new Map<string, readonly string[]>()
  for (const [key, { nodes }] of bodies) {
    const own = nodes.flatMap((node) => [callOf(node), ...innerCalls(node)])
    calls.set(key, own)
    const called = new Set(own.filter((each) => bodies.has(each)))
    missing.set(key, called.size)
    for (const each of called) callers.set(each, [...(callers.get(each) ?? []), key])
  }
  const found = new Map<string, Inlinable>()
  const ready = [...missing].flatMap(([key, count]) => (count === 0 ? [key] : []))
  for (let key = ready.pop(); key !== undefined; key = ready.pop()) {
    const nodes = calls.get(key)!.reduce((sum, each) => sum + (found.get(each)?.nodes ?? 1), 0)
    found.set(key, { body: bodies.get(key)!, nodes })
    for (const caller of callers.get(key) ?? []) {
      missing.set(caller, missing.get(caller)! - 1)
      if (missing.get(caller) === 0) ready.push(caller)
    }
  }
  return found
}

function innerCalls(node: Node): string[] {
  if (!hasSubgraphs(node)) return []
  return node.subgraphs.flatMap((graph) => [...graph.allNodes()].map(callOf))
}

function allFunctions({ functions }: OnnxModel): ReadonlyMap<string, ModelFunction> {
  const keyed = functions.map((each) => [keyOf(each.domain, each.name, each.overload), each] as const)
  return new Map(keyed.reverse())
}

/** Functions whose operator sets are those of the model, or sets that it lacks. */
function compatibleFunctions(model: OnnxModel): ReadonlyMap<string, ModelFunction> {
  const versions = new Map([...model.opsetImports].map(([domain, version]) => [domain, Number(version)]))
  const found = new Map<string, ModelFunction>()
  for (const each of model.functions) {
    const own = [...each.opsetImports].map(
      ([domain, version]) => [standardDomain(domain), Number(version)] as const,
    )
    if (own.some(([domain, version]) => (versions.get(domain) ?? version) !== version)) continue
    for (const [domain, version] of own) versions.set(domain, version)
    const key = keyOf(each.domain, each.name, each.overload)
    if (!found.has(key)) found.set(key, each)
  }
  return found
}

class Inliner {
  /** Number of replaced calls. */
  count = 0
  readonly inlined = new Set<ModelFunction>()
  readonly #functions: ReadonlyMap<string, Inlinable>
  readonly #names: FreshNames

  constructor(model: OnnxModel, functions: ReadonlyMap<string, Inlinable>) {
    this.#functions = functions
    this.#names = new FreshNames(model)
  }

  /** Replaces all calls in the nodes of a graph, and in graphs inside nodes that come from bodies. */
  run(graph: Graph): void {
    const { nodes, message } = graph
    const isCall = (node: Node): boolean => this.#functions.has(callOf(node))
    if (!nodes.some(isCall)) return
    const order: Message[] = []
    const waiting = [...nodes].reverse()
    const added: Node[] = []
    for (let node = waiting.pop(); node; node = waiting.pop()) {
      const called = this.#functions.get(callOf(node))
      if (!called) {
        order.push(node.message)
        continue
      }
      const copies = this.#expand(graph, node, called.body)
      append(waiting, copies.reverse())
      append(added, copies)
    }
    message.reorder('node', order)
    for (const node of added) if (hasSubgraphs(node)) for (const inner of node.subgraphs) this.#runAll(inner)
  }

  #runAll(graph: Graph): void {
    this.run(graph)
    for (const inner of [...graph.subgraphs()]) this.run(inner)
  }

  /** Appends copies of the body's nodes to the graph, with the values and attributes of a call. */
  #expand(graph: Graph, call: Node, body: ModelFunction): Node[] {
    this.count += 1
    this.inlined.add(body)
    const { names, passed } = this.#actualNames(call, body)
    const attributes = actualAttributes(call, body)
    const copies = body.nodes.map((node) => {
      const copy = ProtoNode.of(graph.message.adopt('node', node.message), GRAPHS)
      this.#adapt(copy, names, attributes)
      if (copy.name !== '' && call.name !== '') copy.name = `${call.name}/${copy.name}`
      return copy
    })
    for (const [input, output] of passed) {
      const identity = ProtoNode.of(graph.message.insert('node'), GRAPHS)
      identity.fill({ opType: 'Identity', inputs: [names.get(input)!], outputs: [output], attributes: {} })
      copies.push(identity)
    }
    return copies
  }

  /** Names of the caller by those of the body; and outputs that no node of the body can produce under their name. */
  #actualNames(
    call: Node,
    body: ModelFunction,
  ): { readonly names: Map<string, string>; readonly passed: readonly (readonly [string, string])[] } {
    const names = new Map(body.inputs.map((name, at) => [name, call.inputs[at] ?? '']))
    const passed: [string, string][] = []
    for (const [at, output] of call.outputs.entries()) {
      const name = body.outputs[at]
      if (output === '' || name === undefined) continue
      if (names.has(name)) passed.push([name, output])
      else names.set(name, output)
    }
    for (const node of body.nodes)
      for (const name of node.outputs)
        if (name !== '' && !names.has(name)) names.set(name, this.#names.take(name))
    return { names, passed }
  }

  #adapt(node: Node, names: ReadonlyMap<string, string>, attributes: ReadonlyMap<string, Attribute>): void {
    resolveReferences(node, attributes)
    if (hasSubgraphs(node)) for (const graph of node.subgraphs) this.#adaptGraph(graph, attributes)
    node.outputs = node.outputs.map((name) => names.get(name) ?? name)
    renameInputs(node, names)
  }

  /** Gives all values that a graph inside a body defines new names, and its nodes the attributes of the call. */
  #adaptGraph(graph: Graph, attributes: ReadonlyMap<string, Attribute>): void {
    for (const name of definedNames(graph)) {
      if (name === '') continue
      let fresh = this.#names.take(name)
      while (fresh !== name && graph.uniqueName(fresh) !== fresh) fresh = this.#names.take(name)
      if (fresh !== name) graph.rename(name, fresh)
    }
    for (const node of graph.nodes) {
      resolveReferences(node, attributes)
      if (hasSubgraphs(node)) for (const inner of node.subgraphs) this.#adaptGraph(inner, attributes)
    }
  }
}

function actualAttributes(call: Node, body: ModelFunction): ReadonlyMap<string, Attribute> {
  return new Map([...body.attributes, ...call.attributes].map((each) => [each.name, each]))
}

/** Replaces references to attributes of the function by their values; those without a value are left out. */
function resolveReferences({ message }: Node, attributes: ReadonlyMap<string, Attribute>): void {
  if (!message.has('attribute')) return
  for (const reference of message.messages('attribute')) {
    const refName = reference.text('ref_attr_name')
    if (refName === '') continue
    const value = attributes.get(refName)
    if (value) message.adopt('attribute', value.message).setText('name', reference.text('name'))
    message.remove('attribute', reference)
  }
}
