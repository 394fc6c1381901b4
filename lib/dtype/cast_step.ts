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
