/** The tensors of a checkpoint, each made when someone asks for it. */
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorList } from '../format.js'
import { EntryTensors } from '../tensor_list.js'
import { ALIAS_KEY } from '../tensor_metadata.js'
import type { NamedTensor } from './checkpoint.js'
import { makeMeta, makeStrided } from './make_tensor.js'
import { makeSparse } from './sparse.js'

export function checkpointTensors(tensors: readonly NamedTensor[]): TensorList<Tensor> {
  return new EntryTensors(tensors, ({ name }) => name, makeTensor)
}

export function makeTensor({ file, form, aliasOf, name, requiresGrad, quantization }: NamedTensor): Tensor {
  const about = {
    ...{ name, requiresGrad },
    ...(aliasOf !== undefined && { metadata: [[ALIAS_KEY, aliasOf] as const] }),
    ...(quantization && { quantization }),
  }
  if (form.kind === 'strided') return makeStrided(file, form, about)
  return form.kind === 'meta' ? makeMeta(form, about) : makeSparse(file, form, about)
}
