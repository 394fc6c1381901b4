/**
 * Computes the offset of one element from the digits, and the inverse. Drawings, `at()` and the tests of the native
 * kernels depend on this definition. Plain numbers are exact here: `storage.ts` refuses anything above 2^53 - 1, and each
 * division subtracts its remainder first. Bit operators would truncate to 32 bits.
 */
import { TileworkError } from '../errors.js'
import type { NativeDigit, NativePiece } from '../native/types.js'
import { valueText } from '../value_text.js'
import { copyExtents } from './extents.js'
import type { LayoutStorage } from './layout.js'

/** @param given - an index over the axes of the shape @throws TileworkError ERR_ARGUMENT, ERR_RANGE */
export function offsetInStorage(storage: LayoutStorage, shapeRank: number, given: readonly number[]): number {
  const index = copyExtents('index', given)
  const { extents, side } = storage
  if (index.length !== shapeRank && index.length !== extents.length) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `the index has ${index.length} numbers; the shape has ${shapeRank} axes`,
    )
  }
  const padded = extents.map((extent, axis) => {
    const position = index[axis] ?? 0
    if (position < extent) return position + side.lower[axis]!
    throw new TileworkError(
      'ERR_RANGE',
      `index[${axis}] is ${position}; it must be below the size ${extent} of the axis`,
    )
  })
  const piece = side.pieces.find(({ axis, lo, hi }) => isWithin(padded, axis, lo, hi))!
  const sizes = paddedExtents(storage)
  let offset = 0
  for (const digit of piece.digits) {
    const value = fusedIndex(digit, padded, sizes)
    offset = offset * digit.radix + (((value - (value % digit.weight)) / digit.weight) % digit.radix)
  }
  return offset
}

/** The index, over the first `shapeRank` axes, of the element at `offset`; null for padding. @throws TileworkError ERR_RANGE */
export function coordinateInStorage(
  storage: LayoutStorage,
  shapeRank: number,
  offset: number,
): number[] | null {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset >= storage.elements) {
    throw new TileworkError(
      'ERR_RANGE',
      `the offset is ${valueText(offset)}; it must be a whole number below the ${storage.elements} slots of the storage`,
    )
  }
  for (const piece of storage.side.pieces) {
    const coordinate = decode(storage, piece, offset)
    if (coordinate !== null) return coordinate.slice(0, shapeRank)
  }
  return null
}

function decode(storage: LayoutStorage, piece: NativePiece, offset: number): number[] | null {
  const sizes = paddedExtents(storage)
  const padded = unfuse(piece, offset, sizes)
  if (padded === null || !isWithin(padded, piece.axis, piece.lo, piece.hi)) return null
  const { extents, side } = storage
  const coordinate = padded.map((position, axis) => position - side.lower[axis]!)
  return coordinate.every((position, axis) => position >= 0 && position < extents[axis]!) ? coordinate : null
}

/** Index of every axis, counted from the start of the padding; null where a fused index is past the last element of its axes. */
function unfuse(piece: NativePiece, offset: number, sizes: readonly number[]): number[] | null {
  // First the whole fused index stands at the outermost of its axes; no axis is in two fused indices.
  const padded = Array<number>(sizes.length).fill(0)
  let quotient = offset
  for (const { axes, radix, weight } of piece.digits.toReversed()) {
    const value = quotient % radix
    quotient = (quotient - value) / radix
    padded[axes[0]!]! += value * weight
  }
  for (const axes of fusedAxes(piece)) {
    for (const axis of axes.slice(1).reverse()) {
      const outerIndex = padded[axes[0]!]!
      padded[axis] = outerIndex % sizes[axis]!
      padded[axes[0]!] = (outerIndex - padded[axis]!) / sizes[axis]!
    }
  }
  return padded.every((position, axis) => position < sizes[axis]!) ? padded : null
}

/** The lists of axes that are one index together, each once. */
function fusedAxes({ digits }: NativePiece): Iterable<readonly number[]> {
  return new Map(digits.filter(({ axes }) => axes.length > 1).map(({ axes }) => [axes[0], axes])).values()
}

function fusedIndex(digit: NativeDigit, padded: readonly number[], sizes: readonly number[]): number {
  return digit.axes.reduce((value, axis) => value * sizes[axis]! + padded[axis]!, 0)
}

function paddedExtents({ extents, side }: LayoutStorage): number[] {
  return extents.map((extent, axis) => side.lower[axis]! + extent + side.upper[axis]!)
}

function isWithin(padded: readonly number[], axis: number, lo: number, hi: number): boolean {
  const position = padded[axis] ?? 0
  return position >= lo && position < hi
}
