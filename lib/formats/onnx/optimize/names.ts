/** Gives nodes names of their own, and values of subgraphs names that no value around them has. */
import { FreshNames } from '../model/fresh_names.js'
import { hasSubgraphs } from '../model/graph_names.js'
import { definedNames } from '../model/graph_passes.js'
import type { Graph } from '../model/types.js'
import type { OptimizedModel } from './model.js'

export function fixNames(model: OptimizedModel): number {
  return nameNodes(model) + renameHiding(model.graph, new Set(), new FreshNames(model))
}

/** The first node of a name keeps it. */
function nameNodes({ graph }: OptimizedModel): number {
  const graphs = [graph, ...graph.subgraphs()]
  const taken = new Set(graphs.flatMap(({ nodes }) => nodes.map(({ name }) => name)))
  const counts = new Map<string, number>()
  const seen = new Set([''])
  let changed = 0
  for (const { nodes } of graphs) {
    for (const node of nodes) {
      const { name } = node
      if (!seen.has(name)) {
        seen.add(name)
        continue
      }
      const base = name === '' ? node.opType : name
      let count = counts.get(base) ?? 0
      do count += 1
      while (taken.has(`${base}_${count}`))
      counts.set(base, count)
      node.name = `${base}_${count}`
      changed += 1
    }
  }
  return changed
}

function renameHiding(graph: Graph, around: ReadonlySet<string>, names: FreshNames): number {
  let changed = 0
  for (const name of definedNames(graph)) {
    if (name === '' || !around.has(name)) continue
    graph.rename(name, names.take(name))
    changed += 1
  }
  const inside = [...graph.nodes].flatMap((node) => (hasSubgraphs(node) ? node.subgraphs : []))
  if (inside.length === 0) return changed
  const all = new Set([...around, ...definedNames(graph)])
  return inside.reduce((sum, each) => sum + renameHiding(each, all, names), changed)
}
