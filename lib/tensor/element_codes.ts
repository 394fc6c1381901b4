/** Elements of less than a byte, one a byte while they are moved about, and packed again: the first in the lowest bits. */
import { allocateBytes } from '../bytes/view_limit.js'

/** Each of `count` packed elements in a byte of its own. */
export function unpackCodes(bits: number, packed: Uint8Array, count: number): Uint8Array<ArrayBuffer> {
  const codes = allocateBytes(count)
  const perByte = 8 / bits
  const mask = 2 ** bits - 1
  for (let i = 0; i < count; i++)
    codes[i] = (packed[Math.floor(i / perByte)]! >> ((i % perByte) * bits)) & mask
  return codes
}

/** Packs elements that have a byte each into `packed`, which is zero, from its beginning. */
export function packCodes(bits: number, codes: Uint8Array, packed: Uint8Array): void {
  for (let i = 0; i < codes.length; i++) putCode(bits, packed, i, codes[i]!)
}

/** Element `index` of packed ones, whose bits are zero. */
function putCode(bits: number, packed: Uint8Array, index: number, code: number): void {
  const perByte = 8 / bits
  packed[Math.floor(index / perByte)]! |= code << ((index % perByte) * bits)
}

/** Element `index` of packed ones, whatever it was. */
export function replaceCode(bits: number, packed: Uint8Array, index: number, code: number): void {
  const perByte = 8 / bits
  packed[Math.floor(index / perByte)]! &= ~((2 ** bits - 1) << ((index % perByte) * bits))
  putCode(bits, packed, index, code)
}
