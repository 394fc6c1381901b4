/**
 * Renames many values in one walk over a graph and its subgraphs. `Graph.rename` looks up one value in an index, and visits
 * its users alone.
 */
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { NAMED_FIELDS, renameInitializer } from '../document/graph_names.js'
import { hasSubgraphs } from '../document/node_names.js'
import type { Graph, Node } from '../document/types.js'
import { definedNames } from './graph_passes.js'

/** The new name of a value; its own name where that stays. */
export type Renaming = (name: string) => string

/**
 * Renames values wherever the graph and its subgraphs define, declare and use them. The caller checks that names stay
 * unique.
 *
 * @param renameInner - new names of values that subgraphs define
 */
export function renameValues(graph: Graph, rename: Renaming, renameInner: Renaming): void {
  const { message } = graph
  for (const node of graph.nodes) renameInNode(node, rename, renameInner)
  for (const [list, field] of NAMED_FIELDS)
    for (const each of message.messages(list)) renameText(each, field, rename)
  for (const annotation of message.messages('quantization_annotation'))
    for (const entry of annotation.messages('quant_parameter_tensor_names'))
      renameText(entry, 'value', rename)
  for (const list of INITIALIZER_LISTS)
    for (const initializer of graph.initializerFields(list)) {
      const name = rename(initializer.name)
      if (name !== initializer.name) renameInitializer(message, initializer, name)
    }
}

/** As `renameValues`, for a graph inside of the one whose values `rename` renames. */
export function renameInside(graph: Graph, rename: Renaming, renameInner: Renaming): void {
  const own = definedNames(graph)
  renameValues(graph, (name) => (own.has(name) ? renameInner(name) : rename(name)), renameInner)
}

/** Renames the text of a field; an absent one stays absent. */
export function renameText(message: Message, field: string, rename: Renaming): void {
  const text = message.text(field)
  const other = rename(text)
  if (other !== text) message.setText(field, other)
}

function renameInNode(node: Node, rename: Renaming, renameInner: Renaming): void {
  const { message } = node
  for (const list of ['input', 'output']) {
    const names = message.texts(list)
    const others = names.map(rename)
    if (others.some((name, at) => name !== names[at])) message.setTexts(list, others)
  }
  for (const device of message.messages('device_configurations'))
    for (const sharding of device.messages('sharding_spec')) renameText(sharding, 'tensor_name', rename)
  if (!hasSubgraphs(node)) return
  for (const inside of node.subgraphs) renameInside(inside, rename, renameInner)
}
