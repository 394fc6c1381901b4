/** Smaller element types for ONNX models: float16, 8 and 4 bits. */
export { quantizeDynamic } from './dynamic.js'
export type { DynamicOperator, QuantizeDynamicOptions } from './dynamic_options.js'
export { toFloat16 } from './float16.js'
export type { Float16Block, ToFloat16Options } from './float16_options.js'
export { type ToFloat32Options, toFloat32 } from './float32.js'
export type { CompressedNode, CompressedTensor, CompressReport } from './report.js'
export { quantizableValues, quantizeStatic } from './static.js'
export {
  checkRange,
  checkRanges,
  type QuantizableOptions,
  type QuantizeStaticOptions,
  type ValueRange,
  type ValueRanges,
} from './static_options.js'
export { type WeightError, type WeightErrorOptions, weightErrors } from './weight_errors.js'
export type { QuantizeWeightsOptions } from './weight_options.js'
export { quantizeWeights } from './weights.js'
