/** GGUF, as it is loaded when a file of it is read or written. */
import type { AnyTensor } from '../../tensor/tensor.js'
import type { ModelFormat } from '../format.js'
import { check } from './check.js'
import { describeGguf } from './description.js'
import type { GgufModel } from './model.js'
import { read } from './read.js'
import { type GgufWriteOptions, plan, planModel } from './write.js'

export type { GgufMetadata } from './metadata.js'
export type { GgufArray, GgufNumbers, GgufValue, GgufValueInput } from './metadata_values.js'
export type { GgufModel } from './model.js'
export type { GgufValueType } from './schema.js'
export type { GgufOptions, GgufWriteOptions } from './write.js'

export const gguf: ModelFormat<GgufModel, GgufWriteOptions, AnyTensor> = {
  read,
  check,
  plan,
  planModel,
  isUnchanged: ({ metadata, files }) => metadata.changes === 0 && files.length === 1,
  weightsOf: ({ tensors }) => tensors,
  nodesOf: () => 0,
  describe: describeGguf,
}
