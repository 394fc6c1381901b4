/**
 * Binds a layout to a shape: radices, padded extents, number of slots. Shapes come from files, so all arithmetic is
 * checked. Numbers above 2^53 - 1 are refused, so `offset.ts` computes in plain numbers.
 */
import { checkObject } from '../caller_input.js'
import { DTYPES, type Dtype, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { NativePiece } from '../native/types.js'
import type { AxisConstraint } from './catalogue.js'
import type { LayoutDefinition } from './definition.js'
import type { DigitRule } from './digit_rule.js'
import { copyExtents } from './extents.js'
import { type Digit, hasAnyRank, type LayoutStorage, type StorageOptions } from './layout.js'

/** Whether the 4-bit rules of a layout apply. `float4_e2m1fn` is stored by the plain digits. */
function isFourBitInteger(dtype: Dtype | undefined): boolean {
  if (dtype === undefined) return false
  const { bits, kind } = DTYPES[dtype]
  return bits === 4 && (kind === 'int' || kind === 'uint')
}

/** A shape over all axes of a layout, with the explicit padding around it. */
interface PaddedShape {
  readonly extents: readonly number[]
  readonly lower: readonly number[]
  readonly upper: readonly number[]
  /** lower + extent + upper. */
  readonly padded: readonly number[]
}

/** @throws TileworkError ERR_LAYOUT_SHAPE, ERR_OVERFLOW, ERR_ARGUMENT, ERR_DTYPE */
export function bindStorage(
  layout: LayoutDefinition,
  shape: readonly number[],
  options: StorageOptions = {},
): LayoutStorage {
  checkObject(options, 'The options of a layout are { dtype, lower, upper }')
  const dtype = options.dtype === undefined ? undefined : resolveDtype(options.dtype)
  const bits = elementBits(dtype)
  const full = padShape(layout, shape, options)
  checkConstraints(layout, full.extents)
  checkFourBit(layout, full.extents, dtype)
  const digits = hasAnyRank(layout)
    ? plainDigits(layout.kind, full.padded)
    : bindDigits(layout, rulesFor(layout, dtype), full.padded)
  const radices = digits.map((digit) => digit.radix)
  const elements = product(radices, () => `shape [${shape}] in ${layout.name}`)
  const pieces = bindPieces(layout, digits, full.padded)
  const side = { lower: full.lower, upper: full.upper, pieces: pieces.map(nativePiece), elements }
  return {
    elements,
    byteLength: byteLength(elements, bits),
    ...(pieces.length === 1 && { digits: pieces[0]!.digits }),
    extents: full.extents,
    side,
  }
}

/** The shape of a storage as a dense row-major array: the radices of its digits, or one axis where it has no digits. */
export function arrayShape({ digits, elements }: LayoutStorage): readonly number[] {
  return digits?.map(({ radix }) => radix) ?? [elements]
}

function elementBits(dtype: Dtype | undefined): number {
  if (dtype === undefined) return 8
  const { bits } = DTYPES[dtype]
  if (bits > 0) return bits
  throw new TileworkError(
    'ERR_DTYPE',
    `elements of type ${dtype} have no fixed size, so no layout stores them`,
  )
}

function byteLength(elements: number, bits: number): number {
  const bytes = (BigInt(elements) * BigInt(bits) + 7n) / 8n
  if (bytes > BigInt(Number.MAX_SAFE_INTEGER)) {
    throw new TileworkError('ERR_OVERFLOW', `the storage has ${bytes} bytes; the limit is 2^53 - 1`)
  }
  return Number(bytes)
}

function padShape(layout: LayoutDefinition, shape: readonly number[], options: StorageOptions): PaddedShape {
  const given = copyExtents('shape', shape)
  const rank = hasAnyRank(layout) ? given.length : layout.axes.length
  if (layout.isExactRank && given.length !== rank) {
    const message = `layout ${layout.name} takes exactly ${rank} axes; the shape [${given.slice(0, 16)}] has ${given.length}`
    throw new TileworkError('ERR_LAYOUT_SHAPE', message)
  }
  if (given.length > rank) {
    throw new TileworkError(
      'ERR_LAYOUT_SHAPE',
      `the shape [${given.slice(0, 16)}] has ${given.length} axes; ${layout.name} takes at most ${rank} (${layout.axes})` +
        (rank === 2 ? '; flatten the axes after the first into one' : ''),
    )
  }
  const extents = [...given, ...Array<number>(rank - given.length).fill(1)]
  const lower = padCounts(layout, 'lower', options.lower, given.length, rank)
  const upper = padCounts(layout, 'upper', options.upper, given.length, rank)
  const padded = extents.map((extent, axis) => {
    const sum = lower[axis]! + extent + upper[axis]!
    if (Number.isSafeInteger(sum)) return sum
    throw new TileworkError('ERR_OVERFLOW', `axis ${axis} with its padding is longer than 2^53 - 1`)
  })
  return { extents, lower, upper, padded }
}

function padCounts(
  layout: LayoutDefinition,
  name: 'lower' | 'upper',
  given: readonly number[] | undefined,
  shapeRank: number,
  rank: number,
): number[] {
  if (given === undefined) return Array<number>(rank).fill(0)
  const counts = copyExtents(name, given)
  if (counts.length !== shapeRank && counts.length !== rank) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${name} has ${counts.length} counts; the shape has ${shapeRank} axes`,
    )
  }
  if (layout.kind !== 'data' && !hasAnyRank(layout) && counts.some((count) => count !== 0)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${layout.name} is a layout of kind ${layout.kind} and takes no explicit padding; data layouts, row_major and column_major do`,
    )
  }
  return [...counts, ...Array<number>(rank - counts.length).fill(0)]
}

