/** Removes what nothing refers to: nodes, initializers, functions, operator sets. */

import type { Message } from '../../formats/onnx/protobuf/message.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { standardDomain } from '../onnx/document/node.js'
import { hasSubgraphs, nodeNamesOf } from '../onnx/document/node_names.js'
import { removeUncalledFunctions } from '../onnx/edit/function_edits.js'
import { removeUnused } from '../onnx/edit/graph_passes.js'
import type { Body } from './rewrite/functions.js'

export function removeUnusedValues({ graph }: Body): number {
  const { nodes, initializers } = removeUnused(graph)
  return nodes + initializers
}

export function removeUnusedFunctions(model: OnnxModel): number {
  const before = model.functions.length
  if (before > 0) removeUncalledFunctions(model)
  return before - model.functions.length
}

/** The operator set of ONNX itself stays. */
export function removeUnusedOpsets(model: OnnxModel): number {
  const used = new Set([''])
  for (const graph of model.graphs()) {
    const { domains } = nodeNamesOf(graph)
    for (let number = 0; number < domains.length; number++) used.add(standardDomain(domains.text(number)))
  }
  for (const { domain, nodes, opsetImports } of model.functions) {
    for (const name of [domain, ...opsetImports.keys()]) used.add(standardDomain(name))
    for (const node of nodes) {
      if (!hasSubgraphs(node)) continue
      for (const graph of node.subgraphs) for (const inner of graph.allNodes()) used.add(inner.domain)
    }
  }
  return model.message.filter('opset_import', (field) =>
    used.has(standardDomain((field as Message).text('domain'))),
  )
}
