/** Nodes that stay float32 because a half type does not represent their constant parameters. */
import type { OnnxModel } from '../onnx/document/model.js'
import { mainScope, type Scope } from '../onnx/document/scope.js'
import type { Node } from '../onnx/document/types.js'
import { FloatReader } from './float_window.js'
import { DEFAULT_CLIP, type HalfDtype } from './half_values.js'

const LIMITED: ReadonlySet<string> = new Set(['QuantizeLinear', 'DequantizeLinear', 'BatchNormalization'])

/** The least float16 that has all its bits, and the greatest. */
const LEAST_NORMAL = 2 ** -14
const GREATEST = 65504

/**
 * The reason of each such node. The error of the scale of a quantized value is multiplied by every code, so it must have all its bits.
 * A variance that is clipped changes every value of its channel; masks, which are clipped too, stay masks.
 */
export async function unfitParameters(
  model: OnnxModel,
  dtype: HalfDtype,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<Node, string>> {
  const { max } = DEFAULT_CLIP[dtype]
  const isWithin = (number: number): boolean => !(Math.abs(number) > max && Number.isFinite(number))
  const nodes = new Map<Node, string>()
  for (const scope of mainScope(model).all()) {
    for (const node of scope.graph.nodes) {
      // Read once, as most nodes are none of these.
      const { opType } = node
      if (!LIMITED.has(opType) || node.domain !== '') continue
      if (opType !== 'BatchNormalization') {
        if (!(await everyNumber(scope, node.inputs[1], isExact, signal))) {
          nodes.set(node, 'float16 represents a scale of it with few bits, or not at all')
        }
      } else {
        for (const name of node.inputs.slice(1)) {
          if (await everyNumber(scope, name, isWithin, signal)) continue
          nodes.set(node, `${name} has numbers beyond ${max}, which ${dtype} does not represent`)
          break
        }
      }
    }
  }
  return nodes
}

function isExact(scale: number): boolean {
  const magnitude = Math.abs(scale)
  return scale === 0 || (magnitude >= LEAST_NORMAL && magnitude <= GREATEST)
}

/** True also for a value that is neither a float32 weight nor the value of a Constant node. */
async function everyNumber(
  scope: Scope,
  name = '',
  fits: (number: number) => boolean,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const tensor = scope.constantTensor(name)
  if (tensor?.dtype !== 'float32' || !tensor.hasData) return true
  let all = true
  await new FloatReader(tensor).each(signal, (numbers) => {
    all &&= numbers.every(fits)
  })
  return all
}
