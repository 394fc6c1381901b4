/** The tensors of a file that have data, each made when someone asks for it. */
import { DeferredSource } from '../../bytes/deferred.js'
import type { ByteSource } from '../../bytes/source.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { packedByteLength } from '../../dtype/packed_codes.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorList } from '../format.js'
import { EntryTensors } from '../tensor_list.js'
import { denseBytes } from './sparsity.js'
import { TfliteStrings } from './strings.js'
import type { NamedTensor } from './walk.js'

export function tfliteTensors(source: ByteSource, tensors: readonly NamedTensor[]): TensorList<Tensor> {
  return new EntryTensors(
    tensors,
    ({ name }) => name,
    (tensor) => makeTensor(source, tensor),
  )
}

function makeTensor(source: ByteSource, tensor: NamedTensor): Tensor {
  const { type, shape, name, start, end, quantization, sparsity } = tensor
  const dtype = type.dtype!
  if (dtype === 'string') return new TfliteStrings({ source, start, end }, shape, name)
  const about = { dtype, shape, name, ...(quantization && { quantization }) }
  if (!sparsity) return new StoredTensor({ ...about, source, start })
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const size = { elementBytes: DTYPES[dtype].bits / 8, byteLength: packedByteLength(dtype, elements) }
  const dense = new DeferredSource({
    byteLength: size.byteLength,
    label: `tensor "${name}"`,
    load: () => denseBytes(source, sparsity, { start, end }, size),
  })
  return new StoredTensor({ ...about, source: dense, start: 0 })
}
