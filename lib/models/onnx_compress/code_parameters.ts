/** Scales and zero points as onnxruntime's quantizer computes them: quotients in float64, the scale rounded to float32. */

import { roundEven } from '../../dtype/round_even.js'
import { extendRanges } from '../../tensor/number_blocks.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { FloatReader } from './float_window.js'

/** Types of quantized values. */
export type CodeType = ByteType | 'int4' | 'uint4' | 'int16' | 'uint16'
export type ByteType = 'int8' | 'uint8'

export interface CodeRule {
  readonly type: CodeType
  readonly symmetric: boolean
  /** One bit less, so that sums of two products fit in 16 bits. */
  readonly reduceRange: boolean
}

/** Least and greatest quantized value: of the type, of a symmetric range where it differs, and of a range with one bit less. */
interface CodeRange {
  readonly full: readonly [number, number]
  readonly symmetric?: readonly [number, number]
  readonly reduced: readonly [number, number]
}

const RANGES: Readonly<Record<CodeType, CodeRange>> = {
  int4: { full: [-8, 7], reduced: [-4, 3] },
  uint4: { full: [0, 15], reduced: [0, 7] },
  int8: { full: [-128, 127], symmetric: [-127, 127], reduced: [-64, 64] },
  uint8: { full: [0, 255], reduced: [0, 127] },
  int16: { full: [-32768, 32767], symmetric: [-32767, 32767], reduced: [-16384, 16384] },
  uint16: { full: [0, 65535], reduced: [0, 32767] },
}

export const CODE_TYPES = Object.keys(RANGES) as CodeType[]

/** The least and the greatest quantized value of a type. */
export function codeRange(type: CodeType): readonly [number, number] {
  return RANGES[type].full
}

/** Whether quantized values of a type may be negative. */
export function isSigned(type: CodeType): boolean {
  return RANGES[type].full[0] < 0
}

/** Below this a scale would be subnormal, and becomes 1. */
const LEAST_SCALE = 2 ** -126

export function codeParameters(
  low: number,
  high: number,
  { type, symmetric, reduceRange }: CodeRule,
): { readonly scale: number; readonly zeroPoint: number } {
  const { full, symmetric: even = full, reduced } = RANGES[type]
  const [first, last] = reduceRange ? reduced : symmetric ? even : full
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

/** The least and greatest value of a tensor, or of each index of an axis, in one pass. NaN is skipped. */
export async function valueRanges(
  tensor: DenseTensor,
  axis: number | undefined,
  signal?: AbortSignal,
): Promise<{ readonly low: Float32Array; readonly high: Float32Array }> {
  const { shape, size } = tensor
  const channels = axis === undefined ? 1 : shape[axis]!
  const inner =
    axis === undefined ? size : shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
  // Where the axis is the last, neighbours belong to different channels; otherwise runs of `inner` numbers belong together.
  const runs = inner === 1 ? channels : Math.max(1, size / inner)
  const low = new Float32Array(runs).fill(Number.POSITIVE_INFINITY)
  const high = new Float32Array(runs).fill(Number.NEGATIVE_INFINITY)
  await new FloatReader(tensor).each(signal, (numbers, start) => {
    if (inner === 1) widenColumns(numbers, start % channels, low, high)
    else extendRanges(numbers, start, inner, low, high)
  })
  for (let run = channels; run < runs; run++) {
    low[run % channels] = Math.min(low[run % channels]!, low[run]!)
    high[run % channels] = Math.max(high[run % channels]!, high[run]!)
  }
  return { low: low.subarray(0, channels), high: high.subarray(0, channels) }
}

function widenColumns(numbers: Float32Array, first: number, low: Float32Array, high: Float32Array): void {
  for (let at = 0, column = first; at < numbers.length; at++, column++) {
    if (column === low.length) column = 0
    const value = numbers[at]!
    if (value < low[column]!) low[column] = value
    if (value > high[column]!) high[column] = value
  }
}
