/** Compares one output of two models. */

import { withBorrowedMemory } from '../../bytes/memory_budget.js'
import { DTYPES } from '../../dtype/dtypes.js'
import { cast } from '../../tensor/cast.js'
import { compareStrings } from '../../tensor/string_differences.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { compareValues, equalBits, type ValueDifferences } from '../../tensor/value_differences.js'
import type { RunTensor } from '../onnxruntime/run_model.js'

export interface ComparedValues {
  /** See `ComparedOutput.error`. */
  readonly error: number
  readonly values: ValueDifferences
}

/** Memory that a comparison borrows from the budget. */
const WORKING_BYTES = 8 * 1024 * 1024

/** Magnitudes from here on stand for minus infinity in masks of scores: relative to them every error would be small. */
const MASK_MAGNITUDE = 2 ** 100

/**
 * Errors are relative to this where no magnitude of an output reaches it: an output of 1e-7, such as the scores of a detector that finds
 * nothing, is what is left of sums of larger numbers, and so is its error.
 */
const LEAST_SCALE = 1e-3

/** @returns why the outputs cannot be compared, or how they differ */
export async function compareOutput(
  a: RunTensor,
  b: RunTensor,
  { tolerance, signal }: { readonly tolerance: number; readonly signal: AbortSignal | undefined },
): Promise<string | ComparedValues> {
  if (a.shape.join() !== b.shape.join()) {
    return `it is [${a.shape.join(', ')}] in a and [${b.shape.join(', ')}] in b`
  }
  if (a.kind === 'string' && b.kind === 'string') {
    const values = await compareStrings(a, b, signal)
    return { values, error: values.different === 0 ? 0 : Number.POSITIVE_INFINITY }
  }
  if (a.kind === 'string' || b.kind === 'string') return `it is ${a.dtype} in a and ${b.dtype} in b`
  if (a.size === 0) return { values: equalBits(0), error: 0 }
  const scale = Math.max(LEAST_SCALE, await largestMagnitude(a))
  const options = {
    tolerance: { absolute: tolerance * scale, relative: 0 },
    signal,
    onBytes: () => undefined,
  }
  const values = await withBorrowedMemory(WORKING_BYTES, signal, () => compareValues(a, b, options))
  return { values, error: errorOf(values, scale) }
}

function errorOf({ different, maxError, nans }: ValueDifferences, scale: number): number {
  if (different === 0) return 0
  const isNumber = maxError !== null && !(nans && nans.a + nans.b > 0)
  return isNumber ? maxError / scale : Number.POSITIVE_INFINITY
}

async function largestMagnitude(tensor: DenseTensor): Promise<number> {
  const is64 = DTYPES[tensor.dtype].bits === 64
  const numbers = await cast(tensor, is64 ? 'float64' : 'float32').toTypedArray()
  let largest = 0
  for (const number of numbers) {
    const magnitude = Math.abs(number)
    if (magnitude > largest && magnitude < MASK_MAGNITUDE) largest = magnitude
  }
  return largest
}
