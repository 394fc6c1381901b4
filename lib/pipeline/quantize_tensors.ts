/** Quantizes the tensors of a conversion with parameters from their own values; scales and zero points become tensors. */
import { checkOptions } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { DTYPES, type DtypeName } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { cast } from '../tensor/cast.js'
import { tensor as tensorOf } from '../tensor/from_values.js'
import { resolveCodeType } from '../tensor/quantization.js'
import { quantizationParameters } from '../tensor/quantization_range.js'
import { quantize } from '../tensor/quantize.js'
import { reorder } from '../tensor/reorder.js'
import { stats } from '../tensor/stats.js'
import type { DenseTensor, Tensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'

/** Codes with scales from the range of the values. */
export interface ValueQuantization {
  /** Element type of the codes, as of `quantize`. */
  readonly dtype: DtypeName
  /** One scale per index of this axis, or per block along it; a negative axis counts from the last. Default: one scale. */
  readonly axis?: number
  /** Elements along `axis`, by default the last, that share a scale. */
  readonly blockSize?: number
  /** Whether the zero point is the middle of the codes. Default: true, except for unsigned types. */
  readonly symmetric?: boolean
}

/** Names of the tensors with scales and zero points. */
const SCALE_SUFFIX = '_scale'
const ZERO_POINT_SUFFIX = '_zero_point'

/** @throws TileworkError ERR_ARGUMENT, ERR_DTYPE */
export function checkValueQuantization(given: ValueQuantization): void {
  checkOptions(given, 'quantizeTo', ['dtype', 'axis', 'blockSize', 'symmetric'])
  resolveCodeType(given.dtype)
  const { axis, blockSize, symmetric } = given
  if (axis !== undefined && !Number.isSafeInteger(axis)) refuse('axis', 'an integer', axis)
  if (blockSize !== undefined && !(Number.isSafeInteger(blockSize) && blockSize > 0)) {
    refuse('blockSize', 'an integer from 1', blockSize)
  }
  if (symmetric !== undefined && typeof symmetric !== 'boolean')
    refuse('symmetric', 'true or false', symmetric)
}

function refuse(option: string, allowed: string, value: unknown): never {
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${option} of quantizeTo must be ${allowed}; it is ${valueText(value)}.`,
  )
}

/**
 * Each tensor of floats as its codes, `<name>_scale` (float32) and `<name>_zero_point` (the type of the codes), the latter two
 * with a shape as of ONNX's QuantizeLinear. Other tensors stay; so do scalars and vectors (biases, norms) unless `all` is true.
 *
 * @throws TileworkError ERR_QUANTIZATION for infinite values, ERR_ARGUMENT for an axis that a tensor does not have and for a
 * name that is taken; ERR_ABORTED, and errors of reading
 */
export async function quantizeTensors(
  tensors: readonly Tensor[],
  quantization: ValueQuantization,
  all: boolean,
  signal: AbortSignal | undefined,
): Promise<Tensor[]> {
  const names = new Set(tensors.map(({ name }) => name))
  const results: Tensor[] = []
  for (const tensor of tensors) {
    throwIfAborted(signal)
    if (!isQuantizable(tensor, all)) {
      results.push(tensor)
      continue
    }
    const taken = [SCALE_SUFFIX, ZERO_POINT_SUFFIX].find((suffix) => names.has(tensor.name + suffix))
    if (taken !== undefined) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `The file has a tensor ${JSON.stringify(tensor.name + taken)}; quantizeTo needs this name.`,
      )
    }
    results.push(...(await quantizeTensor(tensor, quantization, signal)))
  }
  return results
}

function isQuantizable(tensor: Tensor, all: boolean): tensor is DenseTensor {
  if (tensor.kind !== 'dense' || !tensor.hasData || tensor.size === 0) return false
  const { kind, bits } = DTYPES[tensor.dtype]
  return kind === 'float' && bits >= 16 && (all || tensor.shape.length >= 2)
}

async function quantizeTensor(
  tensor: DenseTensor,
  { dtype, blockSize, axis = blockSize === undefined ? undefined : -1, symmetric }: ValueQuantization,
  signal: AbortSignal | undefined,
): Promise<Tensor[]> {
  const dense = tensor.storage.layout === 'row_major' ? tensor : (reorder(tensor, 'row_major') as DenseTensor)
  const groups = axis === undefined ? undefined : groupsOf(dense, axis, blockSize)
  const codeType = resolveCodeType(dtype)
  const isSymmetric = symmetric ?? DTYPES[codeType].kind !== 'uint'
  const range = groups ? await groupRanges(dense, groups, signal) : await wholeRange(dense, signal)
  const { scale, zeroPoint } = naming(dense, () =>
    quantizationParameters(range, codeType, { symmetric: isSymmetric }),
  )
  const shape = groups?.shape ?? []
  const place = groups && {
    axis: groups.axis,
    ...(blockSize !== undefined && { blockSize }),
  }
  const listOf = (numbers: typeof scale): ArrayLike<number> =>
    typeof numbers === 'number' ? [numbers] : numbers
  const zeroPoints = tensorOf(Float64Array.from(listOf(zeroPoint)), {
    name: tensor.name + ZERO_POINT_SUFFIX,
    shape,
  })
  return [
    naming(dense, () => quantize(dense, codeType, { scale, zeroPoint, ...place })),
    tensorOf(Float32Array.from(listOf(scale)), { name: tensor.name + SCALE_SUFFIX, shape }),
    cast(zeroPoints, codeType),
  ]
}

/** Adds the name of the tensor to an error. */
function naming<Result>({ name }: DenseTensor, compute: () => Result): Result {
  try {
    return compute()
  } catch (cause) {
    if (!(cause instanceof TileworkError)) throw cause
    throw new TileworkError(cause.code, `Tensor ${JSON.stringify(name)}: ${cause.message}`, { cause })
  }
}

interface Range {
  readonly min: number | Float32Array
  readonly max: number | Float32Array
}

async function wholeRange(dense: DenseTensor, signal: AbortSignal | undefined): Promise<Range> {
  const { min, max, infinities } = await stats(dense, { bins: 2, ...(signal && { signal }) })
  if (infinities > 0) throw infinite(dense)
  return { min: Number(min ?? 0), max: Number(max ?? 0) }
}

function infinite({ name }: DenseTensor): TileworkError {
  return new TileworkError(
    'ERR_QUANTIZATION',
    `Tensor ${JSON.stringify(name)} has infinite values; quantized values must be finite.`,
  )
}

/** Elements that share a scale: those of one index of the axis, or of one block along it. */
interface Groups {
  readonly axis: number
  readonly extent: number
  /** Number of elements of the axes after the axis. */
  readonly inner: number
  readonly blockSize: number | undefined
  /** Shape of the scales. */
  readonly shape: readonly number[]
}

function groupsOf({ name, shape }: DenseTensor, given: number, blockSize: number | undefined): Groups {
  const axis = given < 0 ? given + shape.length : given
  if (axis < 0 || axis >= shape.length) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `Tensor ${JSON.stringify(name)} has rank ${shape.length} and no axis ${given}.`,
    )
  }
  const extent = shape[axis]!
  const inner = shape.slice(axis + 1).reduce((product, each) => product * each, 1)
  const blocked = shape.map((each, at) => (at === axis ? Math.ceil(each / (blockSize ?? 1)) : each))
  return { axis, extent, inner, blockSize, shape: blockSize === undefined ? [extent] : blocked }
}

/** Elements that are read at a time. */
const WINDOW = 4 * 1024 * 1024

async function groupRanges(
  dense: DenseTensor,
  groups: Groups,
  signal: AbortSignal | undefined,
): Promise<Range> {
  const { extent, blockSize, shape } = groups
  const count = shape.reduce((product, each) => product * each, 1)
  const min = new Float32Array(count).fill(Number.POSITIVE_INFINITY)
  const max = new Float32Array(count).fill(Number.NEGATIVE_INFINITY)
  const numbers = cast(dense, 'float32')
  const window = new Float32Array(Math.min(WINDOW, dense.size))
  const blocks = blockSize === undefined ? 0 : Math.ceil(extent / blockSize)
  for (let start = 0; start < dense.size; start += window.length) {
    throwIfAborted(signal)
    const values = window.subarray(0, Math.min(window.length, dense.size - start))
    await numbers.copyTo(new Uint8Array(values.buffer, 0, values.byteLength), { start: start * 4 })
    if (blockSize !== undefined && groups.inner === 1) {
      widenBlocks(values, start, { min, max }, extent, blockSize)
      continue
    }
    for (let at = 0; at < values.length; ) {
      const { length, group, step } = runAt(start + at, groups, blocks)
      const end = Math.min(values.length, at + length)
      widen(values, at, end, { min, max }, group, step)
      at = end
    }
  }
  for (let at = 0; at < count; at++) {
    // Only NaN, which becomes the zero point.
    if (min[at]! > max[at]!) min[at] = max[at] = 0
    if (!Number.isFinite(min[at]) || !Number.isFinite(max[at])) throw infinite(dense)
  }
  return { min, max }
}

/** Consecutive elements that share a group (step 0), or of which each has the group after that of the one before. */
interface Run {
  readonly length: number
  readonly group: number
  readonly step: 0 | 1
}

function runAt(flat: number, { extent, inner, blockSize }: Groups, blocks: number): Run {
  const row = Math.floor(flat / inner)
  const index = row % extent
  const first = flat % inner
  if (blockSize === undefined) {
    if (inner === 1) return { length: extent - index, group: index, step: 1 }
    return { length: inner - first, group: index, step: 0 }
  }
  const block = Math.floor(row / extent) * blocks + Math.floor(index / blockSize)
  if (inner > 1) return { length: inner - first, group: block * inner + first, step: 1 }
  return { length: Math.min(blockSize - (index % blockSize), extent - index), group: block, step: 0 }
}

interface Ranges {
  readonly min: Float32Array
  readonly max: Float32Array
}

/** Blocks along the last axis, the usual case: each starts where the one before ends, and so does its group. */
function widenBlocks(
  values: Float32Array,
  start: number,
  { min, max }: Ranges,
  extent: number,
  blockSize: number,
): void {
  let index = start % extent
  let group = Math.floor(start / extent) * Math.ceil(extent / blockSize) + Math.floor(index / blockSize)
  let end = Math.min(blockSize - (index % blockSize), extent - index)
  for (let at = 0; at < values.length; group++) {
    const stop = Math.min(end, values.length)
    index += stop - at
    let [low, high] = [min[group]!, max[group]!]
    for (; at < stop; at++) {
      const value = values[at]!
      if (value < low) low = value
      if (value > high) high = value
    }
    min[group] = low
    max[group] = high
    if (index === extent) index = 0
    end = at + Math.min(blockSize, extent - index)
  }
}

function widen(
  values: Float32Array,
  start: number,
  end: number,
  { min, max }: Ranges,
  group: number,
  step: 0 | 1,
): void {
  if (step === 0) {
    let [low, high] = [min[group]!, max[group]!]
    for (let at = start; at < end; at++) {
      const value = values[at]!
      if (value < low) low = value
      if (value > high) high = value
    }
    min[group] = low
    max[group] = high
    return
  }
  for (let at = start, to = group; at < end; at++, to++) {
    const value = values[at]!
    if (value < min[to]!) min[to] = value
    if (value > max[to]!) max[to] = value
  }
}
