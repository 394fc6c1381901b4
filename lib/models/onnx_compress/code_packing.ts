/** Packing of codes. */
import type { BlockBits } from '../../tensor/number_blocks.js'

/** Packs rows of `length` codes to whole bytes each, the first code in the lowest bits; slots beyond the last are `fill`. */
export function packRows(codes: Uint8Array, length: number, bits: BlockBits, fill = 0): Uint8Array {
  const perByte = 8 / bits
  const rowBytes = Math.ceil(length / perByte)
  const packed = new Uint8Array((codes.length / length) * rowBytes)
  for (let at = 0; at < packed.length; at++) {
    const row = Math.floor(at / rowBytes)
    const first = (at - row * rowBytes) * perByte
    for (let slot = 0; slot < perByte; slot++) {
      const code = first + slot < length ? codes[row * length + first + slot]! : fill
      packed[at]! |= (code & (2 ** bits - 1)) << (slot * bits)
    }
  }
  return packed
}
