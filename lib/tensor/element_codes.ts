/** Unpacks sub-byte elements to one byte each and packs them again; the first element is in the lowest bits of a byte. */
import { allocateBytes } from '../bytes/view_limit.js'

/** The codes of `count` packed elements, one byte each. */
export function unpackCodes(bits: number, packed: Uint8Array, count: number): Uint8Array<ArrayBuffer> {
  const codes = allocateBytes(count)
  const perByte = 8 / bits
  const mask = 2 ** bits - 1
  for (let i = 0; i < count; i++)
    codes[i] = (packed[Math.floor(i / perByte)]! >> ((i % perByte) * bits)) & mask
  return codes
}

/** Packs codes of one byte each into `packed`, which must be zero, from its start. */
export function packCodes(bits: number, codes: Uint8Array, packed: Uint8Array): void {
  for (let i = 0; i < codes.length; i++) putCode(bits, packed, i, codes[i]!)
}

/** Writes element `index`, whose bits must be zero. */
function putCode(bits: number, packed: Uint8Array, index: number, code: number): void {
  const perByte = 8 / bits
  packed[Math.floor(index / perByte)]! |= code << ((index % perByte) * bits)
}

/** Overwrites element `index`. */
export function replaceCode(bits: number, packed: Uint8Array, index: number, code: number): void {
  const perByte = 8 / bits
  packed[Math.floor(index / perByte)]! &= ~((2 ** bits - 1) << ((index % perByte) * bits))
  putCode(bits, packed, index, code)
}
