/** Reads extra fields of local headers and directory entries: a list of tagged fields, of which only zip64 is used. */

import { u64At, viewOf } from './end.js'
import { EXTRA_ZIP64, U32_ESCAPE } from './schema.js'

/** Numbers of a header, with zip64 values substituted. */
export interface ExtraNumbers {
  readonly bytes: number | bigint
  readonly compressedBytes: number | bigint
  readonly localOffset: number | bigint
}

/** A fault of the extra fields, as the end of a sentence. */
export interface ExtraFault {
  readonly fault: string
}

/**
 * Replaces each 0xffffffff by the next number of the zip64 field, which holds only those, in this order. Without such a
 * field 0xffffffff is an ordinary value.
 */
export function resolveZip64(extra: Uint8Array, numbers: ExtraNumbers): ExtraNumbers | ExtraFault {
  const view = viewOf(extra)
  let zip64: DataView | undefined
  let at = 0
  for (; at + 4 <= extra.byteLength; ) {
    const [tag, size] = [view.getUint16(at, true), view.getUint16(at + 2, true)]
    if (at + 4 + size > extra.byteLength) return { fault: 'has an extra field that exceeds the extra data' }
    if (tag === EXTRA_ZIP64) {
      if (zip64) return { fault: 'has two zip64 fields' }
      zip64 = viewOf(extra.subarray(at + 4, at + 4 + size))
    }
    at += 4 + size
  }
  return zip64 ? replaceEscapes(zip64, numbers) : numbers
}

function replaceEscapes(zip64: DataView, numbers: ExtraNumbers): ExtraNumbers | ExtraFault {
  let at = 0
  const next = (plain: number | bigint): number | bigint => {
    if (plain !== U32_ESCAPE) return plain
    at += 8
    return at <= zip64.byteLength ? u64At(zip64, at - 8) : Number.NaN
  }
  const bytes = next(numbers.bytes)
  const compressedBytes = next(numbers.compressedBytes)
  const localOffset = next(numbers.localOffset)
  if (at > zip64.byteLength) return { fault: 'has a zip64 field that lacks required numbers' }
  return { bytes, compressedBytes, localOffset }
}
