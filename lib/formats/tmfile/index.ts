/** tmfile, as it is loaded when a file of it is read or written. */
import type { ModelFormat } from '../format.js'
import { check } from './check.js'
import type { TmfileModel } from './model/model.js'
import { modelFromTensors } from './model/model_from_tensors.js'
import { constantsOf } from './model/tensors.js'
import { read } from './read.js'
import { planModel, type TmfileWriteOptions } from './write.js'

export {
  type DumpedBuffer,
  type DumpedDevice,
  type DumpedNode,
  type DumpedTensor,
  dumpTmfile,
  type TmfileDump,
} from './dump.js'
export { inferShapes } from './infer/infer_shapes.js'
export {
  axisOf,
  permuteOrder,
  reducedAxes,
  type SlicedRange,
  slicedRanges,
  splitSizes,
} from './infer/movement.js'
export { nchwParams, toNchw, toNhwc } from './infer/nchw.js'
export { COUNT_PADDING, isGlobalPooling } from './infer/windows.js'
export { NODE_FIELDS, type TmfileNodeDescription } from './model/create_node.js'
export type { ShapeChange } from './model/edit_shapes.js'
export { checkModel as checkTmfileModel, TmfileModel } from './model/model.js'
export type { TmfileQuantizedDtype, TmfileQuantizeOptions } from './model/quantize.js'
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
export { summarizeTmfile, type TmfileEndpoint, type TmfileSummary } from './summary.js'
export type { TmfileWriteOptions, WriteMode } from './write.js'

/** Operators that give a constant or an input a place among the nodes. */
const WITHOUT_INPUTS: ReadonlySet<string> = new Set(['Const', 'InputOp'])

export const tmfile: ModelFormat<TmfileModel, TmfileWriteOptions> = {
  read,
  check,
  plan: (tensors, options) => planModel(modelFromTensors([...tensors]), options),
  weightsOf: constantsOf,
  nodesOf: (model) => model.graph.nodes.filter(({ operator }) => !WITHOUT_INPUTS.has(operator)).length,
  planModel,
}
