/**
 * The interface of a layout: the order of a tensor's elements in memory, as a list of digits.
 * Source of the rules: OpenVINO's GPU plugin, `include/intel_gpu/runtime/format.hpp` and the kernels' index functions.
 */
import type { DtypeName } from '../dtype/dtypes.js'
import type { NativeSide } from '../native/types.js'

/** Explicit padding and dtype. Both change how a layout stores a shape. */
export interface StorageOptions {
  /** Extra elements before the first, one count per axis. Data layouts, `row_major` and `column_major` only. */
  readonly lower?: readonly number[]
  /** Extra elements after the last, one count per axis. Data layouts, `row_major` and `column_major` only. */
  readonly upper?: readonly number[]
  /** Dtype; 4-bit dtypes change the order of some weight layouts. Default: an 8-bit dtype. */
  readonly dtype?: DtypeName
}

/** One digit of an offset, see {@link LayoutStorage.digits}. */
export interface Digit {
  /** Letters of the axes, several for one fused row-major index; empty in `row_major` and `column_major`. */
  readonly axes: string
  /** Positions of those axes in logical order. */
  readonly positions: readonly number[]
  /** Number of values of the digit. */
  readonly radix: number
  /** The digit is `floor(index / weight) mod radix` of the index of its axes. */
  readonly weight: number
}

/** A layout bound to a shape. */
export interface LayoutStorage {
  /** Number of slots, padding included. The unit is an element; with 4-bit dtypes a nibble. */
  readonly elements: number
  /** Bytes of the storage: `ceil(elements * bits / 8)`. */
  readonly byteLength: number
  /**
   * Digits of the offset, outermost first. The offset of an element is computed from them by Horner's rule; the storage is a dense
   * row-major array of shape `digits.map(d => d.radix)`. Omitted where no single list describes all elements: in
   * `iy_xs_os_xsv2_osv8__ao32`, `iy_xs_os_xsv2_osv16__ao32` and their grouped forms with an odd X above 1, whose last column has
   * a different order.
   */
  readonly digits?: readonly Digit[]
  /** Sizes of all axes of the layout, without padding: the given shape with ones appended. */
  readonly extents: readonly number[]
  /** The description for the native planner, over `extents`. */
  readonly side: NativeSide
}

/** A layout, as `parseLayout` returns it. Immutable. Shapes and indices are in logical order: `axes` names their axes. */
export interface Layout {
  /** Canonical name: `bfyx` for `nchw`. The aliases `chw`, `hwc`, `nc` and `hw` keep their own names. */
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
  /** Sentences about properties that the name does not show, for example that a reorder does no Winograd arithmetic. */
  readonly notes: readonly string[]
  /**
   * Binds the layout to a shape in elements, one size per axis. A shorter shape gets trailing ones.
   *
   * @throws TileworkError ERR_LAYOUT_SHAPE for too many axes or sizes that the layout cannot store, ERR_OVERFLOW for 2^53 slots
   * or bytes and more, ERR_DTYPE, ERR_ARGUMENT
   */
  storage(shape: readonly number[], options?: StorageOptions): LayoutStorage
  /**
   * The offset of the element at `index`, in elements from the start of the storage; in nibbles for 4-bit types.
   *
   * @throws TileworkError as `storage`; ERR_RANGE for an index outside the shape
   */
  offsetOf(shape: readonly number[], index: readonly number[], options?: StorageOptions): number
  /**
   * The index of the element at `offset`, or null for padding. The inverse of `offsetOf`.
   *
   * @throws TileworkError as `storage`; ERR_RANGE for an offset outside the storage
   */
  coordinateOf(shape: readonly number[], offset: number, options?: StorageOptions): readonly number[] | null
}

/** True for `row_major` and `column_major`, which take shapes of any rank. */
export function hasAnyRank({ kind }: Pick<Layout, 'kind'>): boolean {
  return kind === 'row_major' || kind === 'column_major'
}
