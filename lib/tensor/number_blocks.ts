/** What the addon computes of arrays of float32 numbers at once: codes of blocks, ranges, limits of magnitudes. */
import { native } from '../native/addon.js'
import type { NativeBlockRule } from '../native/types.js'

export type BlockBits = 2 | 4 | 8
export type BlockRule = NativeBlockRule

/** A row-major matrix of which blocks run down its columns or along its rows. */
export interface BlockMatrix {
  readonly rows: number
  readonly columns: number
  readonly blockSize: number
  readonly down: boolean
}

/** Memory of the results: scales and zero points have one entry per block, zero points none where symmetric. */
export interface BlockResults {
  readonly codes: Uint8Array
  readonly scales: Float32Array
  readonly zeros: Uint8Array
}

/**
 * Quantizes blocks of numbers. Codes keep the order of the numbers, packed without gaps; with `lines` they are those of each
 * line, which has that number of blocks, from block `first` on.
 */
export function quantizeBlocks(
  numbers: Float32Array,
  rule: BlockRule,
  matrix: BlockMatrix,
  { codes, scales, zeros }: BlockResults,
  lines?: { readonly blocks: number; readonly first: number },
): void {
  native().quantizeBlocks(bytesOf(numbers), rule, matrix, { codes, scales: bytesOf(scales), zeros, ...lines })
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength)
}

/** The 4-bit codes of bitsandbytes, and the greatest magnitude of each block. An odd last code is paired with that of 0. */
export function quantizeBnb4(
  numbers: Float32Array,
  kind: 'nf4' | 'fp4',
  blockSize: number,
): { readonly codes: Uint8Array; readonly magnitudes: Float32Array } {
  const magnitudes = new Float32Array(Math.ceil(numbers.length / blockSize))
  const codes = new Uint8Array(Math.ceil(numbers.length / 2))
  native().quantizeBnb4(bytesOf(numbers), kind, blockSize, codes, bytesOf(magnitudes))
  return { codes, magnitudes }
}

/** Number of values that were reduced to the largest magnitude, and raised to the smallest. */
export interface ClipCounts {
  readonly clipped: number
  readonly lifted: number
}

/** Moves magnitudes of finite numbers other than 0 into `[min, max]`, in place. */
export function clipMagnitudes(numbers: Float32Array, min: number, max: number): ClipCounts {
  return native().clipMagnitudes(bytesOf(numbers), min, max)
}

/**
 * Extends the least and greatest number of each run of `length` numbers, by consecutive numbers from index `start` on. NaN is
 * ignored.
 */
export function extendRanges(
  numbers: Float32Array,
  start: number,
  length: number,
  low: Float32Array,
  high: Float32Array,
): void {
  native().extendBlockRanges(bytesOf(numbers), start, length, length, bytesOf(low), bytesOf(high))
}
