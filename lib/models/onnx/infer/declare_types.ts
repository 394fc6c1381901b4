/** Writes inferred types into a model. */
import type { Graph, ValueType } from '../document/types.js'
import { valueTypeText } from '../document/value_type.js'
import type { InferableModel, TypeConflict } from './infer.js'

/** What `OnnxModel.inferShapes` found. */
export interface InferredShapes {
  /** Number of values, of the main graph and its subgraphs, whose declared type is new or has more known extents. */
  readonly changed: number
  /** Declared types that contradict their node; they stay as they are. */
  readonly conflicts: readonly TypeConflict[]
}

/** See `OnnxModel.inferShapes`. */
export function declareTypes(model: InferableModel): InferredShapes {
  const { types, conflicts } = model.infer()
  let changed = 0
  for (const [graph, found] of types) {
    const { inputNames, outputNames } = graph
    for (const [name, type] of found) {
      // Types of initializers are those of their tensors.
      const isComputed = !inputNames.has(name) && !graph.hasInitializer(name)
      if ((isComputed || outputNames.has(name)) && declareType(graph, name, type)) changed += 1
    }
  }
  return { changed, conflicts }
}

/** @returns false where the graph declares the same type */
export function declareType(graph: Graph, name: string, type: ValueType): boolean {
  const declared = graph.typeOf(name)
  if (declared.kind === type.kind && valueTypeText(declared) === valueTypeText(type)) return false
  graph.setType(name, type)
  return true
}
