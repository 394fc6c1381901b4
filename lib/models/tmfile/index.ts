/** tmfile, as it is loaded when a file of it is read or written. */
import type { ModelFormat } from '../../formats/format.js'
import { check } from '../../formats/tmfile/check.js'
import { describeTmfile } from './document/description.js'
import type { TmfileModel } from './document/model.js'
import { modelFromTensors } from './document/model_from_tensors.js'
import { read } from './document/read.js'
import { constantsOf } from './document/tensors.js'
import { planModel, type TmfileWriteOptions } from './document/write.js'

export type { OperatorName, OperatorParams } from '../../formats/tmfile/operators.js'
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
} from '../../formats/tmfile/types.js'
export {
  type DumpedBuffer,
  type DumpedDevice,
  type DumpedNode,
  type DumpedTensor,
  dumpTmfile,
  type TmfileDump,
} from './document/dump.js'
export { checkModel as checkTmfileModel, TmfileModel } from './document/model.js'
export { summarizeTmfile, type TmfileEndpoint, type TmfileSummary } from './document/summary.js'
export type { TmfileWriteOptions, WriteMode } from './document/write.js'
export { NODE_FIELDS, type TmfileNodeDescription } from './edit/create_node.js'
export type { ShapeChange } from './edit/edit_shapes.js'
export {
  addConstant,
  castWeights,
  createNode,
  cut,
  dequantizeConstant,
  fillWeights,
  insertNode,
  mergeConstants,
  nodesOfMixedTypes,
  quantizeConstant,
  removeNode,
  removeUnused,
  rename,
  replaceAllUses,
  replaceConstant,
  replaceNode,
  setBatch,
  setInputShape,
  setOutputs,
  stripNames,
  stripWeights,
} from './edit/edits.js'
export type { TmfileQuantizedDtype, TmfileQuantizeOptions } from './edit/quantize.js'
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

/** Operators that give a constant or an input a place among the nodes. */
const WITHOUT_INPUTS: ReadonlySet<string> = new Set(['Const', 'InputOp'])

export const tmfile: ModelFormat<TmfileModel, TmfileWriteOptions> = {
  read,
  check,
  plan: (tensors, options) => planModel(modelFromTensors([...tensors]), options),
  describe: describeTmfile,
  weightsOf: constantsOf,
  nodesOf: (model) => model.graph.nodes.filter(({ operator }) => !WITHOUT_INPUTS.has(operator)).length,
  planModel,
}
