/** Reads the offset table of a BTF file and sorts its records by offset. */
import type { ByteReader } from '../../bytes/reader.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { DIGIT_BITS, digitsOf, radixSort } from '../../tensor/radix_sort.js'
import type { Place, Report } from '../report.js'
import { ALIGNMENT, HEADER_BYTES, U64_BYTES } from './schema.js'

/** Reads the table. An offset where no record fits becomes NaN and is reported. */
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

function placeOf(index: number): Place {
  return { path: `offsets[${index}]`, offset: U64_BYTES + U64_BYTES * index }
}

function reportMisaligned(index: number, offset: number | bigint, report: Report): void {
  report.deviation(
    'ERR_MISALIGNED',
    () => `tensors[${index}] starts at ${offset}; records start at multiples of ${ALIGNMENT}.`,
    () => placeOf(index),
  )
}

function reportOutside(
  index: number,
  offset: number | bigint,
  { first, last }: { first: number; last: number },
  report: Report,
): void {
  const allowed =
    last < first ? 'the file has no room for any record' : `records start at ${first} to ${last}`
  report.broken(
    'ERR_OFFSET_RANGE',
    () => `tensors[${index}] starts at ${offset}; ${allowed}.`,
    () => placeOf(index),
  )
}

/** Indices of the usable offsets in ascending order of offset; equal offsets stay in the order of the table. */
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
  const indices = order.subarray(0, usable)
  // Known writers write front to back, so most files need no sorting.
  return isAscending ? indices : sortByOffset(indices, offsets, highest)
}

/** A radix sort: its time does not depend on the order, so a hostile table cannot make it slow. */
function sortByOffset(
  order: Uint32Array<ArrayBuffer>,
  offsets: Float64Array,
  highest: number,
): Uint32Array<ArrayBuffer> {
  const scales = Array.from({ length: digitsOf(highest) }, (_, digit) => 2 ** (DIGIT_BITS * digit))
  // `>>>` truncates the quotient modulo 2^32, which keeps the low 16 bits.
  return radixSort(
    order,
    scales.length,
    (index, digit) => ((offsets[index]! / scales[digit]!) >>> 0) & 0xffff,
  )
}
