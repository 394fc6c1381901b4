/** Writes inferred types into a model. */
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import type { Graph, ValueType } from '../document/types.js'
import { valueTypeText } from '../document/value_type.js'
import { inferModel, type TypeConflict } from './infer.js'

/** What `inferShapes` found. */
export interface InferredShapes {
  /** Number of values, of the main graph and its subgraphs, whose declared type is new or has more known extents. */
  readonly changed: number
  /** Declared types that contradict their node; they stay as they are. */
  readonly conflicts: readonly TypeConflict[]
}

/**
 * Declares the types and shapes that follow from inputs, initializers and operators: of intermediate values in
 * `graph.valueInfo`, of outputs where the graph leaves them open; in subgraphs too.
 */
export function inferShapes(model: OnnxModel): InferredShapes {
  checkModel(model, 'inferShapes')
  const { types, conflicts } = inferModel(model)
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
