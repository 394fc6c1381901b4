/**
 * ONNX models as objects to read and edit: graphs, nodes, values, attributes, functions, external data.
 *
 * @packageDocumentation
 */
export {
  decodeTensor,
  type EncodeTensorOptions,
  type ExternalOptions,
  encodeTensor,
  type FileMessage,
  type OnnxWriteOptions,
  type TensorProtoObject,
} from './formats/onnx/index.js'
export {
  ATTRIBUTE_TYPES,
  Attribute,
  type AttributeType,
  type AttributeValue,
  type NewAttribute,
} from './formats/onnx/model/attribute.js'
export type { NewFunction } from './formats/onnx/model/function_edits.js'
export { Graph, type NewNode, type ValueInfo } from './formats/onnx/model/graph.js'
export type { Use } from './formats/onnx/model/graph_names.js'
export type { Removed } from './formats/onnx/model/graph_passes.js'
export {
  type DeviceConfiguration,
  type NewModel,
  OnnxModel,
  type PlacedTensor,
} from './formats/onnx/model/model.js'
export { ModelFunction } from './formats/onnx/model/model_function.js'
export { Node } from './formats/onnx/model/node.js'
export type { TrainingInfo } from './formats/onnx/model/training.js'
export { Value } from './formats/onnx/model/value.js'
export type { Dimension, ValueType } from './formats/onnx/model/value_type.js'
export {
  type ExternalizeOptions,
  externalize,
  type InternalizeOptions,
  internalize,
} from './pipeline/external.js'
