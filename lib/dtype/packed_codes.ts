/**
 * Raw bits of sub-byte elements in packed storage: element 0 in the lowest bits, without gaps. Elements of 2 and 4 bits never
 * cross a byte; four elements of 6 bits occupy three bytes, and the second and third of them cross a byte boundary.
 */
import { DTYPES, type Dtype } from './dtypes.js'

/** Group size in elements: a group occupies whole bytes in every sub-byte type. */
const GROUP = 4

/** Bytes of `elements` packed elements. */
export function packedByteLength(dtype: Dtype, elements: number): number {
  const { bits } = DTYPES[dtype]
  if (bits >= 8) return elements * (bits / 8)
  // Divided first: elements * bits may exceed 2^53 where the number of bytes does not.
  const tail = elements % GROUP
  return ((elements - tail) / GROUP) * ((GROUP * bits) / 8) + Math.ceil((tail * bits) / 8)
}

/** Mask of the used bits in the last byte of `elements` packed elements; 0xff where they fill it. */
export function lastByteMask(dtype: Dtype, elements: number): number {
  const bits = ((elements % GROUP) * DTYPES[dtype].bits) % 8
  return bits === 0 ? 0xff : 2 ** bits - 1
}

/** Location of an element in packed storage. */
export interface ElementPlace {
  /** Bytes that contain it. */
  readonly start: number
  readonly end: number
  /** Index of the element relative to `start`. */
  readonly slot: number
}

/** The bytes of element `index`, from the start of its group of sub-byte elements. */
export function placeOf(dtype: Dtype, index: number): ElementPlace {
  const slot = DTYPES[dtype].bits < 8 ? index % GROUP : 0
  const start = packedByteLength(dtype, index - slot)
  return { start, end: start + packedByteLength(dtype, slot + 1), slot }
}

/** The raw bits of element `index`. @param bits - below 8 */
export function codeAt(bits: number, packed: Uint8Array, index: number): number {
  const at = index * bits
  const shift = at % 8
  const byte = (at - shift) / 8
  const upper = shift + bits > 8 ? packed[byte + 1]! << 8 : 0
  return ((packed[byte]! | upper) >> shift) & (2 ** bits - 1)
}

/** Overwrites the raw bits of element `index`; bytes beyond the end of `packed` are not written. @param bits - below 8 */
export function storeCode(bits: number, packed: Uint8Array, index: number, code: number): void {
  const at = index * bits
  const shift = at % 8
  const byte = (at - shift) / 8
  const mask = (2 ** bits - 1) << shift
  packed[byte] = (packed[byte]! & ~mask) | (code << shift)
  if (shift + bits > 8) packed[byte + 1] = (packed[byte + 1]! & ~(mask >> 8)) | (code >> (8 - shift))
}
