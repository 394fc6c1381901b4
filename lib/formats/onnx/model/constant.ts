/** Nodes Constant: what they give is known without running anything. */
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { Tensor } from '../../../tensor/tensor.js'
import type { Attribute } from './attribute.js'
import type { Node } from './node.js'

/** The value of a Constant; undefined for other nodes, strings by themselves, and attributes of a function. */
export function constantOf(node: Node): Tensor | undefined {
  const [output, ...others] = node.outputs
  const isOwn = node.domain === '' || node.domain === 'ai.onnx'
  const [attribute] = node.attributes
  if (node.opType !== 'Constant' || !isOwn || !attribute || !output || others.length > 0) return undefined
  return attribute.refName === '' ? constantValue(attribute) : undefined
}

function constantValue(attribute: Attribute): Tensor | undefined {
  const { name, tensors } = attribute
  if (name === 'value' || name === 'sparse_value') return tensors[0]?.hasData ? tensors[0] : undefined
  const value = attribute.value as number & readonly number[]
  if (name === 'value_float' || name === 'value_floats') return tensorOf(value, { dtype: 'float32' })
  if (name === 'value_int' || name === 'value_ints') return tensorOf(value, { dtype: 'int64' })
  return undefined
}
