/** `--stats`: what the numbers of a tensor look like, read in windows so that memory stays bounded. */
import { throwIfAborted } from '../cancel.js'
import { decodeAll } from '../dtype/decode.js'
import { turn } from '../event_loop.js'
import { DTYPES, reorder, type Tensor, type TypedArray } from '../index.js'

/** Statistics of the logical elements; padding does not count. */
export interface ElementStatistics {
  /** Smallest and largest finite value; null without one. A text where a number of JSON would not be exact. */
  readonly min: number | string | null
  readonly max: number | string | null
  /** Mean of the finite values; null without one. */
  readonly mean: number | null
  readonly zeros: number
  readonly nans: number
  readonly infinities: number
}

/** A multiple of every element size, so that no element is cut. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Statistics of a dense tensor of numbers; null for any other.
 *
 * @param onBytes - called with the number of bytes just read
 * @throws TileworkError ERR_ABORTED, and what reading the bytes throws
 */
export async function elementStatistics(
  tensor: Tensor,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<ElementStatistics | null> {
  const { kind, bits } = DTYPES[tensor.dtype]
  if (tensor.kind !== 'dense' || kind === 'complex' || kind === 'string') return null
  const { storage } = tensor
  const rowMajor = storage.layout === 'row_major' ? tensor : reorder(tensor, 'row_major')
  const { byteLength, elements } = rowMajor.storage
  const tally = kind !== 'float' && bits === 64 ? new BigIntTally() : new NumberTally()
  const window = new Uint8Array(Math.min(WINDOW_BYTES, byteLength))
  for (let start = 0; start < byteLength; start += WINDOW_BYTES) {
    throwIfAborted(signal)
    const bytes = window.subarray(0, Math.min(WINDOW_BYTES, byteLength - start))
    await rowMajor.copyTo(bytes, { start })
    const count = Math.min((bytes.byteLength * 8) / bits, elements - (start * 8) / bits)
    tally.add(decodeAll(tensor.dtype, bytes, count))
    onBytes(bytes.byteLength)
    await turn()
  }
  return tally.result()
}

class NumberTally {
  #min = Number.POSITIVE_INFINITY
  #max = Number.NEGATIVE_INFINITY
  #mean = 0
  #finite = 0
  #zeros = 0
  #nans = 0
  #infinities = 0

  add(values: TypedArray): void {
    for (const value of values as Iterable<number>) {
      if (value === 0) this.#zeros++
      if (Number.isFinite(value)) this.#addFinite(value)
      else if (Number.isNaN(value)) this.#nans++
      else this.#infinities++
    }
  }

  #addFinite(value: number): void {
    if (value < this.#min) this.#min = value
    if (value > this.#max) this.#max = value
    this.#finite++
    // A running mean cannot overflow; of halves, since the difference of two doubles can.
    this.#mean += 2 * ((value / 2 - this.#mean / 2) / this.#finite)
  }

  result(): ElementStatistics {
    const isEmpty = this.#finite === 0
    return {
      min: isEmpty ? null : this.#min,
      max: isEmpty ? null : this.#max,
      mean: isEmpty ? null : this.#mean,
      zeros: this.#zeros,
      nans: this.#nans,
      infinities: this.#infinities,
    }
  }
}

/** 64-bit integers, exactly. */
class BigIntTally {
  #min: bigint | undefined
  #max: bigint | undefined
  #sum = 0n
  #count = 0
  #zeros = 0

  add(values: TypedArray): void {
    for (const value of values as Iterable<bigint>) {
      if (this.#min === undefined || value < this.#min) this.#min = value
      if (this.#max === undefined || value > this.#max) this.#max = value
      if (value === 0n) this.#zeros++
      this.#sum += value
      this.#count++
    }
  }

  result(): ElementStatistics {
    return {
      min: jsonNumber(this.#min),
      max: jsonNumber(this.#max),
      mean: this.#count === 0 ? null : Number(this.#sum) / this.#count,
      zeros: this.#zeros,
      nans: 0,
      infinities: 0,
    }
  }
}

function jsonNumber(value: bigint | undefined): number | string | null {
  if (value === undefined) return null
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}
