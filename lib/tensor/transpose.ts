/**
 * Puts the axes of a tensor in another order, lazily. Row-major storage whose axes are renamed is storage in a layout with
 * permuted axes, so a transpose is a reorder from that layout, in one pass with the casts and slices around it.
 */
import { readInput } from '../caller_input.js'
import { type ElementStep, isScaling } from '../dtype/cast_step.js'
import type { Dtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { parseLayout } from '../layout/parse_layout.js'
import { MAX_PERMUTED_AXES, permutedLayout } from '../layout/permuted_layout.js'
import { valueText } from '../value_text.js'
import { checkOnlyDense } from './check_tensor.js'
import { resolveAxis } from './concat.js'
import { ConstantTensor } from './constant.js'
import { asStored, StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { inLayout, JoinedTensor, reshaped } from './joined.js'
import { isPlain } from './plain_storage.js'
import { sizeOf } from './shape.js'
import type { AnyTensor, DenseTensor } from './tensor.js'

/**
 * The tensor with its axes in another order, as numpy's `transpose` and torch's `permute`. Lazy; the result is row-major, with
 * the name and element type of the tensor.
 *
 * It changes the shape: `transpose(image, [0, 2, 3, 1])` of `[1, 3, 224, 224]` is `[1, 224, 224, 3]`. `reorder(image, 'nhwc')`
 * gives the same bytes and keeps the shape.
 *
 * @param tensor - a dense tensor in any layout
 * @param axes - the axis of the tensor that each axis of the result is; a negative one counts from the last. Default: all axes
 * in reverse
 * @returns shape: `axes.map((axis) => tensor.shape[axis])`
 * @throws TileworkError at once: ERR_ARGUMENT unless `axes` has every axis once; ERR_UNSUPPORTED for a tensor that is not dense or
 * has elements of 2 or 6 bits, and where more than 8 axes of more than one element part from their neighbours; ERR_NO_DATA
 */
export function transpose<D extends Dtype>(tensor: AnyTensor<D>, axes?: readonly number[]): DenseTensor<D>
export function transpose(tensor: AnyTensor, axes?: readonly number[]): DenseTensor {
  const dense = checkOnlyDense(tensor, 'transpose', 'can be transposed')
  const order = readInput('The axes', () => orderOf(axes, dense.shape.length))
  return transposed(asStored(dense), order)
}

/** The axes as positions from 0, each once. */
function orderOf(axes: readonly number[] | undefined, rank: number): number[] {
  if (axes === undefined) return [...Array(rank).keys()].reverse()
  if (!Array.isArray(axes)) refuse(`axes is ${valueText(axes)}; it must be a list of axes.`)
  if (axes.length !== rank) refuse(`axes has ${axes.length} entries; the tensor has ${rank} axes.`)
  const order = Array.from(axes, (axis: unknown) => resolveAxis(axis, rank))
  const twice = order.find((axis, at) => order.indexOf(axis) !== at)
  if (twice !== undefined) refuse(`axes has the axis ${twice} twice; it must have every axis once.`)
  return order
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

function transposed(tensor: StoredTensor, order: readonly number[]): StoredTensor {
  if (order.every((axis, at) => axis === at)) return inLayout(tensor, parseLayout('row_major'))
  if (tensor instanceof ConstantTensor) return tensor.reshaped(permuted(tensor.shape, order))
  if (tensor instanceof JoinedTensor) {
    const { parts, axis } = tensor.recipe
    const moved = parts.map((part) => transposed(part, order))
    const whole = JoinedTensor.of({
      parts: moved,
      axis: order.indexOf(axis),
      layout: parseLayout('row_major'),
    })
    if (whole) return whole
  }
  const { base, region, casts, device } = FusedTensor.recipeOf(tensor)
  if (!isPlain(base.storage) || order.length > MAX_PERMUTED_AXES) return transposedStorage(tensor, order)
  const { source, start, name, dtype, metadata, doc } = base
  // Axis i of the renamed base is axis order[i] of the base, whose storage has the axes of the base in their old order.
  const inMemory = order.map((_, axis) => order.indexOf(axis))
  const renamed = new StoredTensor({
    source,
    start,
    name,
    dtype,
    metadata,
    shape: permuted(base.shape, order),
    layout: permutedLayout(inMemory, order.length),
    ...(doc !== undefined && { doc }),
  })
  return new FusedTensor({
    base: renamed,
    region: {
      start: permuted(region.start, order),
      step: permuted(region.step, order),
      shape: permuted(region.shape, order),
    },
    to: { layout: 'row_major' },
    ...(casts && { casts: casts.map((step) => permutedStep(step, base.shape, order)) }),
    ...(device !== undefined && { device }),
  })
}

/** The row-major elements of the tensor, whatever its storage, moved with neighbouring axes as one where they stay neighbours. */
function transposedStorage(tensor: StoredTensor, order: readonly number[]): StoredTensor {
  const plain = inLayout(tensor, parseLayout('row_major'))
  const long = order.filter((axis) => plain.shape[axis] !== 1)
  const inSource = long.toSorted((a, b) => a - b)
  const runs: number[][] = []
  for (const axis of long) {
    const last = runs.at(-1)?.at(-1)
    const isNext = last !== undefined && inSource.indexOf(axis) === inSource.indexOf(last) + 1
    if (isNext) runs.at(-1)!.push(axis)
    else runs.push([axis])
  }
  if (runs.length > MAX_PERMUTED_AXES) {
    const message = `transpose would move ${runs.length} groups of axes of tensor "${tensor.name}"; the limit is ${MAX_PERMUTED_AXES}.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const bySource = runs.toSorted((a, b) => a[0]! - b[0]!)
  const merged = reshaped(
    plain,
    bySource.map((run) => sizeOf(permuted(plain.shape, run))),
  )
  const moved = transposed(
    merged,
    runs.map((run) => bySource.indexOf(run)),
  )
  const { source, start, name, dtype } = moved
  const { metadata, doc } = tensor
  const shape = permuted(tensor.shape, order)
  return new StoredTensor({ source, start, name, dtype, shape, metadata, ...(doc !== undefined && { doc }) })
}

/** A step whose blocks and scales follow the axes of a tensor of `shape`. */
function permutedStep(step: ElementStep, shape: readonly number[], order: readonly number[]): ElementStep {
  if (!isScaling(step)) return step
  const counts = shape.map((extent, axis) => Math.ceil(extent / step.blocks[axis]!))
  return {
    ...step,
    blocks: permuted(step.blocks, order),
    scales: permutedValues(step.scales, counts, order),
    offsets: permutedValues(step.offsets, counts, order),
  }
}

/** Row-major values of `counts` in the other order of axes; one value stands for all elements. */
function permutedValues(
  values: Float64Array,
  counts: readonly number[],
  order: readonly number[],
): Float64Array {
  if (counts.filter((count) => count > 1).length < 2 || values.length === 1) return values
  const strides = counts.map((_, axis) => sizeOf(counts.slice(axis + 1)))
  const [target, distance] = [permuted(counts, order), permuted(strides, order)]
  const moved = new Float64Array(values.length)
  const index = target.map(() => 0)
  for (let at = 0; at < moved.length; at++) {
    moved[at] = values[index.reduce((sum, position, axis) => sum + position * distance[axis]!, 0)]!
    for (let axis = index.length - 1; axis >= 0 && ++index[axis]! === target[axis]; axis--) index[axis] = 0
  }
  return moved
}

function permuted<T>(list: readonly T[], order: readonly number[]): T[] {
  return order.map((axis) => list[axis]!)
}
