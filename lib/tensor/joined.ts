/**
 * Several tensors joined along one axis. Operations on the whole become operations on the parts, so that a chain of them is
 * still one plan per part and one pass over memory.
 */
import type { ByteSource } from '../bytes/source.js'
import type { CastStep, ScalingStep } from '../dtype/cast_step.js'
import { DTYPES } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { Digit, Layout } from '../layout/layout.js'
import { parseLayout } from '../layout/parse_layout.js'
import { ConstantTensor } from './constant.js'
import { StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { JoinedSource } from './joined_source.js'
import { isPadded } from './plain_storage.js'
import type { Region } from './region.js'

/** What a joined tensor consists of. */
export interface JoinedRecipe {
  /** At least one; equal element types, and equal shapes but for `axis`. In any layout. */
  readonly parts: readonly StoredTensor[]
  readonly axis: number
  readonly layout: Layout
}

export class JoinedTensor extends StoredTensor {
  /** The parts are in the layout of the whole. */
  readonly recipe: JoinedRecipe
  /** True where the storage is one part after the other. */
  readonly isSequence: boolean

  /** @returns undefined where the layout interleaves elements of two parts in a way that no copy of chunks can write */
  static of(recipe: JoinedRecipe): StoredTensor | undefined {
    const { axis, layout, parts: given } = recipe
    const filled = given.filter((part) => part.shape[axis] !== 0)
    const parts = filled.length > 0 ? filled : given.slice(0, 1)
    const rows = rowsOf({ parts, axis, layout })
    if (rows === undefined) return undefined
    const placed = parts.map((part) => inLayout(part, layout))
    return placed.length === 1 ? placed[0] : new JoinedTensor({ parts: placed, axis, layout }, rows)
  }

  private constructor(recipe: JoinedRecipe, rows: number) {
    const { parts, axis, layout } = recipe
    const { name, dtype } = parts[0]!
    const chunks = parts.map(({ source, start, storage }) => ({
      source,
      start,
      chunkBytes: rows === 0 ? 0 : storage.byteLength / rows,
    }))
    super({
      source: new JoinedSource(chunks, rows, `tensor "${name}" and ${parts.length - 1} more`),
      start: 0,
      name,
      dtype,
      shape: joinedShape(parts, axis),
      layout,
    })
    this.recipe = recipe
    this.isSequence = rows === 1
  }

  /** The tensor with `change` applied to every part; undefined where the results cannot be joined. */
  mapParts(
    change: (part: StoredTensor, start: number) => StoredTensor,
    layout: Layout = this.recipe.layout,
  ): StoredTensor | undefined {
    let start = 0
    const parts = this.recipe.parts.map((part) => {
      const changed = change(part, start)
      start += part.shape[this.recipe.axis]!
      return changed
    })
    return JoinedTensor.of({ parts, axis: this.recipe.axis, layout })
  }

  /**
   * A region of the tensor as the regions of its parts, in the order of the result.
   *
   * @param take - the region of a part; its shape is never empty along the joined axis, unless the whole region is
   */
  takeRegion(
    region: Region,
    take: (part: StoredTensor, region: Region) => StoredTensor,
  ): StoredTensor | undefined {
    const { parts, axis, layout } = this.recipe
    const start = region.start[axis]!
    const step = region.step[axis]!
    const count = region.shape[axis]!
    const taken: StoredTensor[] = []
    let low = 0
    for (const part of parts) {
      const high = low + part.shape[axis]!
      // Iterations i with low <= start + step * i < high.
      const [near, far] = step > 0 ? [low, high - 1] : [high - 1, low]
      const first = Math.max(0, Math.ceil((near - start) / step))
      const last = Math.min(count - 1, Math.floor((far - start) / step))
      if (first <= last) {
        const own = along(region, axis, start + step * first - low, step, last - first + 1)
        if (step > 0) taken.push(take(part, own))
        else taken.unshift(take(part, own))
      }
      low = high
    }
    if (taken.length === 0) taken.push(take(parts[0]!, along(region, axis, 0, 1, 0)))
    return JoinedTensor.of({ parts: taken, axis, layout })
  }

  protected override rowMajor(cast?: CastStep): { readonly source: ByteSource; readonly start: number } {
    const layout = parseLayout('row_major')
    const rows = this.mapParts((part) => inLayout(part, layout, cast), layout)
    return rows ? { source: rows.source, start: rows.start } : super.rowMajor(cast)
  }
}

function along(region: Region, axis: number, start: number, step: number, count: number): Region {
  const replaced = (list: readonly number[], value: number): number[] =>
    list.map((old, at) => (at === axis ? value : old))
  return {
    start: replaced(region.start, start),
    step: replaced(region.step, count > 1 ? step : 1),
    shape: replaced(region.shape, count),
  }
}

/** A part in another layout, without padding, cast if requested. */
export function inLayout(part: StoredTensor, layout: Layout, cast?: CastStep): StoredTensor {
  const isPlaced = part.storage.layout === layout.name && !isPadded(part.storage)
  if (isPlaced && !cast) return part
  const constant = part instanceof ConstantTensor && !cast ? part.inLayout(layout) : undefined
  if (constant) return constant
  if (part instanceof JoinedTensor) {
    const moved = part.mapParts((inner) => inLayout(inner, layout, cast), layout)
    if (moved) return moved
  }
  const recipe = FusedTensor.recipeOf(part, cast?.to)
  const casts = [...(recipe.casts ?? []), ...(cast ? [cast] : [])]
  return new FusedTensor({ ...recipe, to: { layout }, ...(casts.length > 0 && { casts }) })
}

/** The same elements with an axis of extent 1 at `axis`, in row-major order. */
export function withAxis(tensor: StoredTensor, axis: number): StoredTensor {
  const shape = inserted(tensor.shape, axis, 1)
  if (tensor instanceof ConstantTensor) return tensor.reshaped(shape)
  const layout = parseLayout('row_major')
  const plain = inLayout(tensor, layout)
  if (plain instanceof JoinedTensor) {
    const { parts, axis: joined } = plain.recipe
    const moved = joined >= axis ? joined + 1 : joined
    const joinable = { parts: parts.map((part) => withAxis(part, axis)), axis: moved, layout }
    const whole = JoinedTensor.of(joinable)
    if (whole) return whole
  }
  if (!(plain instanceof FusedTensor)) return reshaped(plain, shape)
  const { base, region, casts, device } = plain.recipe
  if (base.storage.layout !== 'row_major' || isPadded(base.storage)) return reshaped(plain, shape)
  return new FusedTensor({
    base: reshaped(base, inserted(base.shape, axis, 1)),
    region: {
      start: inserted(region.start, axis, 0),
      step: inserted(region.step, axis, 1),
      shape,
    },
    to: { layout },
    ...(casts && {
      casts: casts.map((step) =>
        'blocks' in step ? { ...step, blocks: inserted(step.blocks, axis, 1) } : step,
      ),
    }),
    ...(device !== undefined && { device }),
  })
}

/** The same row-major storage under another shape. */
export function reshaped(
  { source, start, dtype, name }: StoredTensor,
  shape: readonly number[],
): StoredTensor {
  return new StoredTensor({ source, start, dtype, name, shape })
}

function inserted(list: readonly number[], at: number, value: number): number[] {
  return [...list.slice(0, at), value, ...list.slice(at)]
}

function joinedShape(parts: readonly StoredTensor[], axis: number): number[] {
  const extent = parts.reduce((sum, { shape }) => sum + shape[axis]!, 0)
  return parts[0]!.shape.map((own, at) => (at === axis ? extent : own))
}

/** The scaling of the elements `[start, end)` along an axis; blocks of the step are blocks of a tensor of `shape`. */
export function scalingOfPart(
  step: ScalingStep,
  shape: readonly number[],
  axis: number,
  start: number,
  end: number,
): ScalingStep {
  const block = step.blocks[axis]!
  const counts = shape.map((extent, at) => Math.ceil(extent / step.blocks[at]!))
  if (step.scales.length === 1) return step
  if (counts[axis]! <= 1) {
    const blocks = step.blocks.map((own, at) => (at === axis ? Math.max(1, end - start) : own))
    return { ...step, blocks }
  }
  const isAligned = start % block === 0
  const first = isAligned ? start / block : start
  const last = isAligned ? Math.ceil(end / block) : end
  const entries = Array.from({ length: last - first }, (_, i) =>
    isAligned ? first + i : Math.floor((first + i) / block),
  )
  const inner = counts.slice(axis + 1).reduce((product, count) => product * count, 1)
  const outer = counts.slice(0, axis).reduce((product, count) => product * count, 1)
  const take = (values: Float64Array): Float64Array => {
    const taken = new Float64Array(outer * entries.length * inner)
    let at = 0
    for (let row = 0; row < outer; row++) {
      for (const entry of entries) {
        const from = (row * counts[axis]! + entry) * inner
        taken.set(values.subarray(from, from + inner), at)
        at += inner
      }
    }
    return taken
  }
  return {
    ...step,
    scales: take(step.scales),
    offsets: take(step.offsets),
    blocks: step.blocks.map((own, at) => (at === axis && !isAligned ? 1 : own)),
  }
}

/**
 * The number of chunks that each part has in the storage of the whole: the iterations of all digits outside the axis. Undefined
 * where a block of the layout has elements of two parts, or where a chunk is not whole bytes.
 */
function rowsOf({ parts, axis, layout }: JoinedRecipe): number | undefined {
  const { dtype } = parts[0]!
  const whole = layout.storage(joinedShape(parts, axis), { dtype })
  if (!whole.digits) return undefined
  const { digits } = whole
  const at = digits.findIndex(({ positions }) => positions.includes(axis))
  const joined = digits[at]
  if (joined?.positions.length !== 1) return undefined
  const rows = digits.slice(0, at).reduce((product, { radix }) => product * radix, 1)
  let radix = 0
  let own = layout.storage(parts[0]!.shape, { dtype })
  for (const [number, part] of parts.entries()) {
    // The images of a batch have one shape.
    const isAsBefore = parts[Math.max(0, number - 1)]!.shape.every((extent, at) => extent === part.shape[at])
    if (!isAsBefore) own = layout.storage(part.shape, { dtype })
    const isLast = number === parts.length - 1
    const isAlike =
      own.digits?.length === digits.length &&
      own.digits.every((digit, i) => (i === at ? digit.weight === joined.weight : isSame(digit, digits[i]!)))
    const isWhole = isLast || part.shape[axis]! % joined.weight === 0
    const chunkBits = rows === 0 ? 0 : (own.elements / rows) * DTYPES[dtype].bits
    if (!isAlike || !isWhole || chunkBits % 8 !== 0) return undefined
    radix += own.digits![at]!.radix
  }
  return radix === joined.radix ? rows : undefined
}

function isSame(a: Digit, b: Digit): boolean {
  return a.radix === b.radix && a.weight === b.weight && a.positions.join() === b.positions.join()
}

/** @throws TileworkError ERR_UNSUPPORTED; for elements below a byte */
export function notWholeBytes(name: string, dtype: string): TileworkError {
  const message = `tensor "${name}" is ${dtype} and its chunks do not end at whole bytes; cast it to a wider type first.`
  return new TileworkError('ERR_UNSUPPORTED', message)
}
