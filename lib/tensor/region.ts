/** The part of a tensor that a slice takes: along each axis `start + step * i` for i from 0 to an extent. */
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import type { AxisRange } from './slice.js'

export interface Region {
  /** Index of the first element along each axis of the whole tensor. */
  readonly start: readonly number[]
  /** Distance between two elements along each axis, in the whole tensor; never 0, below 0 walks backwards. */
  readonly step: readonly number[]
  /** Elements taken along each axis. */
  readonly shape: readonly number[]
}

/** The region that is all of a tensor. */
export function wholeRegion(shape: readonly number[]): Region {
  return { start: shape.map(() => 0), step: shape.map(() => 1), shape }
}

/** True when the region is all of a tensor of `shape`, in its order. */
export function isWhole(region: Region, shape: readonly number[]): boolean {
  return shape.every((extent, axis) => {
    const isStart = region.start[axis] === 0 && region.step[axis] === 1
    return isStart && region.shape[axis] === extent
  })
}

/** The index in the whole tensor of an index in the region. */
export function indexInWhole(region: Region, index: readonly number[]): number[] {
  return index.map((position, axis) => region.start[axis]! + region.step[axis]! * position)
}

/**
 * A part of a region.
 *
 * @throws TileworkError ERR_ARGUMENT for what is no list, or no range, and for more ranges than axes
 */
export function sliceRegion(region: Region, ranges: readonly (AxisRange | null | undefined)[]): Region {
  const rank = region.shape.length
  if (!Array.isArray(ranges)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The ranges are a list with one an axis; ${valueText(ranges)} was given.`,
    )
  }
  if (ranges.length > rank) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `There are ${ranges.length} ranges and the tensor has rank ${rank}.`,
    )
  }
  const parts = region.shape.map((extent, axis) => resolveRange(ranges[axis] ?? {}, extent, axis))
  return {
    start: parts.map(({ start }, axis) => region.start[axis]! + region.step[axis]! * start),
    step: parts.map(({ step }, axis) => region.step[axis]! * step),
    shape: parts.map(({ count }) => count),
  }
}

const RANGE_KEYS: readonly string[] = ['start', 'end', 'step'] satisfies (keyof AxisRange)[]

interface AxisPart {
  readonly start: number
  readonly step: number
  readonly count: number
}

function resolveRange(range: AxisRange, extent: number, axis: number): AxisPart {
  if (typeof range !== 'object' || range === null) {
    throw new TileworkError('ERR_ARGUMENT', `ranges[${axis}] is no object with start, end and step.`)
  }
  const unknown = Object.keys(range).find((key) => !RANGE_KEYS.includes(key))
  if (unknown !== undefined) {
    const message = `ranges[${axis}] has a field ${valueText(unknown)}; a range has start, end and step.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const step = checkInteger(range.step, `ranges[${axis}].step`) ?? 1
  if (step === 0) throw new TileworkError('ERR_ARGUMENT', `ranges[${axis}].step is 0; it must not be.`)
  // A backward walk starts at the last index and ends before index -1, which no position can say.
  const [low, high] = step > 0 ? [0, extent] : [-1, extent - 1]
  const place = (position: number | undefined, missing: number): number =>
    position === undefined
      ? missing
      : Math.min(high, Math.max(low, position < 0 ? position + extent : position))
  const start = place(checkInteger(range.start, `ranges[${axis}].start`), step > 0 ? low : high)
  const end = place(checkInteger(range.end, `ranges[${axis}].end`), step > 0 ? high : low)
  const count = Math.max(0, Math.ceil((end - start) / step))
  // An empty part lies nowhere, and a single element needs no step: both keep far numbers away from the planner.
  return { start: count === 0 ? 0 : start, step: count <= 1 ? 1 : step, count }
}

function checkInteger(value: unknown, name: string): number | undefined {
  if (value === undefined || Number.isSafeInteger(value)) return value as number | undefined
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number.`)
}
