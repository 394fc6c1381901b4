/**
 * Tengine's tmfile models as objects to read, edit and quantize.
 *
 * @packageDocumentation
 */
export {
  type KnownNode,
  type OperatorName,
  type OperatorParams,
  type ShapeChange,
  type TensorLinks,
  type TmfileAttribute,
  type TmfileBuffer,
  type TmfileDevice,
  type TmfileDtype,
  type TmfileGraph,
  TmfileModel,
  type TmfileNode,
  type TmfileNodeDescription,
  type TmfileQuantization,
  type TmfileQuantizedDtype,
  type TmfileQuantizeOptions,
  type TmfileTensor,
  type TmfileWriteOptions,
  type UnknownNode,
  type WriteMode,
} from './formats/tmfile/index.js'
