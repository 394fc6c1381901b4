/** Element conversions: the options of a cast, and the steps that the addon runs. */
import type { Dtype } from './dtypes.js'

/** How a cast converts values that the target cannot represent. */
export interface CastOptions {
  /**
   * `spec` follows the ONNX specification and rounds once. `onnx` gives the bits of ONNX's reference implementation, for
   * comparisons with its results. docs/casts.md lists the differences. Default: `spec`.
   */
  readonly mode?: 'spec' | 'onnx'
  /**
   * For float8 types: true clamps numbers above the largest finite value to it; false converts them to infinity, or to NaN
   * where the type has no infinity. Default: true.
   */
  readonly saturate?: boolean
  /**
   * For float8_e8m0fnu, which has powers of two only: the next power up, the nearest (1.5 * 2^k goes up), or the next power
   * down. Default: `up`.
   */
  readonly round?: 'up' | 'nearest' | 'down'
}

/** A cast with all its options. */
export interface CastStep extends Required<CastOptions> {
  readonly from: Dtype
  readonly to: Dtype
}

/** A linear map of the elements, with one scale and one offset per block of the tensor. */
export interface ScalingStep {
  readonly kind: 'quantize' | 'dequantize' | 'affine'
  readonly from: Dtype
  readonly to: Dtype
  /** How quantized values are computed: as in ONNX's QuantizeLinear, or as in Tengine's quantizers for a tmfile. */
  readonly rules: 'onnx' | 'tmfile'
  /** As in `CastOptions`. */
  readonly saturate: boolean
  /** One value for all elements, or one per block in row-major order; both arrays have the same length. Immutable. */
  readonly scales: Float64Array
  readonly offsets: Float64Array
  /** Elements of a block along each axis; the last block of an axis may be smaller. */
  readonly blocks: readonly number[]
}

/** A conversion of each element of a tensor. */
export type ElementStep = CastStep | ScalingStep

/** True for a linear map, false for a cast. */
export function isScaling(step: ElementStep): step is ScalingStep {
  return 'kind' in step
}
