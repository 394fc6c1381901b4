/** Statistics of a tensor's elements, counted natively in one pass and in bounded memory, whatever source holds them. */

import { readInto } from '../bytes/fill_memory.js'
import { systemError } from '../bytes/system_error.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted, withCancelFlag } from '../cancel.js'
import { DTYPES } from '../dtype/dtypes.js'
import { packedByteLength } from '../dtype/packed_codes.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { MAX_BINS, MIN_BINS } from '../native/limits.js'
import type { NativeStatistics, NativeStatisticsResult } from '../native/types.js'
import { valueText } from '../value_text.js'
import { asStored, type StoredTensor } from './dense.js'
import { nativeStorageOf } from './native_storage.js'
import { isPlain } from './plain_storage.js'
import { checkNumbers } from './quantize.js'
import { reorder } from './reorder.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/** Counts of the finite numbers in bins of equal width. */
export interface Histogram {
  /** Lower bound of the first bin: a multiple of `width`, or the lowest float64 where that multiple overflows. */
  readonly start: number
  /**
   * Width of each bin: a power of two, or the largest float64 where that overflows. Bin `i` counts the numbers `x` with
   * `start + i * width <= x < start + (i + 1) * width`.
   */
  readonly width: number
  /** At most `bins` counts; more than half as many where the numbers are spread widely enough. */
  readonly counts: readonly number[]
}

/**
 * Statistics of the logical elements, without padding. Complex elements have no order, so all fields but `count` describe their
 * magnitudes: an element with an infinite half is infinite, one with NaN and a finite half is NaN.
 */
export interface TensorStatistics {
  readonly count: number
  /** Smallest finite number; a bigint for 64-bit integers, null without a finite number. */
  readonly min: number | bigint | null
  /** Largest finite number, as `min`. */
  readonly max: number | bigint | null
  /** Mean of the finite numbers, summed in float64; null without a finite number. */
  readonly mean: number | null
  /** Number of zeros, -0 included. */
  readonly zeros: number
  /** `zeros / count`; 0 for an empty tensor. */
  readonly zeroShare: number
  readonly nans: number
  readonly infinities: number
  /** Null without a finite number. A 64-bit integer counts in the bin of its nearest float64. */
  readonly histogram: Histogram | null
}

export interface StatsOptions {
  /** Largest number of histogram bins, 2 to 1024. Default 64. */
  readonly bins?: number
  readonly signal?: AbortSignal
  /** Called with the number of bytes counted since the last call. */
  readonly onBytes?: (bytes: number) => void
}

/** Bytes counted between two checks of the signal; a multiple of every element size. */
const STEP_BYTES = 32 * 1024 * 1024
/** Bytes of a window that is read through JavaScript while the previous one is counted. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Minimum, maximum, mean, zeros, NaN, infinities and a histogram in one pass over the elements. Reads a file by its range and
 * any other source in windows, so it takes a few MiB of memory. The result does not depend on the number of threads.
 *
 * @param tensor - a dense tensor in any layout, lazy tensors included
 * @throws TileworkError ERR_UNSUPPORTED for a tensor that is not dense; ERR_ARGUMENT, ERR_NO_DATA, ERR_ABORTED, and what
 * reading the bytes throws
 */
export async function stats(tensor: AnyTensor, options: StatsOptions = {}): Promise<TensorStatistics> {
  const dense = checkNumbers(tensor, 'stats')
  checkOptions(options, 'stats', ['bins', 'signal', 'onBytes'])
  const given = readInput('The options of stats', () => ({ ...options }))
  const { bins = 64, signal, onBytes = () => undefined } = given
  checkListener(onBytes, 'onBytes')
  if (!Number.isInteger(bins) || bins < MIN_BINS || bins > MAX_BINS) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `bins is ${valueText(bins)}; it must be a whole number from ${MIN_BINS} to ${MAX_BINS}.`,
    )
  }
  throwIfAborted(signal)
  const plain = asStored(isPlain(dense.storage) ? dense : reorder(dense, 'row_major'))
  const counted = native().createStatistics(isComplex(dense) ? 'float64' : dense.dtype, bins)
  await systemError.wrapAsync(plain.source.label ?? dense.name, () =>
    countAll(plain, counted, signal, onBytes),
  )
  return resultOf(counted.result())
}

