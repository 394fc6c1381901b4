/**
 * The part of a tensor that a slice takes. A slice of a slice is again a region of the whole tensor, so that slices
 * never stack.
 */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'

/** The part of one axis. Negative positions count from the end; positions beyond an end are clamped to it. */
export interface AxisRange {
  /** First index. Default: 0, or the last index for a negative step. */
  readonly start?: number | null | undefined
  /** Index before which the range ends. Default: the range reaches the end of the axis. */
  readonly end?: number | null | undefined
  /** Distance between two indices, not 0; a negative step walks backwards. Default 1. */
  readonly step?: number | null | undefined
}

/** The part of one axis as a list, as in Python's `start:stop:step`. Undefined and null stand for the default. */
export type AxisRangeList = readonly [
  start: number | null | undefined,
  stop: number | null | undefined,
  step?: number | null | undefined,
]

/** What `slice` takes for one axis; undefined and null take the whole axis. */
export type SliceRange = AxisRange | AxisRangeList | null | undefined

/** Along each axis, the indices `start + step * i` for `i` from 0 to `shape - 1`. */
export interface Region {
  /** Index of the first element along each axis of the whole tensor. */
  readonly start: readonly number[]
  /** Distance between two elements along each axis of the whole tensor; never 0, negative to walk backwards. */
  readonly step: readonly number[]
  /** Number of elements along each axis. */
  readonly shape: readonly number[]
}

/** The region that is all of a tensor. */
export function wholeRegion(shape: readonly number[]): Region {
  const start: number[] = []
  const step: number[] = []
  for (let axis = 0; axis < shape.length; axis++) {
    start.push(0)
    step.push(1)
  }
  return { start, step, shape }
}

/** True when the region is all of a tensor of `shape`, in its order. */
export function isWhole(region: Region, shape: readonly number[]): boolean {
  if (region.shape !== shape && !region.shape.every((extent, axis) => extent === shape[axis])) return false
  return region.start.every((start) => start === 0) && region.step.every((step) => step === 1)
}

/** The index in the whole tensor of an index in the region. */
export function indexInWhole(region: Region, index: readonly number[]): number[] {
  return index.map((position, axis) => region.start[axis]! + region.step[axis]! * position)
}

/**
 * A part of a region.
 *
 * @param ranges - one entry per axis, outermost first; missing entries take the whole axis
 * @throws TileworkError ERR_ARGUMENT for a value that is not a list of ranges, and for more ranges than axes
 */
export function sliceRegion(region: Region, ranges: readonly SliceRange[]): Region {
  const rank = region.shape.length
  if (!Array.isArray(ranges)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `ranges is ${valueText(ranges)}; it must be a list with one range per axis.`,
    )
  }
  if (ranges.length > rank) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `ranges has ${ranges.length} entries; the tensor has rank ${rank}.`,
    )
  }
  const parts = region.shape.map((extent, axis) => resolveRange(ranges[axis], extent, `ranges[${axis}]`))
  return {
    start: parts.map(({ start }, axis) => region.start[axis]! + region.step[axis]! * start),
    step: parts.map(({ step }, axis) => region.step[axis]! * step),
    shape: parts.map(({ count }) => count),
  }
}

/** The part of a region that `inner`, a region of its elements, takes. */
export function regionOfRegion(region: Region, inner: Region): Region {
  return {
    start: indexInWhole(region, inner.start),
    step: region.step.map((step, axis) => step * inner.step[axis]!),
    shape: inner.shape,
  }
}

const RANGE_KEYS: readonly string[] = ['start', 'end', 'step'] satisfies (keyof AxisRange)[]

interface AxisPart {
  readonly start: number
  readonly step: number
  readonly count: number
}

function resolveRange(range: SliceRange, extent: number, name: string): AxisPart {
  const given = readRange(range, name)
  const step = given.step ?? 1
  if (step === 0) throw new TileworkError('ERR_ARGUMENT', `${name}.step is 0; it must not be 0.`)
  // A backward walk starts at the last index and ends before index -1, which no position can express.
  const [low, high] = step > 0 ? [0, extent] : [-1, extent - 1]
  const clamp = (position: number): number =>
    Math.min(high, Math.max(low, position < 0 ? position + extent : position))
  const start = given.start === undefined ? (step > 0 ? low : high) : clamp(given.start)
  const end = given.end === undefined ? (step > 0 ? high : low) : clamp(given.end)
  const count = Math.max(0, Math.ceil((end - start) / step))
  // An empty part has no position, and a single element needs no step: both keep huge numbers from the planner.
  return { start: count === 0 ? 0 : start, step: count <= 1 ? 1 : step, count }
}

type RangeNumbers = Partial<Record<keyof AxisRange, number | undefined>>

/** The numbers of a range in either form, each read once. */
function readRange(range: SliceRange, name: string): RangeNumbers {
  if (range === undefined || range === null) return {}
  if (Array.isArray(range)) {
    if (range.length < 2 || range.length > 3) {
      const message = `${name} has ${range.length} entries; a list is [start, stop] or [start, stop, step].`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    const [start, end, step] = range
    return checkNumbers({ start, end, step }, name)
  }
  if (typeof range !== 'object') {
    const message = `${name} is ${valueText(range)}; it must be { start, end, step } or [start, stop, step].`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const unknown = Object.keys(range).find((key) => !RANGE_KEYS.includes(key))
  if (unknown !== undefined) {
    const message = `${name} has the unknown field ${valueText(unknown)}; expected start, end, step.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const { start, end, step } = range as AxisRange
  return checkNumbers({ start, end, step }, name)
}

function checkNumbers({ start, end, step }: AxisRange, name: string): RangeNumbers {
  return {
    start: checkInteger(start, `${name}.start`),
    end: checkInteger(end, `${name}.end`),
    step: checkInteger(step, `${name}.step`),
  }
}

function checkInteger(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined
  if (Number.isSafeInteger(value)) return value as number
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number.`)
}
