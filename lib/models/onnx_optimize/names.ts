/** Gives nodes names of their own, and values of subgraphs names that no value around them has. */

import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { hasSubgraphs } from '../onnx/document/node_names.js'
import type { Graph } from '../onnx/document/types.js'
import { definedNames } from '../onnx/edit/graph_passes.js'

export function fixNames(model: OnnxModel): number {
  let names: FreshNames | undefined
  const fresh = (name: string): string => {
    names ??= new FreshNames(model)
    return names.take(name)
  }
  return nameNodes(model) + renameHiding(model.graph, new Set(), fresh)
}

/** The first node of a name keeps it. */
function nameNodes({ graph }: OnnxModel): number {
  const nodes = [graph, ...graph.subgraphs()].flatMap((each) => each.nodes)
  const given = nodes.map(({ name }) => name)
  const taken = new Set(given)
  const seen = new Set([''])
  const counts = new Map<string, number>()
  let changed = 0
  for (const [at, name] of given.entries()) {
    if (!seen.has(name)) {
      seen.add(name)
      continue
    }
    const node = nodes[at]!
    const base = name === '' ? node.opType : name
    let count = counts.get(base) ?? 0
    do count += 1
    while (taken.has(`${base}_${count}`))
    counts.set(base, count)
    node.name = `${base}_${count}`
    changed += 1
  }
  return changed
}

function renameHiding(graph: Graph, around: ReadonlySet<string>, fresh: (name: string) => string): number {
  let changed = 0
  if (around.size > 0)
    for (const name of definedNames(graph)) {
      if (name === '' || !around.has(name)) continue
      graph.rename(name, fresh(name))
      changed += 1
    }
  const inside = [...graph.nodes].flatMap((node) => (hasSubgraphs(node) ? node.subgraphs : []))
  if (inside.length === 0) return changed
  const all = new Set([...around, ...definedNames(graph)])
  return inside.reduce((sum, each) => sum + renameHiding(each, all, fresh), changed)
}
