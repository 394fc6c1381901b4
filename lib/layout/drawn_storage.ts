/** A bound layout for drawings, which need digits even where no single list describes all elements. */
import type { NativeDigit } from '../native/types.js'
import type { Digit, Layout, LayoutStorage, StorageOptions } from './layout.js'

export interface DrawnStorage extends LayoutStorage {
  /** The digits of the storage; where it has no single list, the digits of all columns except the last. */
  readonly digits: readonly Digit[]
  /** Number of leading (outermost) digits that apply to all elements. */
  readonly commonDigits: number
}

/** @throws TileworkError as `layout.storage` */
export function drawnStorage(
  layout: Layout,
  shape: readonly number[],
  options: StorageOptions,
): DrawnStorage {
  const storage = layout.storage(shape, options)
  if (storage.digits) return { ...storage, digits: storage.digits, commonDigits: storage.digits.length }
  const [first, last] = storage.side.pieces.map(({ digits }) => digits)
  return {
    ...storage,
    digits: first!.map((digit) => withLetters(layout, digit)),
    commonDigits: first!.findIndex((digit, at) => !isSame(digit, last![at]!)),
  }
}

function withLetters(layout: Layout, { axes, radix, weight }: NativeDigit): Digit {
  return { axes: axes.map((axis) => layout.axes[axis]).join(''), positions: axes, radix, weight }
}

function isSame(a: NativeDigit, b: NativeDigit): boolean {
  return a.radix === b.radix && a.weight === b.weight && a.axes.join() === b.axes.join()
}
