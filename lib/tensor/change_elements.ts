/** Appends an element conversion to a tensor's recipe: a cast, or a linear map with one scale and offset per block. */
import { MemorySource } from '../bytes/memory.js'
import { type ElementStep, isScaling, type ScalingStep } from '../dtype/cast_step.js'
import { TileworkError } from '../errors.js'
import { parseLayout } from '../layout/parse_layout.js'
import { ConstantTensor, elementPattern } from './constant.js'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { inLayout, JoinedTensor, scalingOfPart } from './joined.js'
import type { Region } from './region.js'
import type { DenseTensor } from './tensor.js'

/** Scales of one tensor: 256 MiB together with their offsets. Blocks of 16 elements of a 256 MiB tensor of bytes need as many. */
const MAX_PARAMETERS = 2 ** 24

/** Conversions of one tensor: each is a pass over a block in the cache, and the plan holds all of them. */
const MAX_CHANGES = 1000

/**
 * @param step - converts the elements of `tensor`; its blocks are blocks of the shape of `tensor`
 * @throws TileworkError ERR_LIMIT for too many conversions, or too many scales of a slice; as `FusedTensor`
 */
export function changeElements(tensor: DenseTensor, step: ElementStep): DenseTensor {
  return change(tensor, step)
}

function change(tensor: DenseTensor, step: ElementStep): StoredTensor {
  const ofParts = tensor instanceof JoinedTensor ? changeParts(tensor, step) : changeConstant(tensor, step)
  if (ofParts) return ofParts
  const recipe = FusedTensor.recipeOf(tensor, step.to)
  if ((recipe.casts?.length ?? 0) >= MAX_CHANGES) {
    const message = `tensor "${tensor.name}" has ${MAX_CHANGES} casts and scalings already, which is the limit; materialize it first.`
    throw new TileworkError('ERR_LIMIT', message)
  }
  const { base, region, as, device } = recipe
  const placed = isScaling(step) ? onBase(step, region, base.shape) : step
  const casts = recipe.casts === undefined ? [placed] : [...recipe.casts, placed]
  return new FusedTensor({ base, region, to: recipe.to, as, casts, device })
}

function changeParts(tensor: JoinedTensor, step: ElementStep): StoredTensor | undefined {
  const { shape } = tensor
  const { axis } = tensor.recipe
  return tensor.mapParts((part, start) => {
    const end = start + part.shape[axis]!
    return change(part, isScaling(step) ? scalingOfPart(step, shape, axis, start, end) : step)
  })
}

/** The converted constant; undefined where elements get different values. */
function changeConstant(tensor: DenseTensor, step: ElementStep): StoredTensor | undefined {
  if (!(tensor instanceof ConstantTensor) || (isScaling(step) && step.scales.length > 1)) return undefined
  const one = { source: new MemorySource(tensor.element), start: 0, dtype: tensor.dtype, shape: [1] }
  const changed = change(new StoredTensor(one), isScaling(step) ? { ...step, blocks: [1] } : step)
  const { name, shape, storage } = tensor
  const element = elementPattern(changed.bytesSync(), step.to)
  const constant = new ConstantTensor(element, { dtype: step.to, shape, name })
  // Some layouts have holes with 4-bit types alone.
  return inLayout(constant, parseLayout(storage.layout))
}

/**
 * The step with parameters per block of the recipe's base, so that later slices of the region keep them. Along an axis where
 * the region is a part, every element of the base gets a block of its own; elements outside the region get the first.
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
      `scaling a slice by blocks needs ${size} scales; the limit is ${MAX_PARAMETERS}; materialize the slice first.`,
    )
  }
  const entries = axes.reduce<number[]>(
    (outer, axis) => outer.flatMap((at) => axis.entries.map((entry) => at * axis.counts + entry)),
    [0],
  )
  return {
    ...step,
    scales: Float64Array.from(entries, (entry) => step.scales[entry]!),
    offsets: Float64Array.from(entries, (entry) => step.offsets[entry]!),
    blocks: axes.map(({ block }) => block),
  }
}

/** The number of the block of each element along an axis of the base. */
function entriesOf(extent: number, region: Region, axis: number, block: number): number[] {
  const entries = Array<number>(extent).fill(0)
  for (let i = 0; i < region.shape[axis]!; i++) {
    entries[region.start[axis]! + region.step[axis]! * i] = Math.floor(i / block)
  }
  return entries
}
