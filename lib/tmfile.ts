/**
 * Tengine's tmfile models as objects to read, edit and quantize.
 *
 * @packageDocumentation
 */
export {
  type ConvertedToOnnx,
  type TmfileToOnnxOptions,
  type TmfileToOnnxReport,
  tmfileToOnnx,
} from './bridges/onnx_tmfile/to_onnx/index.js'
export {
  type ConvertedToTmfile,
  type FusedNode,
  type OnnxToTmfileOptions,
  type OnnxToTmfileReport,
  onnxToTmfile,
  type ReplacedNode,
} from './bridges/onnx_tmfile/to_tmfile/index.js'
export {
  type DumpedBuffer,
  type DumpedDevice,
  type DumpedNode,
  type DumpedTensor,
  dumpTmfile,
  type KnownNode,
  NODE_FIELDS,
  type OperatorName,
  type OperatorParams,
  type ShapeChange,
  summarizeTmfile,
  type TensorLinks,
  type TmfileAttribute,
  type TmfileBuffer,
  type TmfileDevice,
  type TmfileDtype,
  type TmfileDump,
  type TmfileEndpoint,
  type TmfileGraph,
  TmfileModel,
  type TmfileNode,
  type TmfileNodeDescription,
  type TmfileQuantization,
  type TmfileQuantizedDtype,
  type TmfileQuantizeOptions,
  type TmfileSummary,
  type TmfileTensor,
  type TmfileWriteOptions,
  type UnknownNode,
  type WriteMode,
} from './models/tmfile/index.js'
