/** Graphs of attributes from texts; see model_text.ts. */
import { Graph } from '../../../lib/onnx.js'
import { nodesOf, typeOf } from './model_text.js'

export function graphOf(
  nodes: string,
  outputs: string,
  inputs: Readonly<Record<string, string>> = {},
): Graph {
  const graph = Graph.create('inside')
  for (const [name, text] of Object.entries(inputs)) graph.addInput(name, typeOf(text))
  for (const node of nodesOf(nodes)) graph.addNode(node)
  for (const name of outputs.split(' ')) graph.addOutput(name, { kind: 'none' })
  return graph
}
