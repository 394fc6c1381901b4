/** Compares two tensors: how they are stored, and their values. */
import { withBorrowedMemory } from '../../bytes/memory_budget.js'
import { TileworkError } from '../../errors.js'
import { dequantized } from '../../tensor/block_tensor.js'
import { isPadded } from '../../tensor/plain_storage.js'
import { isCodeType, type QuantizationParameters } from '../../tensor/quantization.js'
import { dequantizeSigned } from '../../tensor/quantize.js'
import { compareSparse, sparseAsDense } from '../../tensor/sparse_differences.js'
import { compareStrings } from '../../tensor/string_differences.js'
import type { AnyTensor, DenseTensor } from '../../tensor/tensor.js'
import {
  type CompareOptions,
  compareValues,
  equalBits,
  type ValueDifferences,
} from '../../tensor/value_differences.js'
import { summarizeTensor, type TensorSummary } from '../tensor_summary.js'
import { quantizationOf, type TensorByName } from './named_quantization.js'
import { packedForm, packedWeight } from './packed_weights.js'
import type { TensorPair } from './tensor_pairs.js'

/** What may differ between two tensors. */
export type TensorChange =
  | 'name'
  | 'kind'
  | 'dtype'
  | 'shape'
  | 'layout'
  | 'quantization'
  | 'metadata'
  /** Only one of the tensors has data. */
  | 'data'
  /** The stored values, or the real values of quantized tensors. */
  | 'values'

/** A pair of tensors that differ. */
export interface TensorDifference {
  readonly a: TensorSummary
  readonly b: TensorSummary
  readonly changes: readonly TensorChange[]
  /** Stored (quantized) values. Null where they cannot be compared: different sizes, strings and numbers, no data. */
  readonly values: ValueDifferences | null
  /** Dequantized values, where one of the files declares quantization parameters. */
  readonly real: ValueDifferences | null
}

/** Memory that a comparison borrows from the budget, for buffers of its threads or for windows. */
const WORKING_BYTES = 8 * 1024 * 1024

export interface PairOptions extends CompareOptions {
  readonly isSameFormat: boolean
  /** Finds tensors in each file, for scales that are stored as tensors. */
  readonly find: { readonly a: TensorByName; readonly b: TensorByName }
}

/** @returns the difference; `changes` is empty for equal tensors */
export async function compareTensors({ a, b }: TensorPair, options: PairOptions): Promise<TensorDifference> {
  const changes = new Set<TensorChange>(changesOf(a, b, options.isSameFormat))
  const compare = (): Promise<Pick<TensorDifference, 'values' | 'real'>> => compareBoth(a, b, options)
  const { values, real } = await withBorrowedMemory(WORKING_BYTES, options.signal, compare)
  // With other quantization parameters, different quantized values may be equal real values.
  if ((real ?? values)?.beyond) changes.add('values')
  return { a: summarizeTensor(a), b: summarizeTensor(b), changes: [...changes], values, real }
}

function* changesOf(a: AnyTensor, b: AnyTensor, isSameFormat: boolean): Generator<TensorChange> {
  if (a.name !== b.name) yield 'name'
  if (a.kind !== b.kind) yield 'kind'
  if (a.dtype !== b.dtype) yield 'dtype'
  if (a.shape.join() !== b.shape.join()) yield 'shape'
  if (a.kind === 'dense' && b.kind === 'dense') {
    if (placementOf(a) !== placementOf(b)) yield 'layout'
    if (quantizationText(a.quantization) !== quantizationText(b.quantization)) yield 'quantization'
  }
  // Metadata are compared within a format only, because each format stores different metadata.
  if (isSameFormat && metadataOf(a) !== metadataOf(b)) yield 'metadata'
  if (a.hasData !== b.hasData) yield 'data'
}

/** The layout with its padding; the shape is compared separately. */
function placementOf({ storage }: DenseTensor): string {
  return isPadded(storage) ? JSON.stringify([storage.layout, storage.lower, storage.upper]) : storage.layout
}

