/**
 * Keeps the outputs of an edited graph whole. The runtime reuses the memory of a tensor once the nodes behind it have run, also
 * where it is an output: the caller then sees later numbers. So nothing may read an output; what still must gets a copy of it.
 */

import type { TmfileGraph, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { append } from '../../../long_lists.js'
import { linksOf } from '../document/lookup.js'
import { operatorNode } from '../document/operator_node.js'

/** A target of a Reshape that copies every extent, whatever the rank. */
const ALL_EXTENTS = -2

/**
 * Removes the nodes behind outputs that no output needs, and makes a copy of each output that a needed node reads. The copy is the last
 * node and has the name of the output, whose own name gets a suffix.
 *
 * @param needed - nodes that the outputs depend on
 */
export function protectOutputs(graph: TmfileGraph, needed: ReadonlySet<TmfileNode>): void {
  const links = linksOf(graph)
  const isRead = (tensor: TmfileTensor) => links.get(tensor)!.consumers.some((node) => needed.has(node))
  graph.outputs = graph.outputs.flatMap((node) => {
    if (!node.outputs.some(isRead)) return [node]
    return node.outputs.map((tensor) => copyOf(graph, tensor))
  })
}

/** Nodes behind the outputs that nothing needs. */
export function deadNodes(graph: TmfileGraph, needed: ReadonlySet<TmfileNode>): Set<TmfileNode> {
  const links = linksOf(graph)
  const dead = new Set<TmfileNode>()
  const open = graph.outputs.flatMap(({ outputs }) => outputs)
  for (let tensor = open.pop(); tensor; tensor = open.pop()) {
    for (const node of links.get(tensor)?.consumers ?? []) {
      if (needed.has(node) || dead.has(node)) continue
      dead.add(node)
      append(open, node.outputs)
    }
  }
  return dead
}

function copyOf(graph: TmfileGraph, tensor: TmfileTensor): TmfileNode {
  const { name } = tensor
  const copied: TmfileTensor = { ...tensor, role: 'variable', shape: tensor.shape && [...tensor.shape] }
  if (name !== null) tensor.name = freeName(graph.tensors, `${name}__inner`)
  const params = { is_mxnet: 1, re_shape: [ALL_EXTENTS] }
  const nodeName = name === null ? null : freeName(graph.nodes, `${name}__copy`)
  const node = operatorNode('Reshape', nodeName, params, { inputs: [tensor], outputs: [copied] })
  graph.tensors.push(copied)
  graph.nodes.push(node)
  for (const device of graph.devices ?? []) {
    if (!device.outputs.includes(tensor)) continue
    device.nodes.push(node)
    device.outputs = device.outputs.map((output) => (output === tensor ? copied : output))
  }
  return node
}

function freeName(named: readonly { readonly name: string | null }[], base: string): string {
  const taken = new Set(named.map(({ name }) => name))
  let name = base
  for (let count = 2; taken.has(name); count += 1) name = `${base}_${count}`
  return name
}
