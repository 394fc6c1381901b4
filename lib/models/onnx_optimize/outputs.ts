/**
 * Gives every output of a graph a node and a name of its own, which the IR of ONNX demands and some engines need, as OutputFix of
 * onnx_ir does.
 */
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { Graph } from '../onnx/document/types.js'
import type { Body } from './rewrite/functions.js'

export function fixOutputs({ graph }: Body): number {
  const graphs = [graph, ...graph.subgraphs()]
  let names: FreshNames | undefined
  const fresh = (name: string): string => {
    names ??= new FreshNames({ graphs: () => graphs })
    return names.take(name)
  }
  return graphs.reduce((sum, each) => sum + splitRepeated(each, fresh) + splitDirect(each, fresh), 0)
}

/** The first output of a name keeps it. */
function splitRepeated(graph: Graph, fresh: (name: string) => string): number {
  const seen = new Set<string>()
  let count = 0
  for (const [at, output] of graph.message.messages('output').entries()) {
    const name = output.text('name')
    if (!seen.has(name)) {
      seen.add(name)
      continue
    }
    const alias = fresh(`${name}_alias_${at}`)
    output.setText('name', alias)
    graph.addNode({ opType: 'Identity', inputs: [name], outputs: [alias] })
    count += 1
  }
  return count
}

/** The output keeps its name; the input or weight gets another, also where nodes use it. */
function splitDirect(graph: Graph, fresh: (name: string) => string): number {
  const isDirect = (name: string): boolean => graph.inputNames.has(name) || graph.hasInitializer(name)
  const direct = graph.message.messages('output').filter((output) => isDirect(output.text('name')))
  for (const output of direct) {
    const name = output.text('name')
    const source = fresh(`${name}_orig`)
    graph.rename(name, source)
    output.setText('name', name)
    graph.addNode({ opType: 'Identity', inputs: [source], outputs: [name] })
  }
  return direct.length
}
