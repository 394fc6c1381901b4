/**
 * Drops axes for the native planner, which takes at most MAX_PLANNED_AXES; shapes of files may have MAX_AXES. An axis with one
 * slot in both storages moves nothing, so the plan is the same without it.
 */
import { TileworkError } from '../errors.js'
import type { NativePlanDescription, NativeSide } from '../native/types.js'
import { MAX_PLANNED_AXES } from './limits.js'

/**
 * The same plan without the axes that hold one element in both storages.
 *
 * @param title - names the reorder at the start of the error
 * @throws TileworkError ERR_UNSUPPORTED when more than MAX_PLANNED_AXES remain. A storage has at most 52 longer axes, since
 * it has fewer than 2^53 elements, so both must be padded or sliced along different axes.
 */
export function foldAxes(description: NativePlanDescription, title: string): NativePlanDescription {
  const { shape, from, to, slice, casts } = description
  if (shape.includes(0)) return emptyPlan(description)
  const kept = [...shape.keys()].filter(
    (axis) =>
      shape[axis] !== 1 || (slice && slice.shape[axis] !== 1) || isLong(from, axis) || isLong(to, axis),
  )
  if (kept.length > MAX_PLANNED_AXES) {
    const reason = `${kept.length} of ${shape.length} axes are longer than 1; a reorder takes at most ${MAX_PLANNED_AXES}`
    throw new TileworkError('ERR_UNSUPPORTED', `${title}: ${reason}`)
  }
  const pick = (list: readonly number[]) => kept.map((axis) => list[axis]!)
  return {
    ...description,
    shape: pick(shape),
    from: foldSide(from, kept),
    to: foldSide(to, kept),
    ...(slice && { slice: { shape: pick(slice.shape), start: pick(slice.start), step: pick(slice.step) } }),
    ...(casts && {
      casts: casts.map((step) => ('blocks' in step ? { ...step, blocks: pick(step.blocks) } : step)),
    }),
  }
}

function isLong({ lower, upper, pieces }: NativeSide, axis: number): boolean {
  if (lower[axis] !== 0 || upper[axis] !== 0) return true
  // A caller's own layout may fuse axes, or put an axis of size 1 into a padded block.
  return pieces.some(({ digits }) =>
    digits.some(({ axes, radix }) => axes.includes(axis) && (radix > 1 || axes.length > 1)),
  )
}

function foldSide({ lower, upper, pieces, elements }: NativeSide, kept: readonly number[]): NativeSide {
  const foldedAxis = new Map(kept.map((axis, position) => [axis, position]))
  return {
    lower: kept.map((axis) => lower[axis]!),
    upper: kept.map((axis) => upper[axis]!),
    pieces: pieces.map((piece) => ({
      ...piece,
      axis: foldedAxis.get(piece.axis) ?? 0,
      digits: piece.digits
        .filter(({ axes }) => axes.every((axis) => foldedAxis.has(axis)))
        .map((digit) => ({ ...digit, axes: digit.axes.map((axis) => foldedAxis.get(axis)!) })),
    })),
    elements,
  }
}

/** The plan of an empty tensor: no element moves, and every destination slot is padding. One axis describes that. */
function emptyPlan(description: NativePlanDescription): NativePlanDescription {
  const { elementBits, from, to, casts } = description
  return {
    elementBits,
    shape: [0],
    from: onlyHoles(from.elements),
    to: onlyHoles(to.elements),
    // Scales of an empty tensor are never read; the casts are kept for their dtypes.
    ...(casts && { casts: casts.map((step) => ('blocks' in step ? { ...step, ...ONE_BLOCK } : step)) }),
  }
}

const ONE_BLOCK = { scales: Float64Array.of(1), offsets: Float64Array.of(0), blocks: [1] }

function onlyHoles(elements: number): NativeSide {
  const digits = [{ axes: [0], radix: elements, weight: 1 }]
  return {
    lower: [0],
    upper: [elements],
    pieces: [{ axis: 0, lo: 0, hi: Number.MAX_SAFE_INTEGER, digits }],
    elements,
  }
}
