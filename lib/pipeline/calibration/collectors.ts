/** Ranges of a value from its numbers, batch by batch, as the calibrators of onnxruntime's tool compute them. */

/** The least and greatest number, or undefined before the first number. */
export interface CollectedRange {
  readonly min: number
  readonly max: number
}

export interface Collector {
  add(numbers: Float32Array): void
  range(): CollectedRange | undefined
}

/** Share of a new batch in a moving average. */
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

/** Counts of the numbers in equal bins over `[-limit, limit]`, which grows by whole bins on both sides. */
class Histogram {
  counts: Float64Array
  #limit = 0

  constructor(bins: number) {
    this.counts = new Float64Array(bins)
  }

  get step(): number {
    return (2 * this.#limit) / this.counts.length
  }

  /** The lower end of a bin. */
  edge(bin: number): number {
    return bin * this.step - this.#limit
  }

  add(numbers: Float32Array): void {
    const { min, max } = extremesOf(numbers)
    this.#widen(Math.max(Math.abs(min), Math.abs(max)))
    const { counts, step } = this
    const last = counts.length - 1
    for (const number of numbers) {
      if (Number.isNaN(number)) continue
      counts[step === 0 ? counts.length >> 1 : Math.min(last, Math.floor((number + this.#limit) / step))]!++
    }
  }

  #widen(limit: number): void {
    if (!(limit > this.#limit) || limit === Number.POSITIVE_INFINITY) return
    if (this.#limit === 0) {
      this.#limit = limit
      return
    }
    const added = Math.ceil((limit - this.#limit) / this.step)
    const counts = new Float64Array(this.counts.length + 2 * added)
    counts.set(this.counts, added)
    this.#limit += added * this.step
    this.counts = counts
  }
}

/** A collector whose range is cut from a histogram, and lies within the numbers that were seen. */
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

/** The range that leaves out the same share of numbers on both sides. */
export class PercentileCollector extends HistogramCollector {
  readonly #percentile: number

  constructor(percentile: number) {
    super(PERCENTILE_BINS)
    this.#percentile = percentile
  }

  protected cut(): CollectedRange {
    const { counts } = this.histogram
    const total = counts.reduce((sum, each) => sum + each, 0)
    const share = (100 - this.#percentile) / 200
    return {
      min: this.histogram.edge(firstBeyond(counts, share * total)),
      max: this.histogram.edge(firstBeyond(counts, (1 - share) * total)),
    }
  }
}

/** The first bin at which the cumulated count reaches a number. */
function firstBeyond(counts: Float64Array, number: number): number {
  let sum = 0
  for (let bin = 0; bin < counts.length; bin++) {
    sum += counts[bin]!
    if (sum >= number) return bin
  }
  return counts.length
}

/** Bins of a histogram of entropies, and of the codes that stand for them. */
const ENTROPY_BINS = 128
const ENTROPY_CODES = 128
/** What a bin without numbers takes from the others, so that the divergence is finite. */
const SMOOTHING = 0.0001

/** The symmetric window whose codes lose the least information (Kullback-Leibler divergence). */
export class EntropyCollector extends HistogramCollector {
  constructor() {
    super(ENTROPY_BINS)
  }

  protected cut(): CollectedRange {
    const { counts } = this.histogram
    const middle = counts.length >> 1
    let best = { divergence: Number.POSITIVE_INFINITY, half: middle }
    for (let half = ENTROPY_CODES >> 1; half <= middle; half++) {
      const divergence = lossOf(counts, middle - half, middle + half)
      if (divergence < best.divergence) best = { divergence, half }
    }
    return { min: this.histogram.edge(middle - best.half), max: this.histogram.edge(middle + best.half) }
  }
}

/** The divergence of the codes of a window from its numbers, of which those outside count for its ends. */
function lossOf(counts: Float64Array, start: number, end: number): number {
  const window = counts.slice(start, end)
  const numbers = window.slice()
  const sum = (from: number, to: number): number =>
    counts.subarray(from, to).reduce((total, each) => total + each, 0)
  numbers[0]! += sum(0, start)
  numbers[numbers.length - 1]! += sum(end, counts.length)
  const codes = new Float64Array(window.length)
  const merged = Math.floor(window.length / ENTROPY_CODES)
  for (let code = 0; code < ENTROPY_CODES; code++) {
    const from = code * merged
    const to = code === ENTROPY_CODES - 1 ? window.length : from + merged
    const part = window.subarray(from, to)
    const filled = numbers.subarray(from, to).filter((each) => each !== 0).length
    const each = filled === 0 ? 0 : part.reduce((total, count) => total + count, 0) / filled
    for (let at = from; at < to; at++) codes[at] = numbers[at] === 0 ? 0 : each
  }
  return divergence(smoothed(numbers), smoothed(codes))
}

function smoothed(counts: Float64Array): Float64Array | undefined {
  const zeros = counts.filter((each) => each === 0).length
  const filled = counts.length - zeros
  if (filled === 0) return undefined
  const taken = (SMOOTHING * zeros) / filled
  if (taken >= 1) return undefined
  return counts.map((each) => (each === 0 ? SMOOTHING : each - taken))
}

function divergence(one: Float64Array | undefined, other: Float64Array | undefined): number {
  if (!one || !other) return Number.POSITIVE_INFINITY
  const [total, otherTotal] = [one, other].map((each) => each.reduce((sum, count) => sum + count, 0))
  let result = 0
  for (let at = 0; at < one.length; at++) {
    const share = one[at]! / total!
    result += share * Math.log(share / (other[at]! / otherTotal!))
  }
  return result
}

function extremesOf(numbers: Float32Array): CollectedRange {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const number of numbers) {
    if (number < min) min = number
    if (number > max) max = number
  }
  return { min, max }
}
