/**
 * The parts of a file that is to be written: a struct, a vector, the bytes of a text, the numbers of a buffer. Each
 * knows its length before it has a place, refers to others as objects, and gets its bytes when all have their places.
 *
 * A part that comes from a file starts from the bytes it had there. Only fields that mean something else now are
 * written anew, so that what no field explains (padding, the bits of a NaN, fields that nobody set) survives.
 */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import type { WriteSegment } from '../../format.js'
import { type ALIGNMENT, FORMAT_NAME } from '../schema.js'
import { readScalar, type ScalarType, writeScalar } from '../struct_layout.js'

/**
 * `exact` keeps every byte that nothing gave a new meaning; `canonical` writes 0 where nobody set anything; `upgrade` is
 * canonical and writes old structs in their current form.
 */
export type WriteMode = 'exact' | 'canonical' | 'upgrade'

/** Where a part stood in the file it comes from. */
export interface PieceBase {
  readonly at: number
  readonly byteLength: number
}

/** Writes the fields of a part. @param base - its bytes in the file it comes from; empty for a new one */
export type Fill = (target: DataView, base: DataView) => void

export interface Piece {
  readonly path: string
  readonly byteLength: number
  /** 4 for structs and vectors, 1 for bytes. */
  readonly alignment: 1 | typeof ALIGNMENT
  readonly base: PieceBase | undefined
  /** Absent for numbers of a buffer, which stay where they are until they are written. */
  readonly fill?: Fill
  readonly data?: WriteSegment
  /** Byte offset in the new file; set when all parts are placed. */
  at: number
}

/** An offset to a part, or none. */
export const offsetOf = (piece: Piece | undefined): number => piece?.at ?? 0

const LIMITS: Readonly<Record<ScalarType, readonly [least: number, most: number]>> = {
  u8: [0, 0xff],
  u16: [0, 0xffff],
  u32: [0, 0xffff_ffff],
  offset: [0, 0xffff_ffff],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  f32: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
}

export interface FieldPlace {
  readonly position: number
  readonly type: ScalarType
  /** Names the field in errors, for example `nodes[3].params.axis`. */
  readonly path: string
}

/**
 * Writes one field, from the base where that means the same.
 *
 * @throws TileworkError ERR_ARGUMENT for a value that the field cannot hold
 */
export function fillField(
  target: DataView,
  base: DataView,
  { position, type, path }: FieldPlace,
  value: unknown,
): void {
  const isOfBase = position + 4 <= base.byteLength || (type === 'u8' && position < base.byteLength)
  if (isOfBase && Object.is(readScalar(base, position, type), value)) {
    copyField(target, base, position, type)
    return
  }
  const [least, most] = LIMITS[type]
  const isNumber = typeof value === 'number' && (type === 'f32' || Number.isInteger(value))
  if (!isNumber || value < least || value > most) {
    const range = type === 'f32' ? 'a number' : `a whole number from ${least} to ${most}`
    throw new TileworkError('ERR_ARGUMENT', `${path} must be ${range}; it is ${valueText(value)}.`, {
      format: FORMAT_NAME,
      path,
    })
  }
  writeScalar(target, position, type, value)
}

function copyField(target: DataView, base: DataView, position: number, type: ScalarType): void {
  if (type === 'u8') target.setUint8(position, base.getUint8(position))
  else if (type === 'u16') target.setUint16(position, base.getUint16(position))
  else target.setUint32(position, base.getUint32(position))
}
