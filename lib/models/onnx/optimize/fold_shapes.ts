/**
 * Replaces arithmetic of fixed shapes and of small constants by its result. Extents follow from the inputs of the model and the
 * operators, not from declared types of intermediate values, which may be out of date.
 */

import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import type { OnnxModel } from '../document/model.js'
import { usedNames } from '../document/node_names.js'
import { orderedNodes } from '../document/node_order.js'
import type { Graph, Node } from '../document/types.js'
import { namesToKeep, removeInitializers } from '../edit/graph_passes.js'
import { inferModel, MAX_VALUE_ELEMENTS, QUANTIZATION } from '../infer/infer.js'
import type { Known } from '../infer/node_view.js'
import { initializerBytes, nodeBytes } from './encoded_bytes.js'
import { removeNodes, removeValueInfo } from './rewrite.js'

export async function foldShapes(model: OnnxModel): Promise<number> {
  if (Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS) return 0
  const graphs = [model.graph, ...model.graph.subgraphs()].filter(hasConstantNodes)
  if (graphs.length === 0) return 0
  const { known } = inferModel(model, { isOpen: () => true })
  let count = 0
  for (const graph of graphs) count += await new GraphFold(graph, known.get(graph)).run()
  return count
}

/** Inference takes longer than all other passes, so graphs without these are left out. */
function hasConstantNodes(graph: Graph): boolean {
  const initializers = new Set(['', ...graph.initializerNames])
  const isSmall = (name: string): boolean =>
    name === '' || (graph.initializer(name)?.sizeExact ?? 0n) <= MAX_VALUE_ELEMENTS
  return graph.nodes.some(({ message }) => {
    const [[opType = ''], inputs] = message.textLists('op_type', 'input')
    if (STARTS.has(opType)) return true
    const isOfWeights = inputs.length > 0 && inputs.every((name) => initializers.has(name))
    return isOfWeights && !QUANTIZATION.has(opType) && inputs.every(isSmall)
  })
}

/** Operators at the start of shape arithmetic. */
const STARTS: ReadonlySet<string> = new Set(['Shape', 'Size', 'Range', 'ConstantOfShape'])

/** A folded node: the value of each output that has a name. */
type Made = readonly (readonly [name: string, value: DenseTensor])[]

class GraphFold {
  readonly #graph: Graph
  readonly #known: ReadonlyMap<string, Known> | undefined
  readonly #fixed: ReadonlySet<string>
  readonly #made = new Map<Node, Made>()
  /** Values of folded nodes by name. */
  readonly #values = new Map<string, DenseTensor>()
  /** Initializers that only folded nodes used. */
  readonly #unused = new Set<string>()
  #removedBytes = 0

  constructor(graph: Graph, known: ReadonlyMap<string, Known> | undefined) {
    this.#graph = graph
    this.#known = known
    this.#fixed = namesToKeep(graph)
  }

  /** @returns number of folded nodes */
  async run(): Promise<number> {
    const graph = this.#graph
    for (const node of orderedNodes(graph.nodes)) await this.#fold(node)
    const used = this.#namesUsedByOthers()
    const made = [...this.#values].filter(([name]) => used.has(name))
    const added = made.reduce((sum, [name, value]) => sum + initializerBytes(value, name), 0)
    if (this.#made.size === 0 || added > this.#removedBytes) return 0
    removeNodes(graph, new Set(this.#made.keys()))
    removeValueInfo(graph, new Set(this.#values.keys()))
    removeInitializers(graph, (name) => this.#unused.has(name))
    graph.message.putTensors(
      'initializer',
      made.map(([name, tensor]) => ({ tensor, name })),
    )
    return this.#made.size
  }

  async #fold(node: Node): Promise<void> {
    const made = this.#valuesOf(node)
    if (!made) return
    const length = made.reduce((sum, [, { storage }]) => sum + storage.byteLength, 0)
    const ownBytes = await nodeBytes(node)
    const inputs = [...new Set(node.inputs)].filter((name) => this.#isOnlyUse(name, node))
    const initializers = inputs.filter((name) => this.#graph.hasInitializer(name))
    const freedBytes = bytesOf(initializers, (name) => this.#graph.initializer(name))
    const innerBytes = bytesOf(inputs, (name) => this.#values.get(name))
    // Long results stay with their nodes, which are shorter, unless they take the place of others: Range, ConstantOfShape, Expand.
    if (length > Math.max(LONG_BYTES, ownBytes + freedBytes + innerBytes)) return
    this.#made.set(node, made)
    for (const [name, value] of made) this.#values.set(name, value)
    for (const name of initializers) this.#unused.add(name)
    this.#removedBytes += ownBytes + freedBytes
  }

  #valuesOf(node: Node): Made | undefined {
    const names = node.outputs.filter((name) => name !== '')
    if (node.opType === 'Constant' || names.length === 0) return undefined
    const made: [string, DenseTensor][] = []
    for (const name of names) {
      const value = this.#fixed.has(name) ? undefined : this.#known?.get(name)?.value?.toTensor()
      if (!value) return undefined
      made.push([name, value])
    }
    return made
  }

  #isOnlyUse(name: string, node: Node): boolean {
    return !this.#fixed.has(name) && this.#graph.usersOf(name).every((user) => user === node)
  }

  #namesUsedByOthers(): ReadonlySet<string> {
    const used = new Set<string>()
    for (const node of this.#graph.nodes)
      if (!this.#made.has(node)) for (const name of usedNames(node)) used.add(name)
    return used
  }
}

function bytesOf(names: readonly string[], tensorOf: (name: string) => Tensor | undefined): number {
  return names.reduce((sum, name) => {
    const tensor = tensorOf(name)
    return sum + (tensor?.kind === 'dense' ? initializerBytes(tensor, name) : 0)
  }, 0)
}

/** The shape of a tensor with eight axes. */
const LONG_BYTES = 64
