/** Compute the range of a value batch by batch, in the same way as the calibrators of onnxruntime's quantization tool. */

/** Minimum and maximum. */
export interface CollectedRange {
  readonly min: number
  readonly max: number
}

export interface Collector {
  add(numbers: Float32Array): void
  range(): CollectedRange | undefined
}

/** Weight of a new batch in the moving average. */
const AVERAGE_SHARE = 0.01

/** The extremes of all batches, or their moving average. NaN is skipped. */
export class ExtremesCollector implements Collector {
  readonly #isAverage: boolean
  #min: number | undefined
  #max: number | undefined

  constructor(isAverage: boolean) {
    this.#isAverage = isAverage
  }

  add(numbers: Float32Array): void {
    const { min, max } = extremesOf(numbers)
    if (min > max) return
    if (this.#min === undefined || this.#max === undefined) [this.#min, this.#max] = [min, max]
    else if (this.#isAverage) {
      this.#min += AVERAGE_SHARE * (min - this.#min)
      this.#max += AVERAGE_SHARE * (max - this.#max)
    } else {
      this.#min = Math.min(this.#min, min)
      this.#max = Math.max(this.#max, max)
    }
  }

  range(): CollectedRange | undefined {
    return this.#min === undefined || this.#max === undefined ? undefined : { min: this.#min, max: this.#max }
  }
}

/**
 * A histogram with equal bins over `[-limit, limit]`, which grows by whole bins on both sides. Bin edges are float32 as in numpy:
 * this matters because the zeros after a Relu lie exactly on an edge.
 */
class Histogram {
  counts: Float64Array
  #limit = 0
  #step = 0

  constructor(bins: number) {
    this.counts = new Float64Array(bins)
  }

