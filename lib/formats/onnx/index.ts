/** The ONNX format for the registry. */

import type { Format } from '../format.js'
import { check } from './check.js'
import { detect } from './detect.js'
import { planCopy } from './external/copy_external.js'
import { OnnxModel } from './model/model.js'
import { planModel } from './plan_model.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { type OnnxWriteOptions, plan } from './write.js'

export type { ExternalOptions } from './external/external_options.js'
export type { NewFunction } from './model/function_edits.js'
export { Graph, type GraphConstructor } from './model/graph.js'
export {
  type DeviceConfiguration,
  type NewModel,
  OnnxModel,
  type PlacedTensor,
  type TrainingInfo,
} from './model/model.js'
export { ModelFunction } from './model/model_function.js'
export type {
  Attribute,
  AttributeType,
  AttributeValue,
  Dimension,
  NewAttribute,
  NewNode,
  Node,
  Removed,
  Use,
  Value,
  ValueInfo,
  ValueType,
} from './model/types.js'
export { FILE_MESSAGES, type FileMessage } from './protobuf/message_kind.js'
export type { TensorProtoObject } from './protobuf/message_object.js'
export { ATTRIBUTE_TYPES } from './schema.js'
export { type OnnxEnd, type OnnxSummary, type OnnxValues, summariseOnnx } from './summary.js'
export {
  decodeTensorProto,
  type EncodeTensorProtoOptions,
  encodeTensorProto,
} from './tensor/tensor_message.js'
export type { OnnxWriteOptions } from './write.js'

export const onnx: Format<OnnxWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.onnx', '.pb'],
  writeOptions: ['message', 'external'],
  detect,
  read,
  check,
  plan,
  planCopy,
  isModel: (content) => content instanceof OnnxModel,
  isUnchanged: (model) => !(model as OnnxModel).isChanged,
  weightsOf: (model) => [...(model as OnnxModel).graph.initializers()],
  planModel: (model, options, target) => planModel(model as OnnxModel, options, target),
}
