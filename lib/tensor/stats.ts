/** What the numbers of a tensor look like: one native pass in bounded memory, whatever the tensor lies in. */

import { isResizable, readInto } from '../bytes/fill_memory.js'
import { MemorySource } from '../bytes/memory.js'
import { nativeFileOf } from '../bytes/native_file.js'
import { systemError } from '../bytes/system_error.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted, withCancelFlag } from '../cancel.js'
import { packedByteLength } from '../dtype/decode.js'
import { DTYPES } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { native } from '../native/addon.js'
import { MAX_BINS, MIN_BINS } from '../native/limits.js'
import type { NativeStatistics, NativeStatisticsResult } from '../native/types.js'
import { valueText } from '../value_text.js'
import { asStored, type StoredTensor } from './dense.js'
import { isPlain } from './plain_storage.js'
import { checkNumbers } from './quantize.js'
import { reorder } from './reorder.js'
import type { DenseTensor, Tensor } from './tensor.js'

/** How many numbers lie in equal parts of their range. */
export interface Histogram {
  /** Where the first bin begins: a multiple of `width`, or the least float64 where that is none. */
  readonly start: number
  /** Of each bin, a power of two, or the largest float64 where that is none. Bin `i` has the finite numbers from `start + i * width` on, below the next bin's. */
  readonly width: number
  /** At most as many as asked for, and more than half of that where the numbers differ enough. */
  readonly counts: readonly number[]
}

/**
 * Statistics of the logical elements; padding does not count. Of complex elements, which have no order, all but `count` are
 * those of their magnitudes: one with an infinite half is infinite, and one with NaN beside a finite half is NaN.
 */
export interface TensorStatistics {
  readonly count: number
  /** Smallest and largest finite number, of 64-bit integers as a bigint; null without one. */
  readonly min: number | bigint | null
  readonly max: number | bigint | null
  /** Mean of the finite numbers, from a sum in float64; null without one. */
  readonly mean: number | null
  /** 0 and -0, and their share of all; the share of nothing is 0. */
  readonly zeros: number
  readonly zeroShare: number
  readonly nans: number
  readonly infinities: number
  /** Of the finite numbers; null without one. 64-bit integers are put in the bin of the nearest float64. */
  readonly histogram: Histogram | null
}

export interface StatsOptions {
  /** Most bins of the histogram, from 2 to 1024. Default 64. */
  readonly bins?: number
  readonly signal?: AbortSignal
  /** Called with the number of storage bytes just counted. */
  readonly onBytes?: (bytes: number) => void
}

/** What is counted between two looks at the signal. A multiple of every element size. */
const STEP_BYTES = 32 * 1024 * 1024
/** What is read through JavaScript while the one before it is counted. */
const WINDOW_BYTES = 4 * 1024 * 1024

/**
 * Smallest, largest and mean value, zeros, NaN, infinities and a histogram, in one pass over the elements: a tensor of a
 * file by reads of its range, and any other a window at a time, so memory stays at some MiB. The result does not depend
 * on the number of threads.
 *
 * @param tensor - a dense tensor of numbers, in any layout, also a lazy one
 * @throws TileworkError ERR_UNSUPPORTED for a tensor that is not dense; ERR_ARGUMENT, ERR_NO_DATA, ERR_ABORTED, and what
 * reading the bytes throws
 */
export async function stats(tensor: Tensor, options: StatsOptions = {}): Promise<TensorStatistics> {
  const dense = checkNumbers(tensor, 'stats')
  checkOptions(options, 'stats', ['bins', 'signal', 'onBytes'])
  const given = readInput('The options of stats', () => ({ ...options }))
  const { bins = 64, signal, onBytes = () => undefined } = given
  checkListener(onBytes, 'onBytes')
  if (!Number.isInteger(bins) || bins < MIN_BINS || bins > MAX_BINS) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `bins is ${valueText(bins)}; it must be from ${MIN_BINS} to ${MAX_BINS}.`,
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
  const file = nativeFileOf(tensor.source)
  const memory = tensor.source instanceof MemorySource ? heldBytes(tensor) : undefined
  if (!file && !memory) return countWindows(tensor, counted, signal, onBytes)
  for (const { start, end, count } of stepsOf(tensor, STEP_BYTES)) {
    await withCancelFlag(signal, (cancel) =>
      file
        ? counted.addFile(file, tensor.start + start, count, cancel)
        : counted.add(memory!.subarray(start, end), count, cancel),
    )
    onBytes(end - start)
  }
}

/** Bytes that stay where they are while other threads read them; absent for memory that its owner may shrink. */
function heldBytes(tensor: DenseTensor): Uint8Array | undefined {
  const bytes = tensor.bytesSync()
  return isResizable(bytes) ? undefined : bytes
}

/** One window is counted while the next is read. */
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
      // Awaited before the next is begun; without this Node would take a failure meanwhile for one that nobody sees.
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

/** As float64, in which those beyond the largest number are infinity. */
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

/** Ranges of the storage that are whole elements, and how many each has. */
function* stepsOf(
  { dtype, size }: DenseTensor,
  stepBytes: number,
): Generator<{ start: number; end: number; count: number }> {
  const byteLength = packedByteLength(dtype, size)
  const { bits } = DTYPES[dtype]
  for (let start = 0; start < byteLength; start += stepBytes) {
    const end = Math.min(start + stepBytes, byteLength)
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
  // Of numbers near the largest the bounds may be 2^1024, which no number is.
  const width = Math.min(2 ** exponent, Number.MAX_VALUE)
  const start = first === 0 ? 0 : Math.max(first * 2 ** exponent, -Number.MAX_VALUE)
  return { start, width, counts: Array.from(histogram.counts) }
}
