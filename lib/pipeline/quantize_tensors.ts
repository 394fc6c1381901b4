/** Quantizes the tensors of a conversion with parameters computed from their values; scales and zero points become tensors. */
import { readInto } from '../bytes/fill_memory.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { checkOptions } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { DTYPES, type DtypeName } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { append } from '../long_lists.js'
import { native } from '../native/addon.js'
import { cast } from '../tensor/cast.js'
import { asStored } from '../tensor/dense.js'
import { tensor as tensorOf } from '../tensor/from_values.js'
import { resolveCodeType } from '../tensor/quantization.js'
import { type Ranges, rangeParameters } from '../tensor/quantization_range.js'
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
    `${option} of quantizeTo is ${valueText(value)}; it must be ${allowed}.`,
  )
}

/**
 * Replaces each float tensor by its quantized values, `<name>_scale` (float32) and `<name>_zero_point` (dtype of the quantized
 * values); the shapes of the latter two are as in ONNX's QuantizeLinear. Other tensors are unchanged, and so are scalars and
 * vectors (biases, norms) unless `all` is true.
 *
 * @throws TileworkError ERR_QUANTIZATION for infinite values, ERR_ARGUMENT for an axis that a tensor does not have and where a
 * name exists already; ERR_ABORTED, and errors of reading
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
    append(results, await quantizeTensor(tensor, quantization, signal))
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
    rangeParameters(range, codeType, { symmetric: isSymmetric, rules: 'onnx' }),
  )
  const shape = groups?.shape ?? []
  const place = groups && {
    axis: groups.axis,
    ...(blockSize !== undefined && { blockSize }),
  }
  const zeroPoints = tensorOf(zeroPoint, { name: tensor.name + ZERO_POINT_SUFFIX, shape })
  return [
    naming(dense, () => quantize(dense, codeType, { scale, zeroPoint, ...place })),
    tensorOf(Float32Array.from(scale), { name: tensor.name + SCALE_SUFFIX, shape }),
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

async function wholeRange(dense: DenseTensor, signal: AbortSignal | undefined): Promise<Ranges> {
  const { min, max, infinities } = await stats(dense, { bins: 2, ...(signal && { signal }) })
  if (infinities > 0) throw infinite(dense)
  return { min: Float64Array.of(Number(min ?? 0)), max: Float64Array.of(Number(max ?? 0)) }
}

function infinite({ name }: DenseTensor): TileworkError {
  return new TileworkError(
    'ERR_QUANTIZATION',
    `Tensor ${JSON.stringify(name)} has infinite values; quantized values must be finite.`,
  )
}

/** Groups of elements that share a scale: one per index of the axis, or per block along it. */
interface Groups {
  readonly axis: number
  readonly extent: number
  /** Product of the dimensions after the axis. */
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

/** Elements per window; a window is read while the previous one is processed. */
const WINDOW = 1024 * 1024

async function groupRanges(
  dense: DenseTensor,
  groups: Groups,
  signal: AbortSignal | undefined,
): Promise<Ranges> {
  const { extent, blockSize, shape } = groups
  const count = shape.reduce((product, each) => product * each, 1)
  const min = new Float32Array(count).fill(Number.POSITIVE_INFINITY)
  const max = new Float32Array(count).fill(Number.NEGATIVE_INFINITY)
  const blocks = blockSize === undefined ? 0 : Math.ceil(extent / blockSize)
  const rows = rowBlocksOf(groups, dense.size)
  for await (const { start, values } of windowsOf(dense, signal)) {
    if (rows) {
      native().extendBlockRanges(bytesOf(values), start, rows.row, rows.block, bytesOf(min), bytesOf(max))
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
    // All elements are NaN; they are quantized to the zero point.
    if (min[at]! > max[at]!) min[at] = max[at] = 0
    if (!Number.isFinite(min[at]) || !Number.isFinite(max[at])) throw infinite(dense)
  }
  return { min, max }
}

const bytesOf = ({ buffer, byteLength }: Float32Array<ArrayBuffer>): Uint8Array =>
  new Uint8Array(buffer, 0, byteLength)

/** The elements as float32, in windows. A window is valid until the next one is requested; the following one is read ahead. */
async function* windowsOf(
  dense: DenseTensor,
  signal: AbortSignal | undefined,
): AsyncGenerator<{ readonly start: number; readonly values: Float32Array<ArrayBuffer> }> {
  const numbers = asStored(cast(dense, 'float32'))
  const memory = [0, 1].map(() => new Float32Array(allocateBytes(4 * Math.min(WINDOW, dense.size)).buffer))
  const read = async (start: number): Promise<Float32Array<ArrayBuffer>> => {
    const values = memory[(start / WINDOW) % 2]!.subarray(0, dense.size - start)
    await readInto(numbers.source, numbers.start + start * 4, bytesOf(values))
    return values
  }
  let next = read(0)
  try {
    for (let start = 0; start < dense.size; start += WINDOW) {
      throwIfAborted(signal)
      const values = await next
      if (start + WINDOW < dense.size) next = read(start + WINDOW)
      // Awaited in the next iteration; until then Node would report a failure as an unhandled rejection.
      next.catch(() => undefined)
      yield { start, values }
    }
  } finally {
    await next.catch(() => undefined)
  }
}

/** Lengths of rows and blocks where each group is one contiguous run of elements; undefined otherwise. */
function rowBlocksOf(
  { extent, inner, blockSize }: Groups,
  size: number,
): { readonly row: number; readonly block: number } | undefined {
  if (blockSize !== undefined) return inner === 1 ? { row: extent, block: blockSize } : undefined
  return extent * inner === size ? { row: size, block: inner } : undefined
}

/** Consecutive elements that are all in one group (step 0), or each in the group after the previous element's. */
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

function widen(
  values: Float32Array,
  start: number,
  end: number,
  { min, max }: { readonly min: Float32Array; readonly max: Float32Array },
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
