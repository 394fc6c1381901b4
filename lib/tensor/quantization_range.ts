/** Quantization parameters from the range of the values, and the check of bias scales against input and weight scales. */

import { checkFlag, checkObject, checkOptions, readInput } from '../caller_input.js'
import { DTYPES, type Dtype, type DtypeName } from '../dtype/dtypes.js'
import { roundEven } from '../dtype/round_even.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import {
  checkRules,
  type QuantizationParameters,
  type QuantizationRules,
  quantizationError,
  resolveCodeType,
} from './quantization.js'

/** The range of a tensor, or lists with the ranges of its parts. `stats` returns bigints for 64-bit integers. */
export interface NumberRange {
  readonly min: number | bigint | null | ArrayLike<number | bigint>
  readonly max: number | bigint | null | ArrayLike<number | bigint>
}

export interface RangeOptions {
  /**
   * Whether the zero point is the middle of the codes: 0, or 2^(bits - 1) for unsigned types, with equally many codes on both
   * sides. Default false; float codes are always symmetric.
   */
  readonly symmetric?: boolean
  /** `tmfile` truncates zero points as Tengine's tools do; `onnx` (default) rounds to nearest even. */
  readonly rules?: QuantizationRules
}

/**
 * Parameters with which `dtype` represents all numbers of a range. The range is extended to contain 0, so that 0 is a code.
 * Computed in float32 as by ONNX's DynamicQuantizeLinear: `scale = (max - min) / (highest - lowest)` over the codes and
 * `zeroPoint = round(lowest - min / scale)`. The scale of an all-zero range is 1.
 *
 * @param range - for example the result of `stats`; lists give lists
 * @throws TileworkError ERR_QUANTIZATION for an empty or infinite range or one beyond float32; ERR_DTYPE, ERR_ARGUMENT
 */
export function quantizationParameters(
  range: NumberRange,
  dtype: DtypeName,
  options: RangeOptions = {},
): Required<Pick<QuantizationParameters, 'scale' | 'zeroPoint'>> {
  const to = resolveCodeType(dtype)
  checkObject(range, 'quantizationParameters takes a range { min, max }')
  checkOptions(options, 'quantizationParameters', ['symmetric', 'rules'])
  const rules = readInput('The options of quantizationParameters', () => readRules(options))
  return readInput('The range', () => {
    const { min, max } = range
    if (isNumber(min) && isNumber(max)) return parametersOf(Number(min), Number(max), to, rules)
    const [least, most] = [numbersOf(min, 'min'), numbersOf(max, 'max')]
    if (least.length !== most.length || least.length === 0) {
      throw quantizationError(
        `min has ${least.length} numbers and max has ${most.length}; both need equally many, at least one`,
      )
    }
    const { scale, zeroPoint } = rangeParameters({ min: least, max: most }, to, rules)
    return { scale: Array.from(scale), zeroPoint: Array.from(zeroPoint) }
  })
}

/** Equally many minima and maxima. */
export interface Ranges {
  readonly min: Float32Array | Float64Array
  readonly max: Float32Array | Float64Array
}

/** As `quantizationParameters`, of numbers that were checked. */
export function rangeParameters(
  { min, max }: Ranges,
  dtype: Dtype,
  rules: Required<RangeOptions>,
): { readonly scale: Float64Array; readonly zeroPoint: Float64Array } {
  const scale = new Float64Array(min.length)
  const zeroPoint = new Float64Array(min.length)
  for (let at = 0; at < scale.length; at++) {
    const each = parametersOf(min[at]!, max[at]!, dtype, rules)
    scale[at] = each.scale
    zeroPoint[at] = each.zeroPoint
  }
  return { scale, zeroPoint }
}

function readRules({ symmetric = false, rules = 'onnx' }: RangeOptions): Required<RangeOptions> {
  return { symmetric: checkFlag(symmetric, 'symmetric'), rules: checkRules(rules) }
}

const isNumber = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint'

