/**
 * Sizes of tensors as a file declares them, exact and checked before anything is allocated: the numbers of a hostile
 * file multiply far beyond 2^53.
 */

/** An exact whole number: a bigint above 2^53 - 1. The two compare with each other as numbers do. */
export type Exact = number | bigint

/** Bigints are slow, and most products are far below 2^53, where those of numbers are exact. */
export function multiply(one: Exact, other: number): Exact {
  const product = Number(one) * other
  return product <= Number.MAX_SAFE_INTEGER ? product : BigInt(one) * BigInt(other)
}

/** How many elements a shape has. */
export interface ExactSize {
  /** 0 where an extent is 0. */
  readonly elements: Exact
  /** The product of the extents that are not 0. Readers that multiply in order overflow by it, whatever follows. */
  readonly nonZero: Exact
}

/** @param shape - whole numbers from 0 to 2^53 - 1 */
export function exactSizeOf(shape: readonly number[]): ExactSize {
  let nonZero: Exact = 1
  let isEmpty = false
  for (const extent of shape) {
    if (extent === 0) isEmpty = true
    else nonZero = multiply(nonZero, extent)
  }
  return { elements: isEmpty ? 0 : nonZero, nonZero }
}

/** Bytes of packed elements; those below 8 bits share bytes, and the last byte may be partly unused. */
export function exactByteLength(elements: Exact, bits: number): Exact {
  if (bits >= 8) return multiply(elements, bits / 8)
  const total = multiply(elements, bits)
  if (typeof total === 'number') return Math.ceil(total / 8)
  const bytes = (total + 7n) / 8n
  return bytes <= Number.MAX_SAFE_INTEGER ? Number(bytes) : bytes
}

/**
 * Why a range does not lie in a file, to follow a subject: `needs 12 bytes at 8; the file ends at 16`. Undefined where it
 * does.
 *
 * @param start - from 0; may lie behind the end
 */
export function rangeFault(start: number, byteLength: Exact, fileBytes: number): string | undefined {
  if (byteLength <= fileBytes - start) return undefined
  return `needs ${byteLength} bytes at ${start}; the file ends at ${fileBytes}`
}
