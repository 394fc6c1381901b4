/** Adds a change of the elements to a tensor's recipe: a cast, or a linear map with parameters for blocks. */
import { type ElementStep, isScaling, type ScalingStep } from '../dtype/cast_step.js'
import { TileworkError } from '../errors.js'
import { FusedTensor } from './fused.js'
import type { Region } from './region.js'
import type { DenseTensor } from './tensor.js'

/**
 * Most scales of one tensor: 256 MiB of them with their offsets. Blocks of 16 elements of a 4 GiB tensor of bytes have as
 * many.
 */
const MAX_PARAMETERS = 2 ** 24

/** Most changes of one tensor: each is a pass over a block in the cache, and the plan of a chain holds all of them. */
const MAX_CHANGES = 1000

/**
 * @param step - for the elements of `tensor`; blocks are those of its shape
 * @throws TileworkError ERR_LIMIT for too many changes, or too many scales of a slice; as `FusedTensor`
 */
export function changeElements(tensor: DenseTensor, step: ElementStep): DenseTensor {
  const recipe = FusedTensor.recipeOf(tensor, step.to)
  if ((recipe.casts?.length ?? 0) >= MAX_CHANGES) {
    const message = `Tensor "${tensor.name}" is cast or scaled ${MAX_CHANGES} times already, which is the limit; materialize it first.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const { layout, lower, upper } = tensor.storage
  // A tensor that is fused already keeps its parsed layout, which may be one of the caller's own.
  const to = tensor instanceof FusedTensor ? recipe.to : { layout, lower, upper }
  const placed = isScaling(step) ? onBase(step, recipe.region, recipe.base.shape) : step
  return new FusedTensor({ ...recipe, to, casts: [...(recipe.casts ?? []), placed] })
}

/**
 * The step with parameters for the base of a recipe, whose elements keep theirs however the region is sliced later. Where
 * the region skips elements of an axis each of the base's gets its own, those outside whatever is first.
 */
function onBase(step: ScalingStep, region: Region, shape: readonly number[]): ScalingStep {
  if (step.scales.length === 1) return { ...step, blocks: shape }
  const axes = shape.map((extent, axis) => {
    const block = step.blocks[axis]!
    const counts = Math.ceil(region.shape[axis]! / block)
    if (counts <= 1) return { entries: [0], block: Math.max(extent, 1), counts }
    const isWhole = region.start[axis] === 0 && region.step[axis] === 1 && region.shape[axis] === extent
    if (isWhole) return { entries: [...Array(counts).keys()], block, counts }
    return { entries: entriesOf(extent, region, axis, block), block: 1, counts }
  })
  if (
    axes.every(({ entries, counts }) => entries.length === counts && entries.every((entry, i) => entry === i))
  ) {
    return { ...step, blocks: axes.map(({ block }) => block) }
  }
  const size = axes.reduce((product, { entries }) => product * entries.length, 1)
  if (size > MAX_PARAMETERS) {
    throw new TileworkError(
      'ERR_LIMIT',
      `A slice of blocks needs ${size} scales, and the limit is ${MAX_PARAMETERS}; materialize the slice first.`,
    )
  }
  const places = axes.reduce<number[]>(
    (outer, { entries, counts }) => outer.flatMap((at) => entries.map((entry) => at * counts + entry)),
    [0],
  )
  return {
    ...step,
    scales: Float64Array.from(places, (at) => step.scales[at]!),
    offsets: Float64Array.from(places, (at) => step.offsets[at]!),
    blocks: axes.map(({ block }) => block),
  }
}

/** The block of each element of an axis of the base. */
function entriesOf(extent: number, region: Region, axis: number, block: number): number[] {
  const entries = Array<number>(extent).fill(0)
  for (let i = 0; i < region.shape[axis]!; i++) {
    entries[region.start[axis]! + region.step[axis]! * i] = Math.floor(i / block)
  }
  return entries
}
