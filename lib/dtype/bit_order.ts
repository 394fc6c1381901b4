/**
 * Swaps the bit order of sub-byte elements. tilework, ONNX, safetensors and OpenVINO pack the first element into the lowest
 * bits; weight files of some other tools start with the highest.
 */
import { bytesOfView } from '../bytes/view_bytes.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { DTYPES, type DtypeName, resolveDtype } from './dtypes.js'

/** Whether the first sub-byte element is in the lowest or the highest bits of its byte. */
export type BitOrder = 'low-first' | 'high-first'

/**
 * Reverses the order of the elements in each byte: `low-first` becomes `high-first` and the reverse. In an incomplete last
 * byte the elements move to the other end.
 *
 * @param bytes - packed elements of `dtype`, a type of 4 or 2 bits
 * @returns a copy of the same length
 * @throws TileworkError ERR_DTYPE for a type of 8 bits or more; ERR_ARGUMENT, ERR_LIMIT
 */
export function swapBitOrder(bytes: Uint8Array, dtype: DtypeName): Uint8Array<ArrayBuffer> {
  const { name, bits } = DTYPES[resolveDtype(dtype)]
  if (bits !== 4 && bits !== 2) {
    const message = `swapBitOrder takes element types of 4 or 2 bits; ${name} has ${bits} bits`
    throw new TileworkError('ERR_DTYPE', message)
  }
  if (!ArrayBuffer.isView(bytes)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `swapBitOrder was given ${valueText(bytes)}; it takes a Uint8Array`,
    )
  }
  const source = bytesOfView(bytes, 'the bytes')
  const table = Uint8Array.from({ length: 256 }, (_, byte) => reversed(byte, bits))
  const swapped = allocateBytes(source.byteLength)
  for (let i = 0; i < swapped.length; i++) swapped[i] = table[source[i]!]!
  return swapped
}

function reversed(byte: number, bits: number): number {
  let result = 0
  for (let at = 0; at < 8; at += bits) {
    result |= ((byte >> at) & (2 ** bits - 1)) << (8 - bits - at)
  }
  return result
}
