/**
 * tilework: tensor files and memory layouts at native speed.
 *
 * @packageDocumentation
 */
export { memoryBudget, setMemoryBudget } from './bytes/memory_budget.js'
export type { RemoteOptions } from './bytes/remote/remote_options.js'
export type { HardLinkPolicy, SymlinkPolicy } from './bytes/sibling.js'
export type { ByteRange, ByteSource } from './bytes/source.js'
export { type Device, type DeviceChoice, devices } from './device/devices.js'
export { onDevice } from './device/on_device.js'
export { type BitOrder, swapBitOrder } from './dtype/bit_order.js'
export type { BlockDtype, BlockDtypeInfo } from './dtype/block_types.js'
export { BLOCK_DTYPES } from './dtype/block_types.js'
export type { CastOptions } from './dtype/cast_step.js'
export {
  DTYPES,
  type Dtype,
  type DtypeAlias,
  type DtypeInfo,
  type DtypeKind,
  type DtypeName,
  type FloatFields,
  type NumberLimits,
  resolveDtype,
  type Specials,
} from './dtype/dtypes.js'
export type { Float16Numbers } from './dtype/float16_array.js'
export {
  ERROR_CODES,
  type ErrorCode,
  type ErrorPlace,
  type Finding,
  type FindingCode,
  type Level,
  TileworkError,
} from './errors.js'
export type { TensorList } from './formats/format.js'
export type { InputLimits as Limits } from './formats/limits.js'
export {
  type ImageProcessor,
  type ImageProcessorOptions,
  imageProcessor,
  type ProcessedImages,
} from './image/image_processor.js'
export { type ImageToTensorOptions, imageToTensor } from './image/image_to_tensor.js'
export {
  fromModelSpace,
  type ImageSpace,
  type ModelSpace,
  type ModelSpaceOptions,
} from './image/model_space.js'
export type {
  ImageCropOptions,
  ImagePadOptions,
  ImageReference,
  ImageResizeOptions,
  LetterboxOptions,
  ResizeFilter,
} from './image/options.js'
export type { PixelFormat, Pixels, PixelsWithInfo } from './image/pixels.js'
export type { ProcessorBackend } from './image/processor_config.js'
export { type TensorToImageOptions, tensorToImage } from './image/tensor_to_image.js'
export type { Digit, Layout, LayoutStorage, StorageOptions } from './layout/layout.js'
export {
  type AnyLayoutName,
  LAYOUT_NAMES,
  type LayoutAlias,
  type LayoutName,
  parseLayout,
} from './layout/parse_layout.js'
export {
  type Explanation,
  type PlacedLayout,
  type PlanReorderOptions,
  planReorder,
  type ReorderPlan,
  type RunOptions,
} from './layout/plan.js'
export { setThreads, threads } from './native/addon.js'
export type { DlpackCapsule } from './native/types.js'
export type { TensorChanges } from './pipeline/change_tensors.js'
export {
  type ConvertOptions,
  type ConvertResult,
  convert,
  type ExplainedTensor,
  type Output,
  type TensorLosses,
} from './pipeline/convert.js'
export type { GraphOptions } from './pipeline/convert_graph.js'
export {
  type ConvertManyOptions,
  convertMany,
  type FileOutcome,
  type ManifestDamage,
} from './pipeline/convert_many.js'
export type { TensorChange, TensorDifference } from './pipeline/diff/compare_tensors.js'
export type { GraphEdit } from './pipeline/diff/graph_edits.js'
export { type Diffable, type Difference, type DiffOptions, diff } from './pipeline/diff.js'
export type { ConvertInput, ConvertInputs } from './pipeline/many/input_list.js'
export type { ByteChunks } from './pipeline/many/records.js'
export type { Shard } from './pipeline/many/shard.js'
export type { ConvertManyProgress, ConvertManySummary, FailureGroup } from './pipeline/many/tally.js'
export { type MeteredFile, type Metrics, type MetricsOptions, startMetrics } from './pipeline/metrics.js'
export {
  type CheckOptions,
  check,
  type FilePart,
  type Input,
  type OpenFile,
  type OpenFileFields,
  type OpenGguf,
  type OpenOnnx,
  type OpenOpenvino,
  type OpenOptions,
  type OpenPytorch,
  type OpenTensorFile,
  type OpenTflite,
  type OpenTmfile,
  open,
} from './pipeline/open.js'
export type { SaveProgress } from './pipeline/progress.js'
export type { ValueQuantization } from './pipeline/quantize_tensors.js'
export type { FormatName, WriteOptions } from './pipeline/registry.js'
export { type Saveable, type SaveOptions, type SerializeOptions, save, serialize } from './pipeline/save.js'
export type { QuantizationSummary, TensorSummary } from './pipeline/tensor_summary.js'
export type { UndoConversion, UndoOptions } from './pipeline/undo.js'
export {
  type AsTensorOptions,
  asTensor,
  type BytesTensor,
  type OnnxRuntimeStrings,
  type OnnxRuntimeTensor,
  type TensorFlowTensor,
  type TensorLike,
} from './tensor/adapters.js'
export { type AffineOptions, affine } from './tensor/affine.js'
export { type AsLayoutOptions, asLayout } from './tensor/as_layout.js'
export type { BlockNumbers } from './tensor/block_tensor.js'
export { cast } from './tensor/cast.js'
export { type CastLosses, castLosses } from './tensor/cast_losses.js'
export { type ConcatOptions, concat, stack } from './tensor/concat.js'
export { type DigestOptions, digest } from './tensor/digest.js'
export { type FromDlpackOptions, fromDlpack, type ToDlpackOptions, toDlpack } from './tensor/dlpack.js'
export { QUANTIZED_BLOCK_DTYPES, type QuantizedBlockDtype } from './tensor/encode_blocks.js'
export { explain, type TensorExplanation } from './tensor/explain.js'
export { type NestedStrings, type NestedValues, type TensorOptions, tensor } from './tensor/from_values.js'
export { isDtype } from './tensor/is_dtype.js'
export { type LazyTensorOptions, lazyTensor } from './tensor/lazy.js'
export { type MaterializeOptions, materialize } from './tensor/materialize.js'
export { type PadOptions, type PadWidth, pad } from './tensor/pad.js'
export type { QuantizationParameters, QuantizationRules } from './tensor/quantization.js'
export {
  type BiasMismatch,
  checkBiasScales,
  type NumberRange,
  quantizationParameters,
  type RangeOptions,
} from './tensor/quantization_range.js'
export {
  type BlockDequantizeOptions,
  type DequantizeOptions,
  dequantize,
  type QuantizeOptions,
  quantize,
} from './tensor/quantize.js'
export type { AxisRange, AxisRangeList, SliceRange } from './tensor/region.js'
export { type ReorderOptions, reorder } from './tensor/reorder.js'
export { slice } from './tensor/slice.js'
export { type SparseFromDenseOptions, sparseFromDense } from './tensor/sparse.js'
export { split } from './tensor/split.js'
export { type Histogram, type StatsOptions, stats, type TensorStatistics } from './tensor/stats.js'
export { type StringTensorOptions, stringTensor } from './tensor/string_list.js'
export type {
  AnyTensor,
  BitsOptions,
  BlockTensor,
  DenseStorage,
  DenseTensor,
  SparseEntry,
  SparseTensor,
  StringTensor,
  Tensor,
  TensorInfo,
  TypedArray,
  TypedArrayByDtype,
  TypedArrayOf,
  TypedArrayOptions,
} from './tensor/tensor.js'
export { transpose } from './tensor/transpose.js'
export type {
  DifferentElement,
  ElementValue,
  Tolerance,
  ValueDifferences,
} from './tensor/value_differences.js'
