import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import type { Graph } from '../document/types.js'

/**
 * Below IR version 4 every initializer is listed as an input, and is a constant all the same. A pass that replaces initializers
 * would leave inputs without values, so the inputs go first, which needs IR version 4. Inputs that a caller gives stay.
 */
export function freeInitializers(model: { readonly graph: Graph; irVersion: number | bigint }): void {
  if (Number(model.irVersion) >= FIRST_IR_WITH_FREE_INITIALIZERS) return
  const { graph } = model
  for (const name of graph.inputNames) if (graph.hasInitializer(name)) graph.removeInput(name)
  model.irVersion = FIRST_IR_WITH_FREE_INITIALIZERS
}
