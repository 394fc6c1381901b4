/**
 * BTF, the Binary Tensor Format of TFRT: the numbers of the format and the limits of reading it.
 *
 *     file    = count u64 · offset u64 × count · records
 *     record  = rank u64 · dtype u8 · layout u8 · 6 reserved bytes · payload · zeros up to a multiple of 8
 *     dense   = dims u64 × rank · elements, last dimension fastest
 *     COO     = dims u64 × rank · N u64 · rank u64 · indices i64 × N × rank · N u64 · values × N
 *
 * All little-endian; no magic number, no names. Source: `include/tfrt/tensor/btf.h`, `btf_util.h` and the readers and
 * the writer beside them in the repository tensorflow/runtime at commit 4ecc3a44.
 */
import { type Dtype, dtypesBy } from '../../dtype/dtypes.js'

export const FORMAT_NAME = 'btf'

/** Element types by their code, 0 to 9. The runtime has more types; these ten have a code. */
export const DTYPE_BY_CODE: readonly Dtype[] = [...dtypesBy('btf')]
  .sort(([one], [other]) => one - other)
  .map(([, dtype]) => dtype)

export const LAYOUT_DENSE = 0
/** Every reader and writer of TFRT uses 1 for COO. */
export const LAYOUT_COO = 1
/** TFRT's public document says 2 for COO; no code ever wrote it. Nothing else can have it. */
export const LAYOUT_COO_OF_DOCUMENT = 2

export const U64_BYTES = 8
/** Rank, dtype, layout and reserved bytes. */
export const HEADER_BYTES = 16
/** Where in the header the element type, the layout and the reserved bytes stand. */
export const DTYPE_START = 8
export const LAYOUT_START = 9
export const RESERVED_START = 10
/** From here on a number that begins at the element type reaches into the reserved bytes. */
export const RESERVED_BIT = 2 ** 16
/** Records start, and are padded, at multiples of this. */
export const ALIGNMENT = 8

/** TFRT's shape class holds a rank in one byte; more would come out as rank mod 256 there. */
export const MAX_RANK = 255

/** TFRT reads dimensions as signed 64-bit numbers, so those from here on are negative to it; products likewise. */
export const DIM_LIMIT = 2n ** 63n

/** Byte counts from here on wrap in the 64 bits that every implementation has for them. */
export const BYTES_LIMIT = 2n ** 64n

/**
 * Most records of a file that is opened. The list takes some 20 bytes a record in memory, so this ends at 1.3 GB;
 * a file with more records than this has more table than any known file has data.
 */
export const DEFAULT_TENSORS_LIMIT = 2 ** 26

/**
 * Most bytes of offset table and record headers, in file sizes. Records that do not overlap always stay within one
 * file size; only headers that lie inside each other could ask for more memory than the file has bytes.
 */
export const HEADER_BYTES_LIMIT_IN_FILES = 1

/**
 * Most bytes of offset table and record headers at all. What is kept of them takes no more memory than they do, and
 * its numbers must be fewer than 2^32 to be addressed; 2^26 records of rank 4 stay below.
 */
export const DEFAULT_HEADER_BYTES_LIMIT = 2 ** 32

/**
 * Most bytes that all records together may decode to, in file sizes. Without overlap the sum is at most one file
 * size. Some sharing of data is legal for TFRT; a file where each byte is used more than four times over
 * is made to exhaust whoever loads all of it.
 */
export const TOTAL_BYTES_LIMIT_IN_FILES = 4

/** Most findings kept of a file: enough for a person and for a program, bounded where every record is bad. */
export const MAX_FINDINGS = 1000

/** `value` rounded up to a multiple of 8. */
export function alignUp(value: number): number {
  return Math.ceil(value / ALIGNMENT) * ALIGNMENT
}

/** An unsigned 64-bit number read in the other byte order. */
export function swapBytes(value: number | bigint): bigint {
  const view = new DataView(new ArrayBuffer(U64_BYTES))
  view.setBigUint64(0, BigInt(value), true)
  return view.getBigUint64(0, false)
}
