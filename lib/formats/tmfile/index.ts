/** The tmfile format for the registry. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { detect } from './detect.js'
import { TmfileModel } from './model.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { modelOfTensors } from './tensor_model.js'
import { constantsOf } from './tensors.js'
import { planModel, type TmfileWriteOptions } from './write.js'

export type { TmfileNodeDescription } from './create_parts.js'
export type { ShapeChange } from './edit_shapes.js'
export type {
  KnownNode,
  TensorLinks,
  TmfileAttribute,
  TmfileBuffer,
  TmfileDevice,
  TmfileDtype,
  TmfileGraph,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
  UnknownNode,
} from './model.js'
export { TmfileModel } from './model.js'
export type { OperatorName, OperatorParams } from './operators.js'
export type { TmfileCodes, TmfileQuantizeOptions } from './quantize.js'
export type { TmfileWriteOptions, WriteMode } from './write.js'

export const tmfile: Format<TmfileWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.tmfile'],
  writeOptions: ['mode'],
  detect,
  read,
  check,
  plan: (tensors, options) => planModel(modelOfTensors(tensors), options),
  isModel: (content) => content instanceof TmfileModel,
  weightsOf: (model) => constantsOf(model as TmfileModel),
  planModel: (model, options) => planModel(model as TmfileModel, options),
}
