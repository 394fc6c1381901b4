/** The constants of an IR as tensors, each made when someone asks for it. */
import type { ByteSource } from '../../bytes/source.js'
import { AbsentTensor } from '../../tensor/absent.js'
import { NO_METADATA } from '../../tensor/base_tensor.js'
import { StoredTensor } from '../../tensor/dense.js'
import { sizeOf } from '../../tensor/shape.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { TensorList } from '../format.js'
import { EntryTensors } from '../tensor_list.js'
import type { Constant } from './constant.js'
import type { Weights } from './constants.js'
import { UnpackedSource } from './packed.js'
import { TYPE_KEY } from './schema.js'
import { OpenvinoStrings } from './strings.js'

export function openvinoTensors(constants: readonly Constant[], weights: Weights): TensorList<Tensor> {
  return new EntryTensors(
    constants,
    ({ key }) => key,
    (constant) => makeTensor(constant, weights),
  )
}

function makeTensor(constant: Constant, weights: Weights): Tensor {
  const { key: name, type, typeName, shape } = constant
  const { dtype, packed } = type
  const metadata = packed ? new Map([[TYPE_KEY, typeName]]) : NO_METADATA
  const about = { name, dtype, shape, metadata }
  if ('missing' in weights) return new AbsentTensor({ ...about, reason: weights.missing })
  const { offset: start, size } = constant
  const { source } = weights
  if (dtype === 'string') return new OpenvinoStrings({ source, start, end: start + size }, about)
  return new StoredTensor({ ...about, ...storage(constant, source, packed) })
}

function storage(
  { offset, shape }: Constant,
  source: ByteSource,
  packed: Constant['type']['packed'],
): { readonly source: ByteSource; readonly start: number } {
  return packed
    ? { source: new UnpackedSource(source, offset, packed, sizeOf(shape)), start: 0 }
    : { source, start: offset }
}
