/** Entry of the ONNX folder: everything that other folders import. Loaded when an ONNX file is read or written. */

import type { ModelFormat, WritePlan, WriteTarget } from '../../formats/format.js'
import { planCopy } from '../../formats/onnx/external/copy.js'
import { namingModels, replacedData } from '../../formats/onnx/external/named_files.js'
import { DEFAULT_LIMITS, type MessageName } from '../../formats/onnx/schema.js'
import { DecodedSource, decodeText } from '../../formats/onnx/text/decoded_source.js'
import { type OnnxWriteOptions, plan } from '../../formats/onnx/write.js'
import { check } from './check/check.js'
import { describeOnnx } from './document/description.js'
import type { OnnxModel } from './document/model.js'
import { planModel } from './document/plan_model.js'
import { read } from './document/read.js'
import { planEncoded } from './text/plan_encoded.js'

export type { ExternalOptions } from '../../formats/onnx/external/options.js'
export { FILE_MESSAGES, type FileMessage } from '../../formats/onnx/protobuf/message_kind.js'
export type { TensorProtoObject } from '../../formats/onnx/protobuf/message_object.js'
export { ATTRIBUTE_TYPES } from '../../formats/onnx/schema.js'
export {
  decodeTensorProto,
  type EncodeTensorProtoOptions,
  encodeTensorProto,
} from '../../formats/onnx/tensor/tensor_proto.js'
export type { OnnxEncoding } from '../../formats/onnx/text/text_kind.js'
export type { OnnxWriteOptions } from '../../formats/onnx/write.js'
export { extract } from './compose/extract.js'
export { mergeModels } from './compose/merge.js'
export type { MergeOptions } from './compose/merge_options.js'
export { withBodiesOf } from './compose/open_bodies.js'
export { expandOutputDims } from './compose/output_dims.js'
export { addPrefix, type PrefixOptions } from './compose/prefix.js'
export type { DeviceConfiguration } from './document/device_configuration.js'
export { Graph, type GraphConstructor } from './document/graph.js'
export {
  type NewModel,
  OnnxModel,
  type PlacedTensor,
  type TrainingInfo,
} from './document/model.js'
export { ModelFunction } from './document/model_function.js'
export { type OnnxEnd, type OnnxSummary, type OnnxValues, summarizeOnnx } from './document/summary.js'
export type {
  Attribute,
  AttributeType,
  AttributeValue,
  Dimension,
  NewAttribute,
  NewAttributeReference,
  NewAttributeValue,
  NewNode,
  Node,
  NodeDeviceConfiguration,
  ShardedDimension,
  Sharding,
  Use,
  Value,
  ValueInfo,
  ValueType,
} from './document/types.js'
export { addFunction, type NewFunction, removeFunction } from './edit/function_edits.js'
export { initializersToConstants, stripWeights } from './edit/graph_passes.js'
export { type NarrowedInts, type NarrowIntsOptions, narrowInts } from './edit/narrow_ints.js'
export { type InferredShapes, inferShapes } from './infer/declare_types.js'
export { inferTypes, type TypeConflict } from './infer/infer.js'
export {
  type InputShapeChange,
  type InputShapeOptions,
  setBatch,
  setInputShape,
} from './infer/input_shapes.js'
export { type IntegerInput, integerInputs } from './infer/integer_inputs.js'
export { randomValues } from './infer/random_values.js'
export { convertOpset, type OpsetConversion } from './opset/convert.js'
export { type PrintOptions, printModel } from './text/print.js'

export const onnx: ModelFormat<OnnxModel, OnnxWriteOptions> = {
  read,
  check,
  decode: (source, { message, limits }) =>
    decodeText(source, (message ?? 'ModelProto') as MessageName, limits.depth ?? DEFAULT_LIMITS.depth),
  plan: async (tensors, options, target) =>
    withReplaced(await planEncoded(() => plan(tensors, options, target), options, target), target, options),
  planCopy: async (source, siblings, target) => {
    const copy = await planCopy(source, siblings, target)
    return copy && withReplaced(copy, target)
  },
  naming: namingModels,
  isUnchanged: (model) => !model.isChanged && !(model.file.source instanceof DecodedSource),
  describe: describeOnnx,
  weightsOf: (model) => [...model.graph.initializers()],
  nodesOf: (model) => model.graph.nodes.length,
  planModel: async (model, options, target) =>
    withReplaced(
      await planEncoded(() => planModel(model, options, target), options, target),
      target,
      options,
    ),
}

async function withReplaced(
  plan: WritePlan,
  { path }: WriteTarget = {},
  { external }: OnnxWriteOptions = {},
): Promise<WritePlan> {
  if (path === undefined) return plan
  const location = external === false ? undefined : external?.location
  const kept = new Set((plan.siblings ?? []).map(({ name }) => name))
  const replaced = (await replacedData(path, location)).filter(({ name }) => !kept.has(name))
  return { ...plan, replaced }
}
