/** `--stats`: statistics of the elements of a tensor, as JSON and as a one-line histogram. */
import { type AnyTensor, type Histogram, stats, type TensorStatistics } from '../../index.js'

/** Statistics of the logical elements, with numbers that JSON represents exactly. */
export interface ElementStatistics extends Omit<TensorStatistics, 'min' | 'max'> {
  /** Smallest and largest finite value; null without one. A string where a JSON number would not be exact. */
  readonly min: number | string | null
  readonly max: number | string | null
}

/** Bins of the histogram, one character each. */
const BINS = 16

/**
 * Statistics of a dense tensor, or of the numbers of blocks; null for any other.
 *
 * @param onBytes - called with the number of bytes just read
 * @throws TileworkError ERR_ABORTED, and what reading the bytes throws
 */
export async function elementStatistics(
  tensor: AnyTensor,
  signal: AbortSignal,
  onBytes: (count: number) => void,
): Promise<ElementStatistics | null> {
  if (tensor.kind !== 'dense' && tensor.kind !== 'block') return null
  const found = await stats(tensor, { bins: BINS, signal, onBytes })
  return { ...found, min: jsonNumber(found.min), max: jsonNumber(found.max) }
}

function jsonNumber(value: number | bigint | null): number | string | null {
  if (typeof value !== 'bigint') return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : String(value)
}

const BARS = '▁▂▃▄▅▆▇█'

/** One bar per bin, scaled to the fullest bin; a blank for an empty bin. */
export function histogramBars({ counts }: Histogram): string {
  const most = counts.reduce((one, other) => Math.max(one, other), 0)
  return counts
    .map((count) => (count === 0 ? ' ' : BARS[Math.ceil((count / most) * BARS.length) - 1]))
    .join('')
}
