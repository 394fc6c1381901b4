/**
 * A lazy tensor: a recipe of a base tensor, the region of it, the target layout and the element conversions. Every further
 * operation extends the recipe instead of stacking on it, so one pass over memory executes all of them. A requested range
 * computes only what it needs; nothing is computed earlier.
 */

import type { ByteSource } from '../bytes/source.js'
import type { CastStep, ElementStep } from '../dtype/cast_step.js'
import { DTYPES, type Dtype, isMovable } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import {
  type Explanation,
  explainPlan,
  type JoinedLayouts,
  joinLayouts,
  type PlacedLayout,
} from '../layout/plan.js'
import { asStored, StoredTensor } from './dense.js'
import { FusedSource } from './fused_source.js'
import { indexInWhole, isWhole, type Region, wholeRegion } from './region.js'
import { checkIndex, checkShape } from './shape.js'
import type { DenseTensor } from './tensor.js'

/** What a fused tensor computes. */
export interface FusedRecipe {
  readonly base: StoredTensor
  /** The part of the base that it reads, in the base's logical indices. */
  readonly region: Region
  readonly to: PlacedLayout
  /** `weights` joins data and weights layouts by the position of their axes. */
  readonly as?: 'weights' | undefined
  /** Element conversions, applied in this order. Blocks of scales are blocks of the base's shape. */
  readonly casts?: readonly ElementStep[] | undefined
  /** Id of the device that computes it; by default the CPU. */
  readonly device?: string | undefined
}

export class FusedTensor extends StoredTensor {
  readonly recipe: FusedRecipe
  declare readonly source: FusedSource
  readonly #joined: JoinedLayouts

  /**
   * The recipe of a fused tensor, or one that reads all of the tensor unchanged.
   *
   * @param dtype - element type after the next operation. No kernel moves elements of 2 bits, so a cast to them starts a recipe
   * of its own on a tensor whose elements move
   */
  static recipeOf(tensor: DenseTensor, dtype: Dtype = tensor.dtype): FusedRecipe {
    if (tensor instanceof FusedTensor && (isMovable(dtype) || !moves(tensor.recipe))) return tensor.recipe
    const base = asStored(tensor)
    return { base, region: wholeRegion(base.shape), to: base.placement }
  }

  /**
   * @param known - what joins the layouts of the recipe, where the caller has it already
   * @throws TileworkError ERR_LAYOUT_NAME, ERR_LAYOUT_SHAPE, ERR_LAYOUT_JOIN, ERR_DTYPE, ERR_UNSUPPORTED, ERR_OVERFLOW
   */
  constructor(asked: FusedRecipe, known?: JoinedLayouts) {
    const recipe = castFirst(asked)
    const { base, region } = recipe
    const joined = known ?? join(recipe)
    const { layout, storage } = joined.to
    const { lower, upper } = joined
    const { elements, byteLength } = storage
    const dtype = dtypeOf(recipe)
    super({
      source: new FusedSource(base, joined, dtype, recipe.device),
      start: 0,
      name: base.name,
      dtype,
      shape: region.shape === base.shape ? base.shape : checkShape(region.shape),
      metadata: base.metadata,
      layout,
      doc: base.doc,
      lower,
      upper,
      storage: { layout: layout.name, elements, byteLength, lower, upper, bitOrder: 'low-first' },
    })
    this.recipe = recipe
    this.#joined = joined
  }

  /** How its plan runs. */
  explain(): Explanation {
    return explainPlan(this.#joined)
  }

  /** The same recipe on a base of the same element type, shape and storage as its own, sharing the plan. */
  onBase(base: StoredTensor): FusedTensor {
    return new FusedTensor({ ...this.recipe, base }, this.#joined)
  }

  /** Without conversions the element is an element of the base, so it is read there. */
  override at(...index: readonly number[]): number | bigint | boolean {
    // biome-ignore lint/plugin: an index has one number per axis, of which a shape has at most 255
    if (this.recipe.casts) return super.at(...index)
    checkIndex(this.shape, index)
    // biome-ignore lint/plugin: as above
    return this.recipe.base.at(...indexInWhole(this.recipe.region, index))
  }

  /** Reads the base in one pass instead of this layout in two. */
  protected override rowMajor(cast?: CastStep): { readonly source: ByteSource; readonly start: number } {
    const casts = [...(this.recipe.casts ?? []), ...(cast ? [cast] : [])]
    const recipe = { ...this.recipe, to: { layout: 'row_major' }, casts }
    return { source: new FusedTensor(recipe).source, start: 0 }
  }
}

/**
 * The recipe, in two passes where the base has elements of 2 or 6 bits that would move: no kernel moves them, so they are cast
 * in place first.
 *
 * @throws TileworkError ERR_UNSUPPORTED where the elements have 2 or 6 bits after all casts too
 */
function castFirst(recipe: FusedRecipe): FusedRecipe {
  const { base, region, to, as, casts, device } = recipe
  const dtype = dtypeOf(recipe)
  if ((isMovable(base.dtype) && isMovable(dtype)) || !moves(recipe)) return recipe
  if (!isMovable(dtype)) {
    const message = `tensor "${base.name}" is ${dtype}, whose elements of ${DTYPES[dtype].bits} bits cannot be moved; cast it to a wider type first.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const wide = new FusedTensor({
    base,
    region: wholeRegion(base.shape),
    to: base.placement,
    casts,
    device,
  })
  return { base: wide, region, to, as, device }
}

/** The element type of the result. */
function dtypeOf({ base, casts }: FusedRecipe): Dtype {
  return casts?.at(-1)?.to ?? base.dtype
}

/** False where every element keeps its offset, judged by the names of the layouts. */
function moves({ base, region, to }: Pick<FusedRecipe, 'base' | 'region' | 'to'>): boolean {
  const { layout, lower, upper } = base.storage
  const name = typeof to.layout === 'string' ? to.layout : to.layout.name
  const isPadding = (counts: readonly number[] = [], known: readonly number[]): boolean =>
    known.every((count, axis) => count === (counts[axis] ?? 0))
  const isSameStorage = name === layout && isPadding(to.lower, lower) && isPadding(to.upper, upper)
  return !isSameStorage || !isWhole(region, base.shape)
}

function join({ base, region, to, as, casts }: FusedRecipe): JoinedLayouts {
  const slice = isWhole(region, base.shape)
    ? undefined
    : { shape: base.shape, start: region.start, step: region.step }
  return joinLayouts({ dtype: base.dtype, shape: region.shape, from: base.placement, to, as, casts, slice })
}
