/** Changes attributes of a converted node that hold float32 values or name the type float32. Float parameters stay. */

import { ownEntry } from '../../../own_entry.js'
import { tensor as tensorOf } from '../../../tensor/from_values.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import type { Attribute, Node } from '../document/types.js'
import { type Clip, type HalfDtype, halfTensor } from './half_values.js'

/** The type that replaces float32. */
export interface HalfCodes {
  readonly dtype: HalfDtype
  readonly clip: Clip
  /** `data_type` of ONNX. */
  readonly code: number
}

/** `data_type` of float32. */
const FLOAT = 1

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

export async function convertAttributes(node: Node, half: HalfCodes): Promise<void> {
  if (node.opType === 'Constant') setConstant(node)
  for (const attribute of node.attributes) convertTensors(attribute, half)
  if (node.opType === 'ConstantOfShape' && !node.attribute('value')) {
    node.setAttribute('value', { type: 'TENSOR', value: tensorOf([0], { dtype: half.dtype }) })
  }
  const named = ownEntry(TYPE_ATTRIBUTES, node.opType)
  if (!named) return
  const given = node.attribute(named.name)?.value
  if (given === undefined ? named.isWritten : Number(given) === FLOAT) {
    node.setAttribute(named.name, { type: 'INT', value: half.code })
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

function convertTensors(attribute: Attribute, half: HalfCodes): void {
  const convert = (tensor: Tensor): Tensor =>
    isFloat(tensor) ? halfTensor(tensor, half.dtype, half.clip) : tensor
  if (!attribute.tensors.some(isFloat)) return
  if (attribute.type === 'TENSOR') attribute.set({ type: 'TENSOR', value: convert(attribute.tensors[0]!) })
  if (attribute.type === 'TENSORS') attribute.set({ type: 'TENSORS', value: attribute.tensors.map(convert) })
}

function isFloat(tensor: Tensor): tensor is DenseTensor {
  return tensor.kind === 'dense' && tensor.dtype === 'float32'
}
