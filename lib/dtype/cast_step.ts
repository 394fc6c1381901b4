/** One change of element type, as a user asks for it and as the addon takes it. */
import type { Dtype } from './dtypes.js'

/** How a cast treats what the target cannot hold. */
export interface CastOptions {
  /**
   * `spec` (the default): what the ONNX specification says, rounded once. `onnx`: what its reference implementation does
   * where it differs, for those who compare with its results. docs/casts.md has the differences.
   */
  readonly mode?: 'spec' | 'onnx'
  /**
   * For float8 types: whether numbers beyond the largest become the largest (the default), or an infinity, or NaN where the
   * type has none.
   */
  readonly saturate?: boolean
  /**
   * For float8_e8m0fnu, which has powers of two only: the next (the default), the nearest (1.5 * 2^k goes up), or the last.
   */
  readonly round?: 'up' | 'nearest' | 'down'
}

/** A cast with all its options. */
export interface CastStep extends Required<CastOptions> {
  readonly from: Dtype
  readonly to: Dtype
}

/** A linear map of the elements, with one scale and one offset for each block of the tensor that it is given. */
export interface ScalingStep {
  readonly kind: 'quantize' | 'dequantize' | 'affine'
  readonly from: Dtype
  readonly to: Dtype
  /** How integer codes are made: by QuantizeLinear of ONNX, or as Tengine's quantizers make those of a tmfile. */
  readonly rules: 'onnx' | 'tmfile'
  /** As in `CastOptions`. */
  readonly saturate: boolean
  /** One for all elements, or one for each block, row-major; as many of one as of the other. Never changed. */
  readonly scales: Float64Array
  readonly offsets: Float64Array
  /** Elements of a block along each axis; the last one of an axis may have fewer. */
  readonly blocks: readonly number[]
}

/** What becomes of every element of a tensor. */
export type ElementStep = CastStep | ScalingStep

/** True for a linear map, false for a cast. */
export function isScaling(step: ElementStep): step is ScalingStep {
  return 'kind' in step
}
