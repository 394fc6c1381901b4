/** Numbers of values that nodes pass to their subgraphs and get from them. */
import type { Graph } from '../../document/types.js'
import type { NodeView } from '../../infer/node_view.js'
import type { ExtentRule } from './rule.js'

/** @param inputs - what the node passes; @param outputs - what it takes */
function bodyProblem(name: string, body: Graph, inputs: number, outputs: number): string | undefined {
  if (body.inputs.length !== inputs)
    return `passes ${inputs} values to ${name}, which has ${body.inputs.length} inputs`
  return body.outputs.length === outputs
    ? undefined
    : `takes ${outputs} values from ${name}, which has ${body.outputs.length} outputs`
}

const branches: ExtentRule = (node) => {
  const graphs = ['then_branch', 'else_branch'].map((name) => [name, node.graph(name)] as const)
  for (const [name, graph] of graphs) {
    if (graph && graph.outputs.length !== node.outputs.length)
      return `takes ${node.outputs.length} values from ${name}, which has ${graph.outputs.length} outputs`
  }
  return undefined
}

const loop: ExtentRule = (node) => {
  const body = node.graph('body')
  return body && bodyProblem('body', body, node.inputs.length, node.outputs.length + 1)
}

const scan: ExtentRule = (node, since) => {
  const [body, scanned] = [node.graph('body'), node.int('num_scan_inputs')]
  if (!body || scanned === undefined) return undefined
  // The first input of early versions is the length of sequences.
  const inputs = node.inputs.length - (since < 9 ? 1 : 0)
  if (scanned < 0 || scanned > inputs) return `has ${scanned} scan inputs of ${inputs} inputs`
  const wrong = bodyProblem('body', body, inputs, node.outputs.length)
  if (wrong !== undefined || since < 9) return wrong
  return (
    axesProblem(node, 'scan_input_axes', scanned) ??
    axesProblem(node, 'scan_output_axes', node.outputs.length - (inputs - scanned))
  )
}

function axesProblem(node: NodeView, name: string, count: number): string | undefined {
  const axes = node.ints(name)
  return !axes || axes.length === count
    ? undefined
    : `has ${axes.length} entries in ${name}; it takes ${count}`
}

const sequenceMap: ExtentRule = (node) => {
  const body = node.graph('body')
  return body && bodyProblem('body', body, node.inputs.length, node.outputs.length)
}

export const CONTROL_RULES: Readonly<Record<string, ExtentRule>> = {
  If: branches,
  Loop: loop,
  Scan: scan,
  SequenceMap: sequenceMap,
}
