/** The offset table of a BTF file, and the order in which its records lie. */
import type { ByteReader } from '../../bytes/reader.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { DIGIT_BITS, digitsOf, radixSort } from '../../tensor/radix_sort.js'
import type { Report } from './report.js'
import { ALIGNMENT, HEADER_BYTES, U64_BYTES } from './schema.js'

/** Reads the table; NaN stands for an offset where no record can be, which is reported. */
export async function readOffsets(reader: ByteReader, count: number, report: Report): Promise<Float64Array> {
  const offsets = new Float64Array(allocateBytes(U64_BYTES * count).buffer)
  const first = U64_BYTES + U64_BYTES * count
  const last = reader.byteLength - HEADER_BYTES
  for (let index = 0; index < count; index++) {
    if (!reader.holds(U64_BYTES)) await reader.load(U64_BYTES)
    const offset = reader.u64()
    const isInside = offset >= first && offset <= last
    if (!isInside) reportOutside(index, offset, { first, last }, report)
    else if ((offset as number) % ALIGNMENT !== 0) reportMisaligned(index, offset, report)
    offsets[index] = isInside ? (offset as number) : Number.NaN
  }
  return offsets
}

/** Path and byte offset of an entry of the table. */
function placeOf(index: number): { path: string; offset: number } {
  return { path: `offsets[${index}]`, offset: U64_BYTES + U64_BYTES * index }
}

function reportMisaligned(index: number, offset: number | bigint, report: Report): void {
  report.deviation('ERR_MISALIGNED', () => ({
    message: `tensors[${index}] starts at ${offset}, which is no multiple of ${ALIGNMENT}.`,
    ...placeOf(index),
  }))
}

function reportOutside(
  index: number,
  offset: number | bigint,
  { first, last }: { first: number; last: number },
  report: Report,
): void {
  report.broken('ERR_OFFSET_RANGE', () => {
    const where =
      last < first ? 'the file has no room for any record' : `records lie from ${first} to ${last}`
    return { message: `tensors[${index}] starts at ${offset}; ${where}.`, ...placeOf(index) }
  })
}

/** Indices of the usable offsets, by ascending offset; equal ones in the order of the table. */
export function orderOf(offsets: Float64Array): Uint32Array<ArrayBuffer> {
  let usable = 0
  const order = new Uint32Array(allocateBytes(4 * offsets.length).buffer)
  let isAscending = true
  let highest = 0
  for (let index = 0; index < offsets.length; index++) {
    const offset = offsets[index]!
    if (Number.isNaN(offset)) continue
    if (offset < highest) isAscending = false
    else highest = offset
    order[usable++] = index
  }
  const found = order.subarray(0, usable)
  // Known writers go front to back, so most files need no sorting.
  return isAscending ? found : sortByOffset(found, offsets, highest)
}

/** Sorted by the digits of the offsets, so that no order of a hostile table makes it slow. */
function sortByOffset(
  order: Uint32Array<ArrayBuffer>,
  offsets: Float64Array,
  highest: number,
): Uint32Array<ArrayBuffer> {
  const scales = Array.from({ length: digitsOf(highest) }, (_, pass) => 2 ** (DIGIT_BITS * pass))
  // `>>>` takes the whole part of a quotient modulo 2^32, which leaves the digit as it is.
  return radixSort(order, scales.length, (index, pass) => ((offsets[index]! / scales[pass]!) >>> 0) & 0xffff)
}
