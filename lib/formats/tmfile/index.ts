/** The tmfile format for the registry. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { detect } from './detect.js'
import { TmfileModel } from './model/model.js'
import { modelOfTensors } from './model/model_from_tensors.js'
import { constantsOf } from './model/tensors.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { planModel, type TmfileWriteOptions } from './write.js'

export { dumpModel, type TmfileDump } from './dump.js'
export { NODE_FIELDS, type TmfileNodeDescription } from './model/create_node.js'
export type { ShapeChange } from './model/edit_shapes.js'
export { TmfileModel } from './model/model.js'
export type { TmfileCodes, TmfileQuantizeOptions } from './model/quantize.js'
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
} from './model/types.js'
export type { OperatorName, OperatorParams } from './operators.js'
export { summarise, type TmfileSummary } from './summary.js'
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