function checkConstraints(layout: LayoutDefinition, extents: readonly number[]): void {
  for (const constraint of layout.constraints) {
    const extent = extents[layout.axes.indexOf(constraint.axis)]!
    if (constraint.oneOf?.includes(extent) === false || extent % (constraint.multipleOf ?? 1) !== 0) {
      throw new TileworkError(
        'ERR_LAYOUT_SHAPE',
        `${constraint.axis} is ${extent} in the shape [${extents}]; ${layout.name} needs ${formatConstraint(constraint)}`,
      )
    }
  }
}

/** For example `f to be 3 or 4`. */
export function formatConstraint({ axis, oneOf, multipleOf }: AxisConstraint): string {
  return oneOf === undefined
    ? `${axis} to be a multiple of ${multipleOf}`
    : `${axis} to be ${oneOf.join(' or ')}`
}

/** The digits for a dtype. */
export function rulesFor(layout: LayoutDefinition, dtype: Dtype | undefined): readonly DigitRule[] {
  return layout.fourBit !== undefined && isFourBitInteger(dtype) ? layout.fourBit.digits : layout.digits
}

function checkFourBit(layout: LayoutDefinition, extents: readonly number[], dtype: Dtype | undefined): void {
  if (layout.fourBit?.fullyConnectedOnly !== true || !isFourBitInteger(dtype)) return
  const [y, x] = [extents[layout.axes.indexOf('y')]!, extents[layout.axes.indexOf('x')]!]
  // An empty tensor has no elements to order, so any shape is allowed.
  if (y !== 0 && x !== 0 && (y > 1 || x > 1)) {
    throw new TileworkError(
      'ERR_LAYOUT_SHAPE',
      `the shape [${extents}] has Y = ${y}, X = ${x}; ${layout.name} with ${dtype} stores fully-connected weights only (Y = X = 1)`,
    )
  }
}

function plainDigits(kind: LayoutDefinition['kind'], padded: readonly number[]): Digit[] {
  const digits = padded.map((radix, position) => ({ axes: '', positions: [position], radix, weight: 1 }))
  return kind === 'row_major' ? digits : digits.reverse()
}

function bindDigits(
  layout: LayoutDefinition,
  rules: readonly DigitRule[],
  padded: readonly number[],
): Digit[] {
  return rules.map(({ axes, weight, radix }) => {
    const positions = [...axes].map((letter) => layout.axes.indexOf(letter))
    const count =
      radix === 'extent' ? ceilDivide(roundedExtent(layout, axes, positions, padded), weight) : radix
    return { axes, positions, radix: count, weight }
  })
}

function roundedExtent(
  layout: LayoutDefinition,
  axes: string,
  positions: readonly number[],
  padded: readonly number[],
): number {
  const extents = positions.map((position) => padded[position]!)
  const extent = product(extents, () => `fused axes ${axes} of ${layout.name}`)
  const multiple = layout.align.get(axes) ?? 1
  return product([ceilDivide(extent, multiple), multiple], () => `aligned axis ${axes} of ${layout.name}`)
}

/** `ceil(count / size)`, exact up to 2^53 - 1 because the remainder is subtracted before the division. */
export function ceilDivide(count: number, size: number): number {
  const remainder = count % size
  return (count - remainder) / size + (remainder === 0 ? 0 : 1)
}

function product(factors: readonly number[], subject: () => string): number {
  if (factors.includes(0)) return 0
  let result = 1
  for (const factor of factors) {
    result *= factor
    if (!Number.isSafeInteger(result)) {
      const exact = factors.reduce((value, next) => value * BigInt(next), 1n)
      throw new TileworkError(
        'ERR_OVERFLOW',
        `${subject()}: ${shortNumber(exact)} elements; the limit is 2^53 - 1`,
      )
    }
  }
  return result
}

function shortNumber(value: bigint): string {
  const digits = value.toString()
  return digits.length > 40 ? `about 10^${digits.length - 1}` : digits
}

/** The digits of the elements whose padded index along `axis` is in `[lo, hi)`. */
interface Piece extends Omit<NativePiece, 'digits'> {
  readonly digits: readonly Digit[]
}

/** One digit list; two where the last index of an axis of odd size has its own (S2). */
function bindPieces(layout: LayoutDefinition, digits: readonly Digit[], padded: readonly number[]): Piece[] {
  const everything = { axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits }
  const rule = layout.lastColumn
  if (rule === undefined) return [everything]
  const axis = layout.axes.indexOf(rule.axis)
  const extent = padded[axis]!
  if (extent % 2 === 0) return [everything]
  const slice = digits.findIndex((digit) => digit.axes === rule.axis)
  const last = [...digits.slice(0, slice + 1), ...bindDigits(layout, rule.digits, padded)]
  const body = { ...everything, axis, hi: extent - 1 }
  const column = { axis, lo: extent - 1, hi: Number.MAX_SAFE_INTEGER, digits: last }
  return extent === 1 ? [column] : [body, column]
}

function nativePiece(piece: Piece): NativePiece {
  const digits = piece.digits.map(({ positions, radix, weight }) => ({ axes: positions, radix, weight }))
  return { ...piece, digits }
}
