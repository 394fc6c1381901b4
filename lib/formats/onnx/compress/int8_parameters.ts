/** Scales and zero points of 8 bits as onnxruntime's quantizer computes them: quotients in float64, the scale rounded to float32. */
import type { DenseTensor } from '../../../tensor/tensor.js'
import { roundEven } from './block_rules.js'
import { FloatReader } from './float_window.js'

export type CodeType = 'int8' | 'uint8'

export interface Int8Rule {
  readonly type: CodeType
  readonly symmetric: boolean
  /** One bit less, so that sums of two products fit in 16 bits. */
  readonly reduceRange: boolean
}

const FULL: Readonly<Record<CodeType, readonly [number, number]>> = { int8: [-128, 127], uint8: [0, 255] }
const REDUCED: Readonly<Record<CodeType, readonly [number, number]>> = { int8: [-64, 64], uint8: [0, 127] }
const SYMMETRIC_INT8 = [-127, 127] as const

/** Below this a scale would be subnormal, and becomes 1. */
const LEAST_SCALE = 2 ** -126

export function int8Parameters(
  low: number,
  high: number,
  { type, symmetric, reduceRange }: Int8Rule,
): { readonly scale: number; readonly zeroPoint: number } {
  const full = symmetric && type === 'int8' ? SYMMETRIC_INT8 : FULL[type]
  const [first, last] = reduceRange ? REDUCED[type] : full
  let [min, max] = [Math.min(0, low), Math.max(0, high)]
  if (symmetric) {
    max = Math.max(-min, max)
    min = -max
  }
  const scale = (max - min) / (last - first)
  if (!(scale >= LEAST_SCALE)) return { scale: 1, zeroPoint: 0 }
  const zeroPoint = roundEven(symmetric ? (first + last) / 2 : first - min / scale)
  // Zero is added so that -0 becomes 0.
  return { scale: Math.fround(scale), zeroPoint: zeroPoint + 0 }
}

/** The least and greatest value of a tensor, or of each index of its last axis, in one pass. NaN is skipped. */
export async function valueRanges(
  tensor: DenseTensor,
  perColumn: boolean,
  signal?: AbortSignal,
): Promise<{ readonly low: Float32Array; readonly high: Float32Array }> {
  const columns = perColumn ? (tensor.shape.at(-1) ?? 1) : 1
  const low = new Float32Array(columns).fill(Number.POSITIVE_INFINITY)
  const high = new Float32Array(columns).fill(Number.NEGATIVE_INFINITY)
  await new FloatReader(tensor).each(signal, (numbers, start) => {
    if (columns === 1) widenOne(numbers, low, high)
    else widenColumns(numbers, start % columns, low, high)
  })
  return { low, high }
}

function widenOne(numbers: Float32Array, low: Float32Array, high: Float32Array): void {
  let [min, max] = [low[0]!, high[0]!]
  for (let at = 0; at < numbers.length; at++) {
    const value = numbers[at]!
    if (value < min) min = value
    if (value > max) max = value
  }
  low[0] = min
  high[0] = max
}

function widenColumns(numbers: Float32Array, first: number, low: Float32Array, high: Float32Array): void {
  for (let at = 0, column = first; at < numbers.length; at++, column++) {
    if (column === low.length) column = 0
    const value = numbers[at]!
    if (value < low[column]!) low[column] = value
    if (value > high[column]!) high[column] = value
  }
}
