/**
 * BTF, the Binary Tensor Format of TFRT: the constants of the format and the limits of reading it.
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
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'btf'

/** Element types by code, 0 to 9. The runtime has more types; only these have a code. */
export const DTYPE_BY_CODE: readonly Dtype[] = [...dtypesBy('btf')]
  .sort(([one], [other]) => one - other)
  .map(([, dtype]) => dtype)

export const LAYOUT_DENSE = 0
/** The number that every reader and writer of TFRT uses for COO. */
export const LAYOUT_COO = 1
/** The number for COO in TFRT's public document. No known program writes it, and it has no other meaning. */
export const LAYOUT_COO_OF_DOCUMENT = 2

export const U64_BYTES = 8
/** Rank, dtype, layout and reserved bytes. */
export const HEADER_BYTES = 16
/** Offsets of the element type, the layout and the reserved bytes in a record header. */
export const DTYPE_START = 8
export const LAYOUT_START = 9
export const RESERVED_START = 10
/** A number that starts at the element type and reaches this value has a reserved byte that is not zero. */
export const RESERVED_BIT = 2 ** 16
/** Records start at multiples of this and are padded to one. */
export const ALIGNMENT = 8

/** TFRT's shape class holds the rank in one byte; a larger one would wrap modulo 256. */
export const MAX_RANK = 255

/** TFRT reads dimensions and their products as signed 64-bit numbers: from this value on they are negative. */
export const DIM_LIMIT = 2n ** 63n

/** Byte counts wrap at this value: every implementation stores them in 64 bits. */
export const BYTES_LIMIT = 2n ** 64n

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /**
   * A record takes about 20 bytes of memory, so the limit allows 1.3 GB. The offset table alone of a file with more records would
   * be larger than any known file.
   */
  tensors: 2 ** 26,
  /**
   * Offset table and record headers. Headers of records that do not overlap are smaller than the file; only overlapping headers
   * could need more memory than the file has bytes. The kept numbers are addressed by 32 bits; 2^26 records of rank 4 fit.
   */
  headerBytes: { perFileByte: 1, atMost: 2 ** 32 },
  /**
   * Records must not overlap, so the sum is at most the size of the file. The limit stops a check of a file whose records share
   * data: such a file is made to exhaust the memory of a program that loads all of it.
   */
  totalBytes: { perFileByte: 4 },
} as const satisfies DefaultLimits

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