function quantizationText(quantization: QuantizationParameters | undefined): string {
  if (!quantization) return ''
  const { scale, zeroPoint = 0, axis, blockSize } = quantization
  const listOf = (numbers: number | ArrayLike<number>): number[] =>
    typeof numbers === 'number' ? [numbers] : Array.from(numbers)
  return JSON.stringify([listOf(scale), listOf(zeroPoint), axis, blockSize])
}

function metadataOf({ doc = '', metadata }: AnyTensor): string {
  return JSON.stringify([doc, [...metadata].sort(([one], [other]) => (one < other ? -1 : 1))])
}

async function compareBoth(
  a: AnyTensor,
  b: AnyTensor,
  options: PairOptions,
): Promise<Pick<TensorDifference, 'values' | 'real'>> {
  const none = { values: null, real: null }
  if (!a.hasData || !b.hasData) return none
  const real = await comparePacked(a, b, options)
  if (real) return { values: null, real }
  if (a.sizeExact !== b.sizeExact) return none
  if (a.kind === 'string' || b.kind === 'string') {
    if (a.kind !== b.kind) return none
    return {
      values: await compareStrings(a as typeof a & { kind: 'string' }, b as never, options.signal),
      real: null,
    }
  }
  if (a.kind === 'sparse' && b.kind === 'sparse') {
    if (a.shape.join() !== b.shape.join()) return none
    return { values: await compareSparse(a, b, options), real: null }
  }
  const [one, other] = [await denseOf(a), await denseOf(b)]
  if (one.size === 0) return { values: equalBits(0), real: null }
  const values = await compareValues(one, other, options)
  return { values, real: await compareReal(one, other, values, options) }
}

/** Compares a weight with its packed codes. Null for other tensors. */
async function comparePacked(
  a: AnyTensor,
  b: AnyTensor,
  options: PairOptions,
): Promise<ValueDifferences | null> {
  const { find } = options
  const [ofA, ofB] = [packedForm(a, b), packedForm(b, a)]
  try {
    const one = ofA ? await packedWeight(ofA, find.a) : a
    const other = ofB ? await packedWeight(ofB, find.b) : b
    if ((!ofA && !ofB) || !one || !other) return null
    return await compareValues(one as DenseTensor, other as DenseTensor, options)
  } catch (error) {
    return nullIfUnusable(error)
  }
}

/** Null for unusable scales: a scale of 0 means "unknown", and a wrong number of scales is a finding of the file. */
function nullIfUnusable(error: unknown): null {
  if (error instanceof TileworkError && error.code === 'ERR_QUANTIZATION') return null
  throw error
}

async function denseOf(tensor: Exclude<AnyTensor, { kind: 'string' }>): Promise<DenseTensor> {
  if (tensor.kind === 'block') return dequantized(tensor)
  return tensor.kind === 'sparse' ? sparseAsDense(tensor) : tensor
}

/** Compares dequantized values; null without usable quantization parameters. */
async function compareReal(
  a: DenseTensor,
  b: DenseTensor,
  values: ValueDifferences,
  options: PairOptions,
): Promise<ValueDifferences | null> {
  const { find } = options
  const [ofA, ofB] = [await quantizationOf(a, find.a), await quantizationOf(b, find.b)]
  const [realA, realB] = [realOf(a, ofA), realOf(b, ofB)]
  if (!realA && !realB) return null
  const hasSameParameters = a.dtype === b.dtype && quantizationText(ofA) === quantizationText(ofB)
  if (values.equalBits && hasSameParameters) return values
  return compareValues(realA ?? a, realB ?? b, { ...options, onBytes: () => undefined })
}

function realOf(tensor: DenseTensor, quantization: QuantizationParameters | undefined): DenseTensor | null {
  if (!quantization || !isCodeType(tensor.dtype)) return null
  try {
    return dequantizeSigned(tensor, quantization)
  } catch (error) {
    return nullIfUnusable(error)
  }
}
