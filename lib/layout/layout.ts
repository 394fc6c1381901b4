/**
 * What a layout is to the rest of tilework: the order of a tensor's elements in memory, as a list of digits.
 * Source of the rules: OpenVINO's GPU plugin, `include/intel_gpu/runtime/format.hpp` and the kernels' index functions.
 */
import type { DtypeName } from '../dtype/dtypes.js'
import type { NativeSide } from '../native/types.js'

/** Explicit padding and element type, which both change how a layout stores a shape. */
export interface StorageOptions {
  /** Extra elements before the first, one count an axis of the shape. Data layouts only. */
  readonly lower?: readonly number[]
  /** Extra elements after the last, one count an axis of the shape. Data layouts only. */
  readonly upper?: readonly number[]
  /** Element type; 4-bit types change the meaning of some weight layouts. Default: an 8-bit type. */
  readonly dtype?: DtypeName
}

/** One digit of an offset, see {@link LayoutStorage.digits}. */
export interface Digit {
  /** Letters of the axes; more than one means their fused row-major index. `d0`, `d1`, … in `row_major` and `column_major` are in `positions` alone. */
  readonly axes: string
  /** Positions of those axes in logical order. */
  readonly positions: readonly number[]
  /** Number of values of the digit. */
  readonly radix: number
  /** The digit is `floor(index / weight) mod radix` of the axes' index. */
  readonly weight: number
}

/** A layout bound to a shape. */
export interface LayoutStorage {
  /** Storage elements, holes included. */
  readonly elements: number
  /** `ceil(elements * bits / 8)`. */
  readonly byteLength: number
  /** Outermost first. The storage is a dense row-major array of shape `digits.map(d => d.radix)`. */
  readonly digits: readonly Digit[]
  /** Shape over all axes of the layout: the given one with ones appended (the axes' extents without padding). */
  readonly extents: readonly number[]
  /** What the native planner takes, over `extents`. */
  readonly side: NativeSide
}

/** A parsed layout. */
export interface Layout {
  /** Canonical name. */
  readonly name: string
  readonly kind: 'row_major' | 'column_major' | 'data' | 'weights' | 'weights_grouped' | 'image' | 'winograd'
  /** Letters in logical order, for example `bfyx`; empty for `row_major` and `column_major`, which have any rank. */
  readonly axes: string
  /** The memory order in short form, for example `b f/16 y x · f16`. */
  readonly order: string
  /** oneDNN's tag where oneDNN can express the layout. */
  readonly onednnTag?: string
  /** Other names that mean this layout. */
  readonly aliases: readonly string[]
  /** What a reader should know: arithmetic that is not done (winograd, nv12), special last column, … */
  readonly notes: readonly string[]
  /** Errors: ERR_LAYOUT_SHAPE, ERR_OVERFLOW, ERR_ARGUMENT. */
  storage(shape: readonly number[], options?: StorageOptions): LayoutStorage
  /** Element offset (nibbles for 4-bit types) of a coordinate. Errors: as `storage`, and ERR_RANGE. */
  offsetOf(shape: readonly number[], index: readonly number[], options?: StorageOptions): number
  /** The coordinate stored in a slot, or null for a hole. The inverse of `offsetOf`. */
  coordinateOf(shape: readonly number[], offset: number, options?: StorageOptions): readonly number[] | null
}

/** True for `row_major` and `column_major`, which take the axes of whatever shape they meet. */
export function hasAnyRank({ kind }: Pick<Layout, 'kind'>): boolean {
  return kind === 'row_major' || kind === 'column_major'
}
