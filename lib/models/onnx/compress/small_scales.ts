import type { OnnxModel } from '../document/model.js'
import { isStandard, mainScope } from '../document/scope.js'
import type { Node } from '../document/types.js'
import { FloatReader } from './float_window.js'

/** The least float16 that has all its bits. */
const LEAST_NORMAL = 2 ** -14
const GREATEST = 65504

/**
 * Nodes of QuantizeLinear and DequantizeLinear with constant scales that float16 represents with few bits, or not at all. The
 * error of such a scale is multiplied by every code.
 */
export async function nodesOfSmallScales(
  model: OnnxModel,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<Node>> {
  const nodes = new Set<Node>()
  for (const scope of mainScope(model).all()) {
    for (const node of scope.graph.nodes) {
      if (!isStandard(node, 'QuantizeLinear') && !isStandard(node, 'DequantizeLinear')) continue
      const scale = scope.constant(node.inputs[1] ?? '')?.tensor
      if (scale?.dtype !== 'float32') continue
      await new FloatReader(scale).each(signal, (numbers) => {
        if (!numbers.every(isExact)) nodes.add(node)
      })
    }
  }
  return nodes
}

function isExact(scale: number): boolean {
  const magnitude = Math.abs(scale)
  return scale === 0 || (magnitude >= LEAST_NORMAL && magnitude <= GREATEST)
}
