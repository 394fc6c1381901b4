/** Changes attributes of a converted node that hold values of a float type or name it. Float parameters stay. */

import type { Dtype } from '../../dtype/dtypes.js'
import { ownEntry } from '../../own_entry.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import type { ReadNode } from '../onnx/document/read_node.js'
import type { Attribute, Node } from '../onnx/document/types.js'

/** A float type and the one that replaces it. */
export interface AttributeChange {
  readonly from: Dtype
  readonly to: Dtype
  /** `data_type` of ONNX. */
  readonly fromCode: number
  readonly toCode: number
  readonly convert: (tensor: DenseTensor) => DenseTensor
}

/** Attributes that name an element type, by operator; `isWritten` where float32 is what an absent attribute means. */
const TYPE_ATTRIBUTES: Readonly<Record<string, { readonly name: string; readonly isWritten: boolean }>> = {
  EyeLike: { name: 'dtype', isWritten: false },
  RandomNormalLike: { name: 'dtype', isWritten: false },
  RandomUniformLike: { name: 'dtype', isWritten: false },
  Bernoulli: { name: 'dtype', isWritten: false },
  Multinomial: { name: 'dtype', isWritten: false },
  DequantizeLinear: { name: 'output_dtype', isWritten: false },
  RandomNormal: { name: 'dtype', isWritten: true },
  RandomUniform: { name: 'dtype', isWritten: true },
  SequenceEmpty: { name: 'dtype', isWritten: true },
  HannWindow: { name: 'output_datatype', isWritten: true },
  HammingWindow: { name: 'output_datatype', isWritten: true },
  BlackmanWindow: { name: 'output_datatype', isWritten: true },
  MelWeightMatrix: { name: 'output_datatype', isWritten: true },
}

export function convertAttributes({ node, opType, hasAttributes }: ReadNode, change: AttributeChange): void {
  const isFloat32 = change.from === 'float32'
  if (opType === 'Constant' && isFloat32) setConstant(node)
  if (hasAttributes) for (const attribute of node.attributes) convertTensors(attribute, change)
  if (opType === 'ConstantOfShape' && isFloat32 && !node.attribute('value')) {
    node.setAttribute('value', { type: 'TENSOR', value: tensorOf([0], { dtype: change.to }) })
  }
  const named = ownEntry(TYPE_ATTRIBUTES, opType)
  if (!named) return
  const given = node.attribute(named.name)?.value
  if (given === undefined ? named.isWritten && isFloat32 : Number(given) === change.fromCode) {
    node.setAttribute(named.name, { type: 'INT', value: change.toCode })
  }
}

/** Numbers of a Constant become a tensor, which has an element type. */
function setConstant(node: Node): void {
  const [attribute] = node.attributes
  if (attribute?.type !== 'FLOAT' && attribute?.type !== 'FLOATS') return
  const values = attribute.value as number | readonly number[]
  node.removeAttribute(attribute.name)
  node.setAttribute('value', { type: 'TENSOR', value: tensorOf(values, { dtype: 'float32' }) })
}

function convertTensors(attribute: Attribute, { from, convert: changed }: AttributeChange): void {
  const isFloat = (tensor: Tensor): tensor is DenseTensor => tensor.kind === 'dense' && tensor.dtype === from
  const convert = (tensor: Tensor): Tensor => (isFloat(tensor) ? changed(tensor) : tensor)
  if (!attribute.tensors.some(isFloat)) return
  if (attribute.type === 'TENSOR') attribute.set({ type: 'TENSOR', value: convert(attribute.tensors[0]!) })
  if (attribute.type === 'TENSORS') attribute.set({ type: 'TENSORS', value: attribute.tensors.map(convert) })
}
