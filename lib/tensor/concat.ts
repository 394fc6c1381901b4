/** Joins tensors along an axis, lazily: `concat` along one that they have, `stack` along a new one. */
import { checkOptions, readInput } from '../caller_input.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import type { Layout } from '../layout/layout.js'
import { parseLayout } from '../layout/parse_layout.js'
import { valueText } from '../value_text.js'
import { checkOnlyDense } from './check_tensor.js'
import { ConstantTensor } from './constant.js'
import { asStored, type StoredTensor } from './dense.js'
import { JoinedTensor, notWholeBytes, withAxis } from './joined.js'
import { isPadded } from './plain_storage.js'
import { MAX_AXES, sizeOf } from './shape.js'
import type { DenseTensor, Tensor } from './tensor.js'

export interface ConcatOptions {
  /** A negative axis counts from the last. Default 0. */
  readonly axis?: number
}

/**
 * Tensors one after the other along an axis that they have. Lazy: each tensor is moved and converted straight to its place in
 * the result, and later casts, slices and reorders become part of the same pass. The name is that of the first tensor; so is the
 * layout, where all tensors have it and it stores them without mixing them in one block, else `row_major`.
 *
 * @param tensors - at least one; dense, of one element type, of equal shapes but for `axis`
 * @returns shape: that of the first, with the sum of the extents along `axis`
 * @throws TileworkError at once: ERR_ARGUMENT for no tensors, an axis that they lack, and shapes that differ; ERR_DTYPE for
 * different element types; ERR_UNSUPPORTED for tensors that are not dense, and for elements below a byte where a tensor does
 * not end at a whole byte; ERR_NO_DATA, ERR_OVERFLOW
 */
export function concat<D extends Dtype>(
  tensors: readonly Tensor<D>[],
  options?: ConcatOptions,
): DenseTensor<D>
export function concat(tensors: readonly Tensor[], options: ConcatOptions = {}): DenseTensor {
  const parts = partsOf(tensors, 'concat')
  const first = parts[0]!
  const axis = axisOf(options, 'concat', first.shape.length)
  for (const [number, part] of parts.entries()) checkPart(first, part, number, axis)
  return joined(parts, axis)
}

/**
 * Tensors one after the other along a new axis. Lazy, as `concat`; the result is row-major.
 *
 * @param tensors - at least one; dense, of one element type and one shape
 * @param options - `axis`: the index of the new axis in the result. Default 0
 * @returns shape: that of the tensors, with their number inserted at `axis`
 * @throws TileworkError as `concat`
 */
export function stack<D extends Dtype>(tensors: readonly Tensor<D>[], options?: ConcatOptions): DenseTensor<D>
export function stack(tensors: readonly Tensor[], options: ConcatOptions = {}): DenseTensor {
  const parts = partsOf(tensors, 'stack')
  const first = parts[0]!
  const rank = first.shape.length + 1
  if (rank > MAX_AXES) {
    throw new TileworkError('ERR_ARGUMENT', `stack would make ${rank} axes; the limit is ${MAX_AXES}.`)
  }
  const axis = axisOf(options, 'stack', rank)
  for (const [number, part] of parts.entries()) checkPart(first, part, number)
  return joined(
    parts.map((part) => withAxis(part, axis)),
    axis,
  )
}

/** Parts that agree, as one tensor. @throws TileworkError ERR_UNSUPPORTED, ERR_OVERFLOW */
export function joined(parts: readonly StoredTensor[], axis: number): StoredTensor {
  const first = parts[0]!
  const shape = first.shape.map((extent, at) =>
    at === axis ? parts.reduce((sum, part) => sum + part.shape[axis]!, 0) : extent,
  )
  sizeOf(shape)
  const shared = sharedLayout(parts)
  const whole =
    (shared && JoinedTensor.of({ parts, axis, layout: shared })) ??
    JoinedTensor.of({ parts, axis, layout: parseLayout('row_major') })
  if (!whole) throw notWholeBytes(first.name, first.dtype)
  return whole
}

/** The layout of all parts but constants, which have none of their own. */
function sharedLayout(parts: readonly StoredTensor[]): Layout | undefined {
  const placed = parts.filter((part) => !(part instanceof ConstantTensor))
  const layout = placed[0]?.storage.layout
  const isShared = placed.every(({ storage }) => storage.layout === layout && !isPadded(storage))
  if (layout === undefined || !isShared) return undefined
  try {
    return parseLayout(layout)
  } catch {
    // A layout of the caller's own has no name that is known here.
    return undefined
  }
}

function partsOf(tensors: readonly Tensor[], call: string): StoredTensor[] {
  const list = readInput('The tensors', () => {
    if (Array.isArray(tensors) && tensors.length > 0) return [...tensors] as Tensor[]
    const found = Array.isArray(tensors) ? 'an empty list' : valueText(tensors)
    throw new TileworkError(
      'ERR_ARGUMENT',
      `tensors is ${found}; ${call} takes a list of at least one tensor.`,
    )
  })
  return list.map((tensor) => asStored(checkOnlyDense(tensor, call, 'can be joined')))
}

function axisOf(options: ConcatOptions, call: string, rank: number): number {
  checkOptions(options, call, ['axis'])
  return resolveAxis(
    readInput(`The options of ${call}`, () => options.axis ?? 0),
    rank,
  )
}

/** @throws TileworkError ERR_ARGUMENT unless `-rank <= axis < rank` */
export function resolveAxis(axis: unknown, rank: number): number {
  if (Number.isSafeInteger(axis) && -rank <= (axis as number) && (axis as number) < rank) {
    return (axis as number) < 0 ? (axis as number) + rank : (axis as number)
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    rank === 0
      ? `axis is ${valueText(axis)}; the tensor has no axes.`
      : `axis is ${valueText(axis)}; it must be a whole number from ${-rank} to ${rank - 1}.`,
  )
}

/** @param axis - may differ */
function checkPart(first: StoredTensor, part: StoredTensor, number: number, axis?: number): void {
  const names = `tensor ${number} "${part.name}" is ${part.dtype} [${part.shape}] and tensor 0 "${first.name}" is ${first.dtype} [${first.shape}]`
  if (part.dtype !== first.dtype) {
    throw new TileworkError('ERR_DTYPE', `${names}; the element types must be equal.`)
  }
  const isAlike =
    part.shape.length === first.shape.length &&
    part.shape.every((extent, at) => at === axis || extent === first.shape[at])
  if (isAlike) return
  const rule =
    axis === undefined ? 'the shapes must be equal' : `the shapes may differ along axis ${axis} only`
  throw new TileworkError('ERR_ARGUMENT', `${names}; ${rule}.`)
}
