/**
 * A lazy tensor: a base tensor, the part of it that is taken, the layout and the element type that it is to have, in one
 * plan. Nothing is computed before bytes are asked for, a range computes only what it must, and every further operation
 * joins the recipe instead of standing on top of it, so one pass over memory does them all.
 */

import type { ByteSource } from '../bytes/source.js'
import type { CastStep, ElementStep } from '../dtype/cast_step.js'
import { DTYPES, type Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { type JoinedLayouts, joinLayouts, type PlacedLayout } from '../layout/plan.js'
import { asStored, StoredTensor } from './dense.js'
import { FusedSource } from './fused_source.js'
import { indexInWhole, isWhole, type Region, wholeRegion } from './region.js'
import { checkIndex } from './shape.js'
import type { DenseTensor } from './tensor.js'

/** All that a fused tensor is made of. */
export interface FusedRecipe {
  readonly base: StoredTensor
  /** The part of the base's logical shape. */
  readonly region: Region
  readonly to: PlacedLayout
  /** `weights` joins data and weights layouts by the position of their axes. */
  readonly as?: 'weights'
  /**
   * What becomes of the elements, in this order; where they are and which are taken does not depend on it. Blocks are
   * those of the base's shape.
   */
  readonly casts?: readonly ElementStep[]
  /** Where it is computed; on the CPU by default. */
  readonly device?: string
}

export class FusedTensor extends StoredTensor {
  readonly recipe: FusedRecipe
  declare readonly source: FusedSource

  /**
   * The recipe of a tensor that is fused already, or one that takes all of it as it is.
   *
   * @param dtype - to be cast to. Elements of 2 bits are made where they stay, so what was moved is taken as it is, too.
   */
  static recipeOf(tensor: DenseTensor, dtype: Dtype = tensor.dtype): FusedRecipe {
    if (tensor instanceof FusedTensor && (isMovable(dtype) || !moves(tensor.recipe))) return tensor.recipe
    const base = asStored(tensor)
    return { base, region: wholeRegion(base.shape), to: base.storage }
  }

  /** @throws TileworkError ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_LAYOUT_JOIN, ERR_DTYPE, ERR_UNSUPPORTED, ERR_OVERFLOW */
  constructor(asked: FusedRecipe) {
    const recipe = castFirst(asked)
    const { base, region } = recipe
    const joined = join(recipe)
    const { layout, storage } = joined.to
    const dtype = recipe.casts?.at(-1)?.to ?? base.dtype
    const { elements, byteLength, side } = storage
    // The layout's further axes have an extent of 1 and no padding.
    const lower = side.lower.slice(0, region.shape.length)
    const upper = side.upper.slice(0, region.shape.length)
    super({
      source: new FusedSource(base, joined, dtype, recipe.device),
      start: 0,
      name: base.name,
      dtype,
      shape: region.shape,
      metadata: base.metadata,
      layout,
      ...(base.doc !== undefined && { doc: base.doc }),
      lower,
      upper,
      storage: {
        layout: layout.name,
        elements,
        byteLength,
        lower: [...lower],
        upper: [...upper],
        bitOrder: 'low-first',
      },
    })
    this.recipe = recipe
  }

  /** Logical values that are not cast are those of the base, so one element is read from there. */
  override at(...index: readonly number[]): number | bigint | boolean {
    if (this.recipe.casts) return super.at(...index)
    checkIndex(this.shape, index)
    return this.recipe.base.at(...indexInWhole(this.recipe.region, index))
  }

  /** From the base in one pass, not from this layout in two. */
  protected override rowMajor(cast?: CastStep): { readonly source: ByteSource; readonly start: number } {
    const casts = [...(this.recipe.casts ?? []), ...(cast ? [cast] : [])]
    const recipe = { ...this.recipe, to: { layout: 'row_major' }, ...(casts.length > 0 && { casts }) }
    return { source: new FusedTensor(recipe).source, start: 0 }
  }
}

/**
 * The recipe itself, but where elements of 2 bits would be moved, which no kernel does. Those of the base are cast where they
 * lie, and then moved, in two passes.
 *
 * @throws TileworkError ERR_UNSUPPORTED where they have 2 bits after all casts, too
 */
function castFirst(recipe: FusedRecipe): FusedRecipe {
  const { base, region, to, as, casts, device } = recipe
  const dtype = casts?.at(-1)?.to ?? base.dtype
  if ((isMovable(base.dtype) && isMovable(dtype)) || !moves(recipe)) return recipe
  if (!isMovable(dtype)) {
    const message = `Tensor "${base.name}" would be moved as ${dtype}; elements of 2 bits are cast to a wider type first.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const place = { ...(device !== undefined && { device }) }
  const whole = { base, region: wholeRegion(base.shape), to: base.storage, ...(casts && { casts }) }
  const wide = new FusedTensor({ ...whole, ...place })
  return { base: wide, region, to, ...(as && { as }), ...place }
}

function isMovable(dtype: Dtype): boolean {
  return DTYPES[dtype].bits >= 4
}

/** False where every element stays in its place, as far as the names of the layouts tell. */
function moves({ base, region, to }: Pick<FusedRecipe, 'base' | 'region' | 'to'>): boolean {
  const { layout, lower, upper } = base.storage
  const name = typeof to.layout === 'string' ? to.layout : to.layout.name
  const isPadding = (counts: readonly number[] = [], known: readonly number[]): boolean =>
    known.every((count, axis) => count === (counts[axis] ?? 0))
  const isPlace = name === layout && isPadding(to.lower, lower) && isPadding(to.upper, upper)
  return !isPlace || !isWhole(region, base.shape)
}

function join({ base, region, to, as, casts }: FusedRecipe): JoinedLayouts {
  const { layout, lower, upper } = base.storage
  return joinLayouts({
    dtype: base.dtype,
    shape: region.shape,
    from: { layout, lower, upper },
    to,
    ...(as && { as }),
    ...(casts && { casts }),
    ...(!isWhole(region, base.shape) && { slice: { ...region, shape: base.shape } }),
  })
}
