/** Passes over initializers: Constant nodes become initializers, those of subgraphs move to the main graph, equal ones are kept once. */

import { FIRST_IR_WITH_FREE_INITIALIZERS, INITIALIZER_LISTS } from '../../formats/onnx/schema.js'
import { FreshNames } from '../onnx/document/fresh_names.js'
import type { OnnxModel } from '../onnx/document/model.js'
import type { Graph, InitializerField } from '../onnx/document/types.js'
import {
  constantsToInitializers,
  deduplicateInitializers,
  definedNames,
  namesToKeep,
  renameUses,
} from '../onnx/edit/graph_passes.js'
import { removeValueInfo } from '../onnx/edit/value_info.js'

/** Constants that are outputs of their graph stay nodes. */
export function liftConstants(model: OnnxModel): number {
  if (Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS) return 0
  return constantsToInitializers(model.graph, (graph, name) => graph.outputNames.has(name))
}

/** Names that another graph has, too, are changed. */
export function liftInitializers(model: OnnxModel): number {
  if (Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS) return 0
  const graphs = [...model.graph.subgraphs()]
  const lifted = graphs
    .map((graph) => ({ graph, fields: liftable(graph) }))
    .filter(({ fields }) => fields.length > 0)
  if (lifted.length === 0) return 0
  const names = new FreshNames(model)
  const counts = countDefinitions([model.graph, ...graphs])
  for (const { graph, fields } of lifted) {
    const freshNames = new Map<string, string>()
    for (const { name } of fields) if (counts.get(name)! > 1) freshNames.set(name, names.take(name))
    renameUses(graph, freshNames)
    const moved = new Set(fields.map(({ field }) => field))
    for (const list of INITIALIZER_LISTS) graph.message.filter(list, (field) => !moved.has(field))
    for (const each of fields) adopt(model.graph, each, freshNames.get(each.name) ?? each.name)
    removeValueInfo(graph, new Set(fields.map(({ name }) => name)))
  }
  return lifted.reduce((sum, { fields }) => sum + fields.length, 0)
}

function liftable(graph: Graph): InitializerField[] {
  const fixed = namesToKeep(graph)
  return INITIALIZER_LISTS.flatMap((list) => graph.initializerFields(list)).filter(
    ({ name }) => name !== '' && !fixed.has(name),
  )
}

/** Number of graphs that define each name. */
function countDefinitions(graphs: readonly Graph[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const graph of graphs)
    for (const name of definedNames(graph)) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Appends an initializer of another graph; in a file that is its bytes. */
function adopt({ message }: Graph, { list, field }: InitializerField, name: string): void {
  if (field.kind === 'tensor') {
    message.putTensor(list, field.tensor, name)
    return
  }
  const copy = message.adopt(list, field)
  const named = list === 'initializer' ? copy : copy.message('values')
  if (named?.text('name') !== name) named?.setText('name', name)
}

export async function deduplicate(model: OnnxModel): Promise<number> {
  let count = 0
  for (const graph of [model.graph, ...model.graph.subgraphs()]) count += await deduplicateInitializers(graph)
  return count
}
