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
export { FILE_MESSAGES, type FileMessage } from './protobuf/message_kind.js'
export type { TensorProtoObject } from './protobuf/message_object.js'
export { decodeTensor, type EncodeTensorOptions, encodeTensor } from './tensor/tensor_message.js'
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
