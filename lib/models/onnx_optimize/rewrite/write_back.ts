/** Writes graphs that rules changed into the messages of the model, innermost first. */
import type { MessageField } from '../../../formats/onnx/protobuf/message.js'
import { INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { nodeNamesOf } from '../../onnx/document/node_names.js'
import { sortedNodes } from '../../onnx/document/node_order.js'
import type { Graph } from '../../onnx/document/types.js'
import { removeInitializers } from '../../onnx/edit/graph_passes.js'
import { removeValueInfo } from '../../onnx/edit/value_info.js'
import type { Built } from './build.js'
import type { RewriteGraph, RewriteNode, RewriteValue } from './rewrite_graph.js'

/** @param hasFreeInitializers - whether constants become initializers; they are Constant nodes otherwise */
export function writeBack({ graphs }: Built, hasFreeInitializers: boolean): void {
  // Each graph stands behind the one around it, so inner ones are written before their nodes are copied anywhere.
  for (const graph of [...graphs].reverse()) if (!graph.isInlined) writeGraph(graph, hasFreeInitializers)
}

function writeGraph(graph: RewriteGraph, hasFreeInitializers: boolean): void {
  if (!graph.isChanged) return
  const nodes = [...graph.present()]
  const added = [...graph.constants].filter((value) => isNew(value, graph.source) && !value.isUnused)
  for (const node of nodes) if (node.isChanged) writeNames(node)
  writeNodes(graph, nodes)
  removeUnusedConstants(graph)
  if (hasFreeInitializers) addInitializers(graph, added)
  else addConstantNodes(graph, added)
  const live = new Set(nodes.flatMap(({ outputs }) => outputs.map((value) => value?.name)))
  const gone = graph.goneNames.filter((name) => !live.has(name))
  if (gone.length > 0) removeValueInfo(graph.source, new Set(gone))
}

/** Whether the message of the graph lacks a constant: a rule made it, or it was in a graph inside. */
const isNew = (value: RewriteValue, source: Graph): boolean => value.source !== source

function writeNames({ source: { message }, inputs, outputs }: RewriteNode): void {
  message.setTexts(
    'input',
    inputs.map((value) => value?.name ?? ''),
  )
  message.setTexts(
    'output',
    outputs.map((value) => value?.name ?? ''),
  )
}

/** In topological order: a new node may use what comes behind the one that it was made for. */
function writeNodes({ source }: RewriteGraph, nodes: readonly RewriteNode[]): void {
  const { message } = source
  const order: MessageField[] = nodes.map(({ source: { message: node } }) =>
    node.parent === message ? node : message.adopt('node', node),
  )
  message.reorder('node', order)
  const sorted = sortedNodes(source.nodes, nodeNamesOf(source))
  if (sorted.every((from, to) => from === to)) return
  message.reorder(
    'node',
    sorted.map((at) => order[at]!),
  )
}

/** Weights that only nodes that are gone used go with them. */
function removeUnusedConstants({ source, constants }: RewriteGraph): void {
  const unused = new Set<string>()
  for (const value of constants)
    if (value.hasLostUsers && value.isUnused && !isNew(value, source)) unused.add(value.name)
  if (unused.size > 0) removeInitializers(source, (name) => unused.has(name))
}

function addInitializers({ source: { message } }: RewriteGraph, added: readonly RewriteValue[]): void {
  const tensors = added.map((value) => ({ tensor: value.constant!, name: value.name }))
  for (const list of INITIALIZER_LISTS) {
    const isSparse = list === 'sparse_initializer'
    const own = tensors.filter(({ tensor }) => (tensor.kind === 'sparse') === isSparse)
    if (own.length > 0) message.putTensors(list, own)
  }
}

function addConstantNodes({ source }: RewriteGraph, added: readonly RewriteValue[]): void {
  for (const { name, constant } of added)
    source.addNode(
      {
        opType: 'Constant',
        outputs: [name],
        attributes: { value: { type: 'TENSOR', value: constant! } },
      },
      0,
    )
}
