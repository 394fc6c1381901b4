/** Finds the nodes and tensors of a graph by name, and the nodes that produce and consume each tensor. */
import { readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { isConstant } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type { TensorLinks, TmfileGraph, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'

/** The node itself, or the first node with the name. @throws TileworkError ERR_ARGUMENT where it is not in the graph */
export function findNode(graph: TmfileGraph, key: TmfileNode | string): TmfileNode {
  return find(graph.nodes, key, 'node')
}

/**
 * The tensor itself, or the first tensor with the name.
 *
 * @param otherwise - the end of the message where no name is near
 * @throws TileworkError ERR_ARGUMENT where it is not in the graph
 */
export function findTensor(graph: TmfileGraph, key: TmfileTensor | string, otherwise?: string): TmfileTensor {
  return find(graph.tensors, key, 'tensor', otherwise)
}

/**
 * The constant itself, or the first tensor with the name.
 *
 * @throws TileworkError ERR_ARGUMENT where it is not in the graph, ERR_GRAPH where it is not a constant
 */
export function findConstant(graph: TmfileGraph, key: TmfileTensor | string): TmfileTensor {
  const tensor = findTensor(graph, key)
  if (!isConstant(tensor)) {
    refuseEdit(`Tensor ${JSON.stringify(tensor.name)} is not a constant; its role is ${tensor.role}.`)
  }
  return tensor
}

function find<T extends { readonly name: string | null }>(
  list: readonly T[],
  key: T | string,
  what: string,
  otherwise = `; it has ${list.length} ${what}s`,
): T {
  const found =
    typeof key === 'string' ? list.find(({ name }) => name === key) : list.find((entry) => entry === key)
  if (found) return found
  const name = readInput(`The ${what}`, () =>
    typeof key === 'object' && key !== null ? valueText(key.name) : valueText(key),
  )
  const known = list.map((entry) => entry.name ?? '')
  const end = nearestText(key, known, otherwise)
  const message = `The graph has no ${what} ${name}${end}`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

/** @throws TileworkError ERR_GRAPH for an edit that the graph does not allow */
export function refuseEdit(message: string): never {
  throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME })
}

/** Producer and consumers of every tensor. */
export function linksOf(graph: TmfileGraph): Map<TmfileTensor, TensorLinks> {
  const links = new Map<TmfileTensor, { producer: TmfileNode | undefined; consumers: TmfileNode[] }>()
  const entryOf = (tensor: TmfileTensor) => {
    const known = links.get(tensor) ?? { producer: undefined, consumers: [] }
    links.set(tensor, known)
    return known
  }
  for (const tensor of graph.tensors) entryOf(tensor)
  for (const node of graph.nodes) {
    for (const tensor of node.outputs) entryOf(tensor).producer ??= node
    for (const tensor of new Set(node.inputs)) entryOf(tensor).consumers.push(node)
  }
  return links
}
