/** Graphs with the graphs around them: where a name that a node uses is defined. */

import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { standardDomain } from './node.js'
import { hasSubgraphs } from './node_names.js'
import type { Operator } from './read_node.js'
import type { Graph, Node } from './types.js'
import { constantOf } from './value.js'

export class Scope {
  readonly graph: Graph
  readonly #outer: Scope | undefined
  readonly #isOverridable: boolean
  readonly #defined: ReadonlySet<string>
  readonly #initializers: ReadonlySet<string>

  constructor(graph: Graph, isOverridable: boolean, outer?: Scope) {
    this.graph = graph
    this.#outer = outer
    this.#isOverridable = isOverridable
    const produced = graph.nodes.flatMap(({ outputs }) => outputs)
    // Not by the index of the graph, which takes longer to build than most passes.
    const inputs = graph.inputs.map(({ name }) => name)
    this.#initializers = new Set(graph.initializerNames)
    this.#defined = new Set([...inputs, ...this.#initializers, ...produced])
  }

  /** The graph that defines a value. */
  ownerOf(name: string): Scope | undefined {
    if (name === '') return undefined
    return this.#defined.has(name) ? this : this.#outer?.ownerOf(name)
  }

  /** The weight of that name; undefined for anything that a caller or a node may change. */
  constant(name: string): { readonly scope: Scope; readonly tensor: DenseTensor } | undefined {
    const scope = this.ownerOf(name)
    if (!scope) return undefined
    if (!scope.#initializers.has(name) || !scope.graph.hasInitializer(name)) return undefined
    if (scope.#isOverridable && scope.graph.inputNames.has(name)) return undefined
    const tensor = scope.graph.initializer(name)
    return tensor?.kind === 'dense' && tensor.hasData ? { scope, tensor } : undefined
  }

  /** A dense weight, or the value of a Constant node. */
  constantTensor(name: string): DenseTensor | undefined {
    const producer = this.producer(name)
    const tensor = producer ? constantOf(producer) : this.constant(name)?.tensor
    return tensor?.kind === 'dense' ? tensor : undefined
  }

  producer(name: string): Node | undefined {
    return this.ownerOf(name)?.graph.producerOf(name)
  }

  /** This graph and those inside it. */
  *all(): Generator<Scope> {
    yield this
    for (const node of this.graph.nodes) {
      if (!hasSubgraphs(node)) continue
      for (const graph of node.subgraphs) yield* new Scope(graph, this.#isOverridable, this).all()
    }
  }
}

export function mainScope(model: { readonly graph: Graph; readonly irVersion: number | bigint }): Scope {
  return new Scope(model.graph, Number(model.irVersion) >= FIRST_IR_WITH_FREE_INITIALIZERS)
}

export function isStandard(node: Operator, opType: string): boolean {
  return node.opType === opType && standardDomain(node.domain) === ''
}

/** Replaces a node by others in its place, with the same outputs. */
export function replaceNode(
  graph: Graph,
  node: Node,
  others: readonly Parameters<Graph['addNode']>[0][],
): void {
  const at = graph.message.indexOf(node.message)
  // Two nodes cannot make one value, so the old one gives its names up first; nothing reads the index meanwhile.
  const outputs = node.outputs
  node.outputs = outputs.map((name) => `${name}\u0000replaced`)
  for (const [index, other] of others.entries()) graph.addNode(other, at + 1 + index)
  graph.removeNode(node)
}

/** Removes an initializer that nothing uses any more. @returns the user that keeps it */
export function dropInitializer(graph: Graph, name: string): Node | 'output' | undefined {
  if (graph.outputNames.has(name)) return 'output'
  const [user] = graph.usersOf(name)
  if (user) return user
  graph.removeInitializer(name)
  return undefined
}
