/** A model that only stores tensors: each is the output of a Const node. It cannot be run. */
import { TileworkError } from '../../../errors.js'
import { TMFILE_DTYPES } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type { TmfileBuffer, TmfileDtype, TmfileTensor } from '../../../formats/tmfile/types.js'
import { uniqueNames } from '../../../formats/write_checks.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import { TmfileModel } from './model.js'
import { producerNode } from './operator_node.js'
import { quantizationOf } from './tensors.js'

/** @throws TileworkError ERR_UNSUPPORTED for a tensor that a tmfile cannot hold; ERR_NO_DATA */
export function modelFromTensors(tensors: readonly Tensor[]): TmfileModel {
  const names = uniqueNames(
    tensors.map(({ name }) => name),
    'tensor_',
  )
  const constants = tensors.map((tensor, index) => constantOf(storable(tensor), names[index]!))
  const nodes = constants.map(({ tensor }) => producerNode('Const', tensor))
  return new TmfileModel({
    nodes,
    tensors: constants.map(({ tensor }) => tensor),
    buffers: constants.map(({ buffer }) => buffer),
    outputs: nodes,
  })
}

function storable(tensor: Tensor): DenseTensor {
  const refuse = (reason: string): never => {
    throw new TileworkError('ERR_UNSUPPORTED', `Tensor "${tensor.name}" ${reason}.`, { format: FORMAT_NAME })
  }
  if (tensor.kind !== 'dense') return refuse(`is ${tensor.kind}; a tmfile holds only dense tensors`)
  if (!TMFILE_DTYPES.includes(tensor.dtype)) {
    return refuse(`is ${tensor.dtype}; a tmfile holds ${TMFILE_DTYPES.join(', ')}`)
  }
  if (!tensor.hasData) {
    const message = `Tensor "${tensor.name}" has no data in its file.`
    throw new TileworkError('ERR_NO_DATA', message, { format: FORMAT_NAME })
  }
  return tensor
}

function constantOf(
  tensor: DenseTensor,
  name: string,
): { readonly tensor: TmfileTensor; readonly buffer: TmfileBuffer } {
  const buffer: TmfileBuffer = { byteLength: tensor.storage.byteLength, data: { tensor } }
  const stored: TmfileTensor = {
    name,
    dtype: tensor.dtype as TmfileDtype,
    shape: [...storedShape(tensor)],
    role: 'constant',
    layout: 0,
    quantization: quantizationOf(tensor),
    buffer,
  }
  return { tensor: stored, buffer }
}