async function countAll(
  tensor: StoredTensor,
  counted: NativeStatistics,
  signal: AbortSignal | undefined,
  onBytes: (bytes: number) => void,
): Promise<void> {
  if (isComplex(tensor)) return countWindows(tensor, counted, signal, onBytes)
  const storage = nativeStorageOf(tensor)
  if (!storage) return countWindows(tensor, counted, signal, onBytes)
  const { side, start: from } = storage
  for (const { start, end, count } of stepsOf(tensor, STEP_BYTES)) {
    await withCancelFlag(signal, (cancel) =>
      side instanceof Uint8Array
        ? counted.add(side.subarray(from + start, from + end), count, cancel)
        : counted.addFile(side, from + start, count, cancel),
    )
    onBytes(end - start)
  }
}

/** Counts one window while it reads the next. */
async function countWindows(
  tensor: StoredTensor,
  counted: NativeStatistics,
  signal: AbortSignal | undefined,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const { byteLength } = tensor.storage
  const windows = [0, 1].map(() => allocateBytes(Math.min(WINDOW_BYTES, byteLength)))
  let counting: Promise<void> = Promise.resolve()
  try {
    for (const { start, end, count } of stepsOf(tensor, WINDOW_BYTES)) {
      throwIfAborted(signal)
      const bytes = windows[(start / WINDOW_BYTES) % 2]!.subarray(0, end - start)
      await readInto(tensor.source, tensor.start + start, bytes)
      await counting
      counting = counted.add(isComplex(tensor) ? magnitudesOf(bytes, tensor) : bytes, count)
      // Awaited in the next iteration; until then Node would report a failure as an unhandled rejection.
      counting.catch(() => undefined)
      onBytes(end - start)
    }
  } finally {
    await counting
  }
}

function isComplex({ dtype }: DenseTensor): boolean {
  return DTYPES[dtype].kind === 'complex'
}

/** Magnitudes of complex elements as float64; overflow gives infinity. */
function magnitudesOf({ buffer, byteOffset, byteLength }: Uint8Array, { dtype }: DenseTensor): Uint8Array {
  const halves =
    dtype === 'complex64'
      ? new Float32Array(buffer, byteOffset, byteLength / 4)
      : new Float64Array(buffer, byteOffset, byteLength / 8)
  const magnitudes = new Float64Array(halves.length / 2)
  for (let at = 0; at < magnitudes.length; at++) {
    magnitudes[at] = Math.hypot(halves[2 * at]!, halves[2 * at + 1]!)
  }
  return new Uint8Array(magnitudes.buffer)
}

/** Consecutive ranges of whole elements of the storage, with their element counts. */
function* stepsOf(
  { dtype, size }: DenseTensor,
  stepBytes: number,
): Generator<{ start: number; end: number; count: number }> {
  const byteLength = packedByteLength(dtype, size)
  const { bits } = DTYPES[dtype]
  // Eight elements are `bits` bytes.
  const step = Math.max(1, Math.floor(stepBytes / bits)) * bits
  for (let start = 0; start < byteLength; start += step) {
    const end = Math.min(start + step, byteLength)
    const first = (start / bits) * 8
    const last = end === byteLength ? size : (end / bits) * 8
    yield { start, end, count: last - first }
  }
}

function resultOf(result: NativeStatisticsResult): TensorStatistics {
  const { count, zeros, nans, infinities, min = null, max = null, mean = null, histogram } = result
  const zeroShare = count === 0 ? 0 : zeros / count
  return { count, min, max, mean, zeros, zeroShare, nans, infinities, histogram: histogramOf(histogram) }
}

function histogramOf(histogram: NativeStatisticsResult['histogram']): Histogram | null {
  if (!histogram) return null
  const { first, exponent } = histogram
  // Bounds near the largest float64 may be 2^1024, which overflows.
  const width = Math.min(2 ** exponent, Number.MAX_VALUE)
  const start = first === 0 ? 0 : Math.max(first * 2 ** exponent, -Number.MAX_VALUE)
  return { start, width, counts: Array.from(histogram.counts) }
}