  /** The lower end of a bin. */
  edge(bin: number): number {
    if (bin === this.counts.length) return this.#limit
    return Math.fround(Math.fround(bin * this.#step) - this.#limit)
  }

  add(numbers: Float32Array): void {
    const { min, max } = extremesOf(numbers)
    this.#widen(Math.max(Math.abs(min), Math.abs(max)))
    const { counts } = this
    for (const number of numbers) if (!Number.isNaN(number)) counts[this.#binOf(number)]!++
  }

  #binOf(number: number): number {
    const { length } = this.counts
    if (this.#step === 0) return length >> 1
    const bin = Math.min(length - 1, Math.max(0, Math.floor((number + this.#limit) / this.#step)))
    if (number < this.edge(bin) && bin > 0) return bin - 1
    return number >= this.edge(bin + 1) && bin < length - 1 ? bin + 1 : bin
  }

  #widen(limit: number): void {
    if (!(limit > this.#limit) || limit === Number.POSITIVE_INFINITY) return
    if (this.#limit === 0) this.#limit = limit
    else {
      const added = Math.floor(Math.fround(Math.fround(limit - this.#limit) / this.#step)) + 1
      const counts = new Float64Array(this.counts.length + 2 * added)
      counts.set(this.counts, added)
      this.#limit = Math.fround(Math.fround(added * this.#step) + this.#limit)
      this.counts = counts
    }
    this.#step = Math.fround((2 * this.#limit) / this.counts.length)
  }
}

/** A collector that selects a range of a histogram, clamped to the extremes seen. */
abstract class HistogramCollector implements Collector {
  readonly #extremes = new ExtremesCollector(false)
  protected readonly histogram: Histogram

  constructor(bins: number) {
    this.histogram = new Histogram(bins)
  }

  add(numbers: Float32Array): void {
    this.#extremes.add(numbers)
    if (numbers.length > 0) this.histogram.add(numbers)
  }

  range(): CollectedRange | undefined {
    const seen = this.#extremes.range()
    if (!seen) return undefined
    const { min, max } = this.cut()
    return { min: Math.max(seen.min, min), max: Math.min(seen.max, max) }
  }

  protected abstract cut(): CollectedRange
}

/** Bins of a histogram of percentiles. */
const PERCENTILE_BINS = 2048

/** The range without the same share of numbers on both sides. */
export class PercentileCollector extends HistogramCollector {
  readonly #percentile: number

  constructor(percentile: number) {
    super(PERCENTILE_BINS)
    this.#percentile = percentile
  }

  protected cut(): CollectedRange {
    const { counts } = this.histogram
    const total = counts.reduce((sum, each) => sum + each, 0)
    const shares = counts.map((each) => each / total)
    const outside = (100 - this.#percentile) / 200
    return {
      min: this.histogram.edge(firstBeyond(shares, outside)),
      max: this.histogram.edge(firstBeyond(shares, 1 - outside)),
    }
  }
}

/**
 * The first bin at which the cumulative sum reaches `share`. Shares are added instead of counts, so that ties round as in the
 * tool.
 */
function firstBeyond(shares: Float64Array, share: number): number {
  let sum = 0
  for (let bin = 0; bin < shares.length; bin++) {
    sum += shares[bin]!
    if (sum >= share) return bin
  }
  return shares.length
}

/** Bins of the histogram of the entropy method, and number of quantized values. */
const ENTROPY_BINS = 128
const ENTROPY_CODES = 128
/** Count that an empty bin gets at the expense of the others, so that the divergence is finite. */
const SMOOTHING = 0.0001

/** The symmetric window whose quantization loses the least information (Kullback-Leibler divergence). */
export class EntropyCollector extends HistogramCollector {
  constructor() {
    super(ENTROPY_BINS)
  }

  protected cut(): CollectedRange {
    const { counts } = this.histogram
    const middle = counts.length >> 1
    let best = { divergence: Number.POSITIVE_INFINITY, start: 0, end: counts.length }
    for (let half = ENTROPY_CODES >> 1; half <= middle; half++) {
      const [start, end] = [middle - half, Math.min(middle + half + 1, counts.length)]
      const divergence = Math.fround(lossOf(counts, start, end))
      if (divergence < best.divergence) best = { divergence, start, end }
    }
    return { min: this.histogram.edge(best.start), max: this.histogram.edge(best.end) }
  }
}

/**
 * The divergence between the quantized and the original distribution of a window; numbers outside are clamped to its ends. As in
 * the tool, counts of quantized values are integers, and leftover bins at the end have no count.
 */
function lossOf(counts: Float64Array, start: number, end: number): number {
  const window = counts.subarray(start, end)
  const numbers = window.slice()
  const sum = (from: number, to: number): number =>
    counts.subarray(from, to).reduce((total, each) => total + each, 0)
  numbers[0]! += sum(0, start)
  numbers[numbers.length - 1]! += sum(end, counts.length)
  const codes = new Float64Array(window.length)
  const merged = Math.floor(window.length / ENTROPY_CODES)
  for (let code = 0; code < ENTROPY_CODES; code++) {
    const [from, to] = [code * merged, (code + 1) * merged]
    const filled = numbers.subarray(from, to).filter((each) => each !== 0).length
    const last = code === ENTROPY_CODES - 1 ? end : start + to
    if (filled > 0) codes.fill(Math.floor(sum(start + from, last) / filled), from, to)
  }
  return divergence(smoothed(numbers), smoothed(codes))
}

function smoothed(counts: Float64Array): Float32Array | undefined {
  const zeros = counts.filter((each) => each === 0).length
  const filled = counts.length - zeros
  if (filled === 0) return undefined
  const taken = (SMOOTHING * zeros) / filled
  if (taken >= 1) return undefined
  return Float32Array.from(counts, (each) => (each === 0 ? SMOOTHING : each - taken))
}

function divergence(one: Float32Array | undefined, other: Float32Array | undefined): number {
  if (!one || !other) return Number.POSITIVE_INFINITY
  // In float32, as in the tool: many windows have nearly equal divergence, so rounding decides.
  const [shares, others] = [one, other].map((each) => {
    const total = each.reduce((sum, count) => sum + count, 0)
    return each.map((count) => count / total)
  })
  return shares!.reduce(
    (sum, share, at) => sum + Math.fround(share * Math.fround(Math.log(Math.fround(share / others![at]!)))),
    0,
  )
}

function extremesOf(numbers: Float32Array): CollectedRange {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const number of numbers) {
    if (number < min) min = number
    if (number > max) max = number
  }
  return { min, max }
}
