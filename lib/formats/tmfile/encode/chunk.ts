/**
 * Chunks: the contiguous ranges that a tmfile is written as. A chunk is a struct, a vector, the bytes of a text, or the
 * data of a buffer. It knows its length before it has an offset, refers to other chunks as objects, and is encoded once
 * all of them have offsets.
 *
 * A chunk that comes from a file starts from its original bytes, and only changed fields are encoded again. So bytes that
 * no field covers (padding, NaN payloads, uninitialised fields) survive a rewrite.
 */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import type { WriteSegment } from '../../format.js'
import { type ALIGNMENT, FORMAT_NAME } from '../schema.js'
import { readScalar, type ScalarType, writeScalar } from '../struct_layout.js'

/**
 * `exact` keeps every byte whose meaning is unchanged; `canonical` writes 0 for uninitialised bytes; `upgrade` is
 * canonical and writes older forms of structs in their current form.
 */
export type WriteMode = 'exact' | 'canonical' | 'upgrade'

/** Range of a chunk in the file it comes from. */
export interface OriginalRange {
  readonly offset: number
  readonly byteLength: number
}

/** Encodes the fields of a chunk. @param original - its bytes in the file it comes from; empty for a new chunk */
export type EncodeChunk = (target: DataView, original: DataView) => void

export interface Chunk {
  readonly path: string
  readonly byteLength: number
  /** 4 for structs and vectors, 1 for bytes. */
  readonly alignment: 1 | typeof ALIGNMENT
  readonly original: OriginalRange | undefined
  /** Absent for the data of a buffer, which is copied when the file is written. */
  readonly encode?: EncodeChunk
  readonly data?: WriteSegment
  /** Byte offset in the new file; set before any chunk is encoded. */
  offset: number
}

/** The offset of a chunk; 0, which means "not set", for none. */
export const offsetOf = (chunk: Chunk | undefined): number => chunk?.offset ?? 0

const SCALAR_RANGES: Readonly<Record<ScalarType, readonly [min: number, max: number]>> = {
  u8: [0, 0xff],
  u16: [0, 0xffff],
  u32: [0, 0xffff_ffff],
  offset: [0, 0xffff_ffff],
  i32: [-(2 ** 31), 2 ** 31 - 1],
  f32: [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
}

/** Whether a field of this type can hold a value. */
export function isStorable(type: ScalarType, value: unknown): value is number {
  const [min, max] = SCALAR_RANGES[type]
  return (
    typeof value === 'number' && (type === 'f32' || (Number.isInteger(value) && value >= min && value <= max))
  )
}

/** The values of a type, for errors. */
export function allowedFor(type: ScalarType): string {
  const [min, max] = SCALAR_RANGES[type]
  return type === 'f32' ? 'a number' : `an integer from ${min} to ${max}`
}

export interface FieldTarget {
  /** Byte offset in the chunk. */
  readonly offset: number
  readonly type: ScalarType
  /** Names the field in errors, for example `nodes[3].params.axis`. */
  readonly path: string
}

/**
 * Encodes one field; copies the original bytes where they decode to the same value.
 *
 * @throws TileworkError ERR_ARGUMENT for a value that the field cannot hold
 */
export function encodeField(
  target: DataView,
  original: DataView,
  { offset, type, path }: FieldTarget,
  value: unknown,
): void {
  const isInOriginal = offset + 4 <= original.byteLength || (type === 'u8' && offset < original.byteLength)
  if (isInOriginal && Object.is(readScalar(original, offset, type), value)) {
    copyField(target, original, offset, type)
    return
  }
  if (!isStorable(type, value)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${path} is ${valueText(value)}; it must be ${allowedFor(type)}.`,
      {
        format: FORMAT_NAME,
        path,
      },
    )
  }
  writeScalar(target, offset, type, value)
}

function copyField(target: DataView, original: DataView, offset: number, type: ScalarType): void {
  if (type === 'u8') target.setUint8(offset, original.getUint8(offset))
  else if (type === 'u16') target.setUint16(offset, original.getUint16(offset))
  else target.setUint32(offset, original.getUint32(offset))
}
