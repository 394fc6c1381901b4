/**
 * Offsets from digits and back, for single elements: the definition that drawings, `at()` and the tests of the
 * native kernels stand on. Plain numbers are exact here because `storage.ts` refuses everything above 2^53 - 1,
 * and because every division below has its remainder taken off first; bit operators would cut at 2^32.
 */
import { TileworkError } from '../errors.js'
import type { NativeDigit, NativePiece } from '../native/types.js'
import { valueText } from '../value_text.js'
import { copyExtents } from './extents.js'
import type { LayoutStorage } from './layout.js'

/** Offset of the coordinate `given` (over the axes of the shape). Throws ERR_ARGUMENT, ERR_RANGE. */
export function offsetInStorage(storage: LayoutStorage, shapeRank: number, given: readonly number[]): number {
  const index = copyExtents('index', given)
  const { extents, side } = storage
  if (index.length !== shapeRank && index.length !== extents.length) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The index has ${index.length} numbers; the shape has ${shapeRank} axes.`,
    )
  }
  const padded = extents.map((extent, axis) => {
    const position = index[axis] ?? 0
    if (position < extent) return position + side.lower[axis]!
    throw new TileworkError('ERR_RANGE', `index[${axis}] is ${position}; the extent is ${extent}.`)
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

/** The coordinate (over the first `shapeRank` axes) in the slot `offset`, or null for a hole. Throws ERR_RANGE. */
export function coordinateInStorage(
  storage: LayoutStorage,
  shapeRank: number,
  offset: number,
): number[] | null {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset >= storage.elements) {
    throw new TileworkError(
      'ERR_RANGE',
      `The offset is ${valueText(offset)}; the storage has ${storage.elements} elements.`,
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

/** Padded index of every axis, or null where a fused index lies behind the last element of its axes. */
function unfuse(piece: NativePiece, offset: number, sizes: readonly number[]): number[] | null {
  const padded = Array<number>(sizes.length).fill(0)
  const fused = new Map<string, { axes: readonly number[]; value: number }>()
  let left = offset
  for (const { axes, radix, weight } of [...piece.digits].reverse()) {
    const value = left % radix
    left = (left - value) / radix
    const key = axes.join()
    const sum = fused.get(key) ?? { axes, value: 0 }
    sum.value += value * weight
    fused.set(key, sum)
  }
  for (const { axes, value } of fused.values()) {
    let rest = value
    for (const axis of [...axes].reverse().slice(0, -1)) {
      const position = rest % sizes[axis]!
      rest = (rest - position) / sizes[axis]!
      padded[axis] = position
    }
    if (rest >= sizes[axes[0]!]!) return null
    padded[axes[0]!] = rest
  }
  return padded
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
