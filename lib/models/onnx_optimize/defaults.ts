/** Passes by the signatures of operators: attributes that equal their defaults, and optional outputs that nothing uses. */
import type { NumberList } from '../../formats/number_list.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { standardDomain } from '../onnx/document/node.js'
import { hasSubgraphs, nodeNamesOf, usedNames } from '../onnx/document/node_names.js'
import type { Attribute, Graph, NewAttributeValue, Node } from '../onnx/document/types.js'
import { annotatedNames } from '../onnx/edit/graph_passes.js'
import { removeValueInfo } from '../onnx/edit/value_info.js'
import { type Signature, signatureAt } from '../onnx/schemas/signatures.js'
import type { Body } from './rewrite/functions.js'

type Opsets = ReadonlyMap<string, number | bigint>

export function removeDefaultAttributes(model: OnnxModel): number {
  let count = 0
  for (const { node, opsets } of nodesOf(model, true)) {
    if (!node.message.has('attribute')) continue
    for (const [name, value] of signatureOf(node, opsets)?.attributes ?? []) {
      const attribute = node.attribute(name)
      if (attribute && isEqual(attribute, value)) count += Number(node.removeAttribute(name))
    }
  }
  return count
}

export function addDefaultAttributes(model: OnnxModel): number {
  let count = 0
  for (const { node, opsets } of nodesOf(model)) {
    for (const [name, value] of signatureOf(node, opsets)?.attributes ?? []) {
      if (node.attribute(name)) continue
      node.setAttribute(name, value)
      count += 1
    }
  }
  return count
}

/**
 * Nodes of graphs and functions, with the operator sets that they are of.
 *
 * @param haveAttributes - whether nodes of graphs that have none are left out
 */
function* nodesOf(
  model: OnnxModel,
  haveAttributes = false,
): Generator<{ readonly node: Node; readonly opsets: Opsets }> {
  const { opsetImports } = model
  for (const graph of model.graphs()) {
    const { nodes } = graph
    const chosen = haveAttributes ? nodesAt(nodes, nodeNamesOf(graph).withAttributes) : nodes
    for (const node of chosen) yield { node, opsets: opsetImports }
  }
  for (const { nodes, opsetImports: opsets } of model.functions) {
    for (const node of nodes) {
      yield { node, opsets }
      if (!hasSubgraphs(node)) continue
      for (const graph of node.subgraphs) for (const inner of graph.allNodes()) yield { node: inner, opsets }
    }
  }
}

export function removeOptionalOutputs(model: Body): number {
  return [model.graph, ...model.graph.subgraphs()].reduce(
    (count, graph) => count + removeOptionalOutputsIn(graph, model.opsetImports),
    0,
  )
}

function nodesAt(nodes: readonly Node[], indices: NumberList): readonly Node[] {
  return Array.from({ length: indices.length }, (_, at) => nodes[indices.at(at)]!)
}

function removeOptionalOutputsIn(graph: Graph, opsets: Opsets): number {
  const nodes = nodesAt(graph.nodes, nodeNamesOf(graph).withOutputs)
  if (nodes.length === 0) return 0
  const used = new Set<string>([...graph.outputNames, ...annotatedNames(graph)])
  for (const node of graph.nodes) for (const name of usedNames(node)) used.add(name)
  const gone = new Set<string>()
  for (const node of nodes) {
    const { outputs } = node
    if (!mayLoseOutputs(node, opsets)) continue
    const optional = signatureOf(node, opsets)?.optional
    const dropped = outputs.filter((name, at) => name !== '' && optional?.has(at) && !used.has(name))
    if (dropped.length === 0) continue
    for (const name of dropped) gone.add(name)
    const kept = outputs.map((name) => (dropped.includes(name) ? '' : name))
    node.outputs = kept.slice(0, kept.findLastIndex((name) => name !== '') + 1)
  }
  removeValueInfo(graph, gone)
  return gone.size
}

/** In training, and before operator set 14 always, the outputs of BatchNormalization say what it computes. */
function mayLoseOutputs(node: Node, opsets: Opsets): boolean {
  if (node.opType !== 'BatchNormalization') return true
  return Number(opsets.get('') ?? 1) >= 14 && Number(node.attribute('training_mode')?.value ?? 0) === 0
}

function signatureOf(node: Node, opsets: Opsets): Signature | undefined {
  const domain = standardDomain(node.domain)
  return signatureAt(domain, node.opType, Number(opsets.get(domain) ?? 0))
}

function isEqual(attribute: Attribute, { type, value }: NewAttributeValue): boolean {
  if (attribute.type !== type || attribute.refName !== '') return false
  const own = [attribute.value]
    .flat()
    .map((each) => (each instanceof Uint8Array ? Buffer.from(each).toString() : each))
  const others = [value].flat()
  return own.length === others.length && own.every((each, at) => each === others[at])
}
