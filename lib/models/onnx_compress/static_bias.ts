/**
 * Codes of biases: int32, with the scales that integer kernels assume, `alpha * input scale * weight scale` (the operator
 * QGemm of onnxruntime). Element `at` of a bias belongs to the scale `at mod count` of a weight with that number of scales: the
 * last axis of a bias is that of the output channels, which a grouped ConvTranspose repeats for each group.
 */
import { roundEven } from '../../dtype/round_even.js'

export interface BiasCodes {
  readonly codes: Int32Array
  /** One scale, or one for each index of the axis. */
  readonly scales: Float32Array
  readonly axis: number | undefined
}

const LOWEST_CODE = -(2 ** 31)
const HIGHEST_CODE = 2 ** 31 - 1

/** A scale has to exceed the quotient of the greatest number and code by this factor, as rounding may add to it. */
const ROUNDING_MARGIN = 1.0001

/**
 * The codes of `beta * numbers`.
 *
 * @param weightScales - one, or one for each output channel
 * @param factor - alpha times the scale of the input
 * @returns undefined where the numbers have no codes: the scales do not repeat along the last axis, one is not a positive
 * number, or a code exceeds 32 bits
 */
export function biasCodes(
  numbers: Float32Array,
  shape: readonly number[],
  weightScales: Float32Array,
  factor: number,
  beta: number,
): BiasCodes | undefined {
  const count = weightScales.length
  const last = shape.at(-1) ?? 1
  if (count === 0 || last % count !== 0) return undefined
  const axis = count === 1 ? undefined : shape.length - 1
  const scales = Float32Array.from(
    { length: axis === undefined ? 1 : last },
    (_, at) => factor * weightScales[at % count]!,
  )
  if (!scales.every((scale) => scale > 0 && scale < Number.POSITIVE_INFINITY)) return undefined
  const codes = new Int32Array(numbers.length)
  for (let at = 0; at < numbers.length; at++) {
    const code = roundEven((beta * numbers[at]!) / scales[at % scales.length]!)
    // False for NaN, too.
    if (!(code >= LOWEST_CODE && code <= HIGHEST_CODE)) return undefined
    codes[at] = code
  }
  return { codes, scales, axis }
}

/** The scales of a weight, raised where codes of the bias would exceed 32 bits otherwise. */
export function raisedScales(
  numbers: Float32Array,
  weightScales: Float32Array,
  factor: number,
  beta: number,
): Float32Array {
  const count = weightScales.length
  const greatest = new Float64Array(count)
  for (let at = 0; at < numbers.length; at++)
    greatest[at % count] = Math.max(greatest[at % count]!, Math.abs(beta * numbers[at]!))
  return weightScales.map((scale, at) => {
    const least = (ROUNDING_MARGIN * 2 * greatest[at]!) / (2 ** 32 - 2)
    const product = factor * scale
    return product > 0 && product < least ? scale * (least / product) : scale
  })
}
