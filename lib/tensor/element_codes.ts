/** Unpacks sub-byte elements to one byte each and packs them again. */
import { allocateBytes } from '../bytes/view_limit.js'
import { codeAt, storeCode } from '../dtype/packed_codes.js'

/** The codes of `count` packed elements, one byte each. */
export function unpackCodes(bits: number, packed: Uint8Array, count: number): Uint8Array<ArrayBuffer> {
  const codes = allocateBytes(count)
  for (let i = 0; i < count; i++) codes[i] = codeAt(bits, packed, i)
  return codes
}

/** Packs codes of one byte each into `packed`, which must be zero, from its start. */
export function packCodes(bits: number, codes: Uint8Array, packed: Uint8Array): void {
  for (let i = 0; i < codes.length; i++) storeCode(bits, packed, i, codes[i]!)
}
