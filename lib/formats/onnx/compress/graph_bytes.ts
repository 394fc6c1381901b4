/** Bytes of the initializers of a model. */
import type { OnnxModel } from '../model/model.js'
import { valueBytes } from './report.js'

export function initializerBytes(model: OnnxModel): number {
  let sum = 0
  for (const graph of model.graphs()) for (const tensor of graph.initializers()) sum += valueBytes(tensor)
  return sum
}
