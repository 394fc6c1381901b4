/** Entry of the ONNX folder: everything that other folders import. Loaded when an ONNX file is read or written. */

import type { ModelFormat, WritePlan, WriteTarget } from '../format.js'
import { check } from './check_model_file.js'
import { describeOnnx } from './description.js'
import { planCopy } from './external/copy.js'
import { namingModels, replacedData } from './external/named_files.js'
import type { OnnxModel } from './model/model.js'
import { planModel } from './plan_model.js'
import { read } from './read.js'
import { type OnnxWriteOptions, plan } from './write.js'

export { mergeModels } from './compose/merge.js'
export type { MergeOptions } from './compose/merge_options.js'
export type { PrefixOptions } from './compose/prefix.js'
export { quantizeDynamic } from './compress/dynamic.js'
export type { DynamicOperator, QuantizeDynamicOptions } from './compress/dynamic_options.js'
export { toFloat16 } from './compress/float16.js'
export type { Float16Block, ToFloat16Options } from './compress/float16_options.js'
export type { CompressedNode, CompressedTensor, CompressReport } from './compress/report.js'
export { quantizableValues, quantizeStatic } from './compress/static.js'
export type {
  QuantizableOptions,
  QuantizeStaticOptions,
  ValueRange,
  ValueRanges,
} from './compress/static_options.js'
export { type WeightError, type WeightErrorOptions, weightErrors } from './compress/weight_errors.js'
export type { QuantizeWeightsOptions } from './compress/weight_options.js'
export { quantizeWeights } from './compress/weights.js'
export type { ExternalOptions } from './external/options.js'
export type { InferredShapes } from './infer/declare_types.js'
export type { TypeConflict } from './infer/infer.js'
export type { InputShapeChange } from './infer/input_shapes.js'
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
  NewAttributeReference,
  NewAttributeValue,
  NewNode,
  Node,
  Removed,
  Use,
  Value,
  ValueInfo,
  ValueType,
} from './model/types.js'
export type { OpsetConversion } from './opset/convert.js'
export type { OptimizeChange, OptimizeOptions, OptimizePass } from './optimize/optimize.js'
export { type TidyOptions, tidy } from './optimize/tidy.js'
export { FILE_MESSAGES, type FileMessage } from './protobuf/message_kind.js'
export type { TensorProtoObject } from './protobuf/message_object.js'
export { ATTRIBUTE_TYPES } from './schema.js'
export { type OnnxEnd, type OnnxSummary, type OnnxValues, summarizeOnnx } from './summary.js'
export {
  decodeTensorProto,
  type EncodeTensorProtoOptions,
  encodeTensorProto,
} from './tensor/tensor_proto.js'
export { type PrintOptions, printModel } from './text/print.js'
export type { OnnxWriteOptions } from './write.js'

export const onnx: ModelFormat<OnnxModel, OnnxWriteOptions> = {
  read,
  check,
  plan: async (tensors, options, target) =>
    withReplaced(await plan(tensors, options, target), target, options),
  planCopy: async (source, siblings, target) =>
    withReplaced(await planCopy(source, siblings, target), target),
  naming: namingModels,
  isUnchanged: (model) => !model.isChanged,
  describe: describeOnnx,
  weightsOf: (model) => [...model.graph.initializers()],
  nodesOf: (model) => model.graph.nodes.length,
  planModel: async (model, options, target) =>
    withReplaced(await planModel(model, options, target), target, options),
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