/** @param name - of the list in messages */
function numbersOf(list: unknown, name: string): Float64Array {
  const given = listOf(list, name)
  const numbers = new Float64Array(given.length)
  for (let at = 0; at < numbers.length; at++) {
    const number = given[at]
    if (!isNumber(number)) {
      const message = `${name}[${at}] is ${valueText(number)}; it must be a number.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    numbers[at] = Number(number)
  }
  return numbers
}

function parametersOf(
  min: number,
  max: number,
  dtype: Dtype,
  { symmetric, rules }: Required<RangeOptions>,
): { scale: number; zeroPoint: number } {
  const low = Math.fround(Math.min(min, 0))
  const high = Math.fround(Math.max(max, 0))
  const extent = Math.fround(high - low)
  if (!(min <= max) || !Number.isFinite(extent)) {
    throw quantizationError(
      `the range is ${min} to ${max}; min must not exceed max, and float32 must hold the difference`,
    )
  }
  const { kind, bits } = DTYPES[dtype]
  const { min: least, max: most } = DTYPES[dtype].limits as { min: number; max: number }
  if (symmetric || kind === 'float') {
    const half = kind === 'uint' ? 2 ** (bits - 1) : 0
    return { scale: scaleOf(Math.max(-low, high), most - half), zeroPoint: half }
  }
  const scale = scaleOf(extent, most - least)
  const zero = Math.fround(least - Math.fround(low / scale))
  // The code of 0 has no sign.
  const whole = rules === 'tmfile' ? Math.trunc(zero) : roundEven(zero) + 0
  return { scale, zeroPoint: Math.min(most, Math.max(least, whole)) }
}

const SMALLEST_FLOAT32 = 2 ** -149
const SMALLEST_NORMAL_FLOAT32 = 2 ** -126

/** As float32, rounded up below its normal numbers: the nearest one could be so small that no code reaches the range's end. */
function scaleOf(extent: number, steps: number): number {
  const scale = extent / steps
  if (scale === 0) return 1
  if (scale >= SMALLEST_NORMAL_FLOAT32) return Math.fround(scale)
  return Math.ceil(scale / SMALLEST_FLOAT32) * SMALLEST_FLOAT32
}

/** A scale of a bias that differs from the scale that its layer computes with. */
export interface BiasMismatch {
  /** Position in the list of scales. */
  readonly index: number
  /** Scale of the input times scale of the weights, in float32. */
  readonly expected: number
  readonly scale: number
  readonly zeroPoint: number
}

/** Relative difference of float32 products that were rounded at other steps. */
const PRODUCT_TOLERANCE = 2 ** -22

/**
 * Finds the scales of an int32 bias that differ from `input scale * weight scale`, or whose zero point is not 0. A sum of
 * products has that scale, so a bias with another adds a wrong number, and devices refuse it.
 *
 * @param bias - one scale per scale of the weights
 * @param input - one scale, as activations have
 * @param weight - one scale, or one per channel
 * @returns one entry per wrong scale
 * @throws TileworkError ERR_QUANTIZATION where bias and weights have different numbers of scales, or the input has several
 */
export function checkBiasScales(
  bias: QuantizationParameters,
  input: QuantizationParameters,
  weight: QuantizationParameters,
  options: { readonly tolerance?: number } = {},
): readonly BiasMismatch[] {
  const given = Object.entries({ bias, input, weight })
  for (const [name, each] of given) checkObject(each, `checkBiasScales takes a ${name} { scale, zeroPoint }`)
  checkOptions(options, 'checkBiasScales', ['tolerance'])
  const tolerance = readInput('The options of checkBiasScales', () => checkTolerance(options))
  return readInput('The parameters', () => {
    const [biases, inputs, weights] = given.map(([name, { scale }]) => scalesOf(scale, `${name}.scale`)) as [
      Float64Array,
      Float64Array,
      Float64Array,
    ]
    if (inputs.length !== 1 || biases.length !== weights.length) {
      throw quantizationError(
        `input, weight and bias have ${inputs.length}, ${weights.length} and ${biases.length} scales; the input must have 1, and bias and weight equally many`,
      )
    }
    const zeros = scalesOf(bias.zeroPoint ?? 0, 'bias.zeroPoint')
    if (zeros.length !== 1 && zeros.length !== biases.length) {
      throw quantizationError(
        `the bias has ${biases.length} scales and ${zeros.length} zero points; the counts must be equal, or 1 zero point`,
      )
    }
    return Array.from(biases).flatMap((scale, index) => {
      const expected = Math.fround(Math.fround(inputs[0]!) * Math.fround(weights[index]!))
      const zeroPoint = zeros[index] ?? zeros[0]!
      const isRight = Math.abs(scale - expected) <= tolerance * expected && zeroPoint === 0
      return isRight ? [] : [{ index, expected, scale, zeroPoint }]
    })
  })
}

function checkTolerance({ tolerance = PRODUCT_TOLERANCE }: { readonly tolerance?: number }): number {
  if (typeof tolerance === 'number' && tolerance >= 0) return tolerance
  const message = `tolerance is ${valueText(tolerance)}; it must be a number of at least 0.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function scalesOf(numbers: unknown, name: string): Float64Array {
  return isNumber(numbers) ? Float64Array.of(Number(numbers)) : numbersOf(numbers, name)
}

function listOf(list: unknown, name: string): ArrayLike<unknown> {
  if (Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView))) {
    return list as ArrayLike<unknown>
  }
  const message = `${name} is ${valueText(list)}; it must be a number or a list of numbers.`
  throw new TileworkError('ERR_ARGUMENT', message)
}
