/** Counts what a cast would destroy, before anything is written: a cast is silent, as in every array library. */

import { checkOptions, readInput } from '../caller_input.js'
import { DTYPES, type Dtype, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { affine } from './affine.js'
import { cast } from './cast.js'
import { checkOnlyDense } from './check_tensor.js'
import { tensor as tensorOf } from './from_values.js'
import { stats, type TensorStatistics } from './stats.js'
import type { AnyTensor, DenseTensor } from './tensor.js'
import { compareValues } from './value_differences.js'

/** What a cast of a tensor would destroy. */
export interface CastLosses {
  /** Number of elements. */
  readonly count: number
  /** Numbers beyond the range of the type, which saturate, become infinite, or keep their low bits. */
  readonly saturated: number
  /** Integers that are within the range of a float type and between two of its numbers. Absent where there are none. */
  readonly rounded?: number
  /** Whether the tensor has other numbers than 0, and all of them become 0. */
  readonly allZero: boolean
}

/**
 * Counts the numbers that a cast to `dtype` would destroy. Reads the elements once, and again where some are out of range; nothing
 * is read for a type that holds all numbers of the tensor's type. Complex numbers, booleans and casts to bool lose nothing.
 *
 * @param tensor - a dense tensor in any layout
 * @throws TileworkError as `cast` and `stats`
 */
export async function castLosses(
  tensor: AnyTensor,
  dtype: DtypeName,
  options: { readonly signal?: AbortSignal } = {},
): Promise<CastLosses> {
  const dense = checkOnlyDense(tensor, 'castLosses', 'can be cast')
  const to = resolveDtype(dtype)
  checkOptions(options, 'castLosses', ['signal'])
  const given = readInput('The options of castLosses', () => ({ ...options }))
  const count = dense.size
  const none = { count, saturated: 0, allZero: false }
  if (!losesNumbers(dense.dtype, to) && !roundsIntegers(dense.dtype, to)) return none
  const counting = { ...given, bins: 2 }
  const before = await stats(dense, counting)
  const saturated = await countSaturated(dense, to, before, counting)
  const rounded = await countRounded(dense, to, before, saturated, given.signal)
  const allZero = await becomeZero(dense, to, before, counting)
  return { count, saturated, ...(rounded > 0 && { rounded }), allZero }
}

/** Samples are this many runs of this many elements, evenly spaced: a run of 1 % of the elements cannot lie between two. */
const SAMPLES = 256
const SAMPLE_ELEMENTS = 4096

/**
 * False where samples of a large tensor show that neither all numbers become 0 nor many are out of range: a count reads all
 * elements, which takes longer than the cast.
 */
export async function mayLoseMany(tensor: DenseTensor, dtype: DtypeName): Promise<boolean> {
  const to = resolveDtype(dtype)
  // Statistics of integers cost as much as the samples.
  if (roundsIntegers(tensor.dtype, to)) return true
  if (!losesNumbers(tensor.dtype, to)) return false
  const { elements } = tensor.storage
  if (elements <= 2 * SAMPLES * SAMPLE_ELEMENTS) return true
  const { kind, limits } = DTYPES[to]
  const [low, high] = [Number(limits!.min), Number(limits!.max)]
  const small = kind === 'float' ? limits!.minNormal : 1
  const numbers = cast(tensor, 'float64')
  const window = new Float64Array(SAMPLE_ELEMENTS)
  let isAllSmall = true
  for (let sample = 0; sample < SAMPLES; sample++) {
    const start = Math.floor(((elements - SAMPLE_ELEMENTS) * sample) / (SAMPLES - 1))
    await numbers.copyTo(new Uint8Array(window.buffer), { start: start * window.BYTES_PER_ELEMENT })
    for (const number of window) {
      if (number < low || number > high) return true
      if (Math.abs(number) >= small) isAllSmall = false
    }
  }
  return isAllSmall
}

type Counting = { readonly signal?: AbortSignal; readonly bins: number }

const NUMBERS: ReadonlySet<string> = new Set(['float', 'int', 'uint'])

/** Whether a number of one type may be out of range, or become 0, in another. */
function losesNumbers(from: Dtype, to: Dtype): boolean {
  const [source, target] = [DTYPES[from], DTYPES[to]]
  if (from === to || !NUMBERS.has(source.kind) || !NUMBERS.has(target.kind)) return false
  if (source.kind === 'float' && target.kind !== 'float') return true
  const [own, other] = [source.limits!, target.limits!]
  // bfloat16 has the exponents of float32 and less precision.
  const isWide = Number(other.max) >= Number(own.max) * 0.99 && Number(other.min) <= Number(own.min) * 0.99
  return !isWide
}

/** Whether some integer of a type is between two numbers of a float type. */
function roundsIntegers(from: Dtype, to: Dtype): boolean {
  const { kind, bits } = DTYPES[from]
  return (kind === 'int' || kind === 'uint') && DTYPES[to].kind === 'float' && exactUpTo(to) < 2 ** (bits - 1)
}

/** All integers up to this magnitude are numbers of the float type. */
function exactUpTo(dtype: Dtype): number {
  return Math.min(2 ** (DTYPES[dtype].fields!.mantissaBits + 1), Number(DTYPES[dtype].limits!.max))
}

async function countRounded(
  dense: DenseTensor,
  to: Dtype,
  { min, max }: TensorStatistics,
  saturated: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  if (!roundsIntegers(dense.dtype, to)) return 0
  const most = exactUpTo(to)
  if (min === null || (Number(min) >= -most && Number(max) <= most)) return 0
  const exactly = { tolerance: { absolute: 0, relative: 0 }, signal, onBytes: () => {} }
  const { different } = await compareValues(dense, cast(dense, to), exactly)
  return Math.max(0, different - saturated)
}

async function countSaturated(
  dense: DenseTensor,
  to: Dtype,
  { min, max, nans, infinities }: TensorStatistics,
  counting: Counting,
): Promise<number> {
  const { kind, limits, fields } = DTYPES[to]
  const [low, high] = [Number(limits!.min), Number(limits!.max)]
  const isInside = min === null || (Number(min) >= low && Number(max) <= high)
  if (kind !== 'float') {
    if (isInside && infinities === 0) return 0
    const above = await countAbove(dense, 1, high, counting)
    return above + (await countAbove(dense, -1, -low, counting))
  }
  if (isInside) return 0
  // These types have no special value that overflow becomes.
  if (fields?.specials === 'finite') {
    return (await countAbove(dense, 1, high, counting)) + (await countAbove(dense, -1, high, counting))
  }
  const after = await stats(cast(dense, to, { saturate: false }), counting)
  return Math.max(0, after.infinities + after.nans - infinities - nans)
}

/** Numbers of which `sign * number` is at least `limit + 1`. A cast to uint8 makes 0 of all others. */
async function countAbove(
  dense: DenseTensor,
  sign: number,
  limit: number,
  counting: Counting,
): Promise<number> {
  const beyond = cast(affine(dense, { scale: sign, bias: -limit }), 'uint8')
  return dense.size - (await stats(beyond, counting)).zeros
}

async function becomeZero(
  dense: DenseTensor,
  to: Dtype,
  { min, max, zeros, nans, infinities, count }: TensorStatistics,
  counting: Counting,
): Promise<boolean> {
  if (min === null || max === null || zeros === count || nans + infinities > 0) return false
  const isWrapped = DTYPES[dense.dtype].kind !== 'float' && DTYPES[to].kind !== 'float'
  // A cast keeps the order of numbers unless it takes their low bits, so the ends decide.
  const tested = isWrapped ? dense : tensorOf([min, max] as number[], { dtype: dense.dtype })
  const after = await stats(cast(tested, to), counting)
  return after.zeros === after.count
}
