/**
 * A digit of an offset (a mixed-radix number), before the layout is bound to a shape. A layout is a list of digits, outermost in
 * memory first; `storage.ts` computes the radices from a shape. The digits of one axis may be in any order of weight, so
 * swizzles and 4-bit packings need no special code.
 */

/** `floor(index / weight)` of the (fused) index of the axes; inside a block modulo a fixed radix. */
export interface DigitRule {
  /** Letters of the axes; more than one means their fused row-major index. */
  readonly axes: string
  readonly weight: number
  /** A number for a digit inside a block; `extent` for the top digit, whose radix follows from the size of the axis. */
  readonly radix: number | 'extent'
}

/** The top digit of an axis: the index of a block of `weight` elements, or the index itself at weight 1. */
export function topDigit(axes: string, weight = 1): DigitRule {
  return { axes, weight, radix: 'extent' }
}

/** A digit inside a block. */
export function blockDigit(axes: string, weight: number, radix: number): DigitRule {
  return { axes, weight, radix }
}

/**
 * The short form, for example `b f/16 y x · f16`. A block digit is a letter and a size where the weights of its axis
 * decrease from left to right; otherwise its arithmetic is spelled out (`o%4`, `(o/4)%8`).
 */
export function formatOrder(digits: readonly DigitRule[]): string {
  const words = digitNames(digits)
  const firstInner = digits.findIndex((digit) => digit.radix !== 'extent')
  if (firstInner > 0) words.splice(firstInner, 0, '·')
  return words.join(' ')
}

/** The words of {@link formatOrder}, one per digit. */
export function digitNames(digits: readonly DigitRule[]): string[] {
  return digits.map((digit) => formatDigit(digit, !hasDecreasingWeights(digits, digit.axes)))
}

/** One digit in the notation of {@link formatOrder}. */
export function formatDigit(digit: DigitRule, explicit: boolean): string {
  const axes = digit.axes.length > 1 ? `(${digit.axes})` : digit.axes
  if (digit.radix === 'extent') {
    return digit.weight === 1 && digit.axes.length === 1 ? axes : `${axes}/${digit.weight}`
  }
  if (!explicit) return `${axes}${digit.radix}`
  return digit.weight === 1 ? `${axes}%${digit.radix}` : `(${axes}/${digit.weight})%${digit.radix}`
}

function hasDecreasingWeights(digits: readonly DigitRule[], axes: string): boolean {
  const weights = digits.filter((digit) => digit.axes === axes).map((digit) => digit.weight)
  return weights.every((weight, position) => position === 0 || weight <= weights[position - 1]!)
}
