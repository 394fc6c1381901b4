/** Quantization parameters from what is known of the numbers: their smallest and largest, or those of other tensors. */
import { checkOptions, readInput } from '../caller_input.js'
import { DTYPES, type Dtype, isDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { isCodeType, type QuantizationParameters, quantizationError } from './quantization.js'

/** The range of a tensor, or lists with those of its parts. */
export interface NumberRange {
  readonly min: number | ArrayLike<number>
  readonly max: number | ArrayLike<number>
}

export interface RangeOptions {
  /**
   * Whether 0 is in the middle of the codes: zero point 0, of unsigned types 2^(bits - 1), and as many codes on each side
   * of it. Default false; float codes always are.
   */
  readonly symmetric?: boolean
  /** `tmfile`: zero points are cut, as Tengine's tools do, where ONNX rounds them to the nearest. Default `onnx`. */
  readonly rules?: 'onnx' | 'tmfile'
}

/**
 * Parameters with which `dtype` holds all numbers of a range. The range is widened to have 0, so that 0 is a code. By
 * float32 arithmetic, as ONNX's DynamicQuantizeLinear: `scale = (max - min) / (most - least)` over the codes,
 * `zeroPoint = round(least - min / scale)`. Where all numbers are 0 the scale is 1.
 *
 * @param range - for example what `stats` found; lists give lists
 * @throws TileworkError ERR_QUANTIZATION for a range that is none or that float32 has not; ERR_DTYPE, ERR_ARGUMENT
 */
export function quantizationParameters(
  range: NumberRange,
  dtype: Dtype,
  options: RangeOptions = {},
): Required<Pick<QuantizationParameters, 'scale' | 'zeroPoint'>> {
  if (!isDtype(dtype) || !isCodeType(dtype)) {
    throw new TileworkError('ERR_DTYPE', `${valueText(dtype)} is no element type for codes.`)
  }
  checkOptions(range, 'quantizationParameters', 'a range { min, max }')
  checkOptions(options, 'quantizationParameters', '{ symmetric, rules }')
  return readInput('The range', () => {
    const { min, max } = range
    if (typeof min === 'number' && typeof max === 'number') return parametersOf(min, max, dtype, options)
    const lists = [min, max].map((list) => Array.from(list as ArrayLike<number>, Number))
    if (lists[0]!.length !== lists[1]!.length || lists[0]!.length === 0) {
      throw quantizationError(
        `There are ${lists[0]!.length} smallest and ${lists[1]!.length} largest numbers`,
      )
    }
    const all = lists[0]!.map((least, at) => parametersOf(least, lists[1]![at]!, dtype, options))
    return { scale: all.map(({ scale }) => scale), zeroPoint: all.map(({ zeroPoint }) => zeroPoint) }
  })
}

function parametersOf(
  min: number,
  max: number,
  dtype: Dtype,
  { symmetric = false, rules = 'onnx' }: RangeOptions,
): { scale: number; zeroPoint: number } {
  const low = Math.fround(Math.min(min, 0))
  const high = Math.fround(Math.max(max, 0))
  const extent = Math.fround(high - low)
  if (!(min <= max) || !Number.isFinite(extent)) {
    throw quantizationError(`The range from ${min} to ${max} is none that float32 has`)
  }
  const { kind, bits } = DTYPES[dtype]
  const { min: least, max: most } = DTYPES[dtype].limits as { min: number; max: number }
  if (symmetric || kind === 'float') {
    const half = kind === 'uint' ? 2 ** (bits - 1) : 0
    const scale = Math.fround(Math.max(-low, high) / (most - half))
    return { scale: scale || 1, zeroPoint: half }
  }
  const scale = Math.fround(extent / (most - least)) || 1
  const zero = Math.fround(least - Math.fround(low / scale))
  const whole = rules === 'tmfile' ? Math.trunc(zero) : roundEven(zero)
  return { scale, zeroPoint: Math.min(most, Math.max(least, whole)) }
}

function roundEven(value: number): number {
  const low = Math.floor(value)
  const rest = value - low
  return rest > 0.5 || (rest === 0.5 && low % 2 !== 0) ? low + 1 : low
}

/** One scale of a bias that is not what its layer computes with. */
export interface BiasMismatch {
  /** Position in the list of scales. */
  readonly index: number
  /** Scale of the input times that of the weights, a float32. */
  readonly expected: number
  readonly scale: number
  readonly zeroPoint: number
}

/** What float32 products differ by that were rounded at other places. */
const PRODUCT_TOLERANCE = 2 ** -22

/**
 * Which scales of an int32 bias are not `input scale * weight scale`, with zero point 0: a sum of products has that
 * scale, so a bias with another would be added as a wrong number, and devices refuse it.
 *
 * @param bias - with one scale, or one for each of the weights'
 * @param input - with one scale, as tensors have that flow between layers
 * @param weight - with one scale, or one a channel
 * @returns one entry for each scale that is wrong
 * @throws TileworkError ERR_QUANTIZATION where there are not as many scales of the bias as of the weights, or several of
 * the input
 */
export function checkBiasScales(
  bias: QuantizationParameters,
  input: QuantizationParameters,
  weight: QuantizationParameters,
  options: { readonly tolerance?: number } = {},
): readonly BiasMismatch[] {
  const { tolerance = PRODUCT_TOLERANCE } = options
  const [biases, inputs, weights] = [bias, input, weight].map(({ scale }) => listOf(scale)) as [
    number[],
    number[],
    number[],
  ]
  if (inputs.length !== 1 || biases.length !== weights.length) {
    throw quantizationError(
      `There are ${inputs.length} scales of the input, ${weights.length} of the weights and ${biases.length} of the bias; there must be 1, and as many of the others`,
    )
  }
  const zeros = listOf(bias.zeroPoint ?? 0)
  return biases.flatMap((scale, index) => {
    const expected = Math.fround(Math.fround(inputs[0]!) * Math.fround(weights[index]!))
    const zeroPoint = zeros[index] ?? zeros[0] ?? 0
    const isRight = Math.abs(scale - expected) <= tolerance * expected && zeroPoint === 0
    return isRight ? [] : [{ index, expected, scale, zeroPoint }]
  })
}

function listOf(numbers: number | ArrayLike<number>): number[] {
  return typeof numbers === 'number' ? [numbers] : Array.from(numbers)
}
