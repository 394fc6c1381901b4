/**
 * ONNX models as objects to read and edit: graphs, nodes, values, attributes, functions, external data.
 *
 * @packageDocumentation
 */
export {
  ATTRIBUTE_TYPES,
  type Attribute,
  type AttributeType,
  type AttributeValue,
  type DeviceConfiguration,
  type Dimension,
  decodeTensorProto,
  type EncodeTensorProtoOptions,
  type ExternalOptions,
  encodeTensorProto,
  type FileMessage,
  Graph,
  type GraphConstructor,
  ModelFunction,
  type NewAttribute,
  type NewFunction,
  type NewModel,
  type NewNode,
  type Node,
  type OnnxEnd,
  OnnxModel,
  type OnnxSummary,
  type OnnxValues,
  type OnnxWriteOptions,
  type PlacedTensor,
  type Removed,
  summarizeOnnx,
  type TensorProtoObject,
  type TrainingInfo,
  type Use,
  type Value,
  type ValueInfo,
  type ValueType,
} from './formats/onnx/index.js'
export {
  type ExternalizeOptions,
  externalize,
  type InternalizeOptions,
  internalize,
} from './pipeline/external.js'
