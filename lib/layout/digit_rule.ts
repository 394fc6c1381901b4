/**
 * A digit before it meets a shape. A layout is a list of these, outermost in memory first; binding them to a
 * shape (`storage.ts`) gives the radices. Significance is free: nothing says that the digits of one axis stand
 * in falling order of weight, which is how swizzles and 4-bit packings need no code of their own.
 */

/** `floor(index / weight)` of the axes' (fused) index, either whole or modulo a fixed radix. */
export interface DigitRule {
  /** Letters of the axes; more than one means their fused row-major index. */
  readonly axes: string
  readonly weight: number
  /** A number for a digit inside a block; `rest` for the top digit, which counts up to the end of the axis. */
  readonly radix: number | 'rest'
}

/** The top digit of an axis: its index of blocks of `weight` elements, or the index itself at weight 1. */
export function rest(axes: string, weight = 1): DigitRule {
  return { axes, weight, radix: 'rest' }
}

/** A digit inside a block. */
export function inner(axes: string, weight: number, radix: number): DigitRule {
  return { axes, weight, radix }
}

/**
 * The short form, for example `b f/16 y x · f16`. A block digit is written as letter and size while the digits of
 * its axis fall in weight from left to right; otherwise its arithmetic is spelled out (`o%4`, `(o/4)%8`).
 */
export function formatOrder(digits: readonly DigitRule[]): string {
  const words = digitNames(digits)
  const firstInner = digits.findIndex((digit) => digit.radix !== 'rest')
  if (firstInner > 0) words.splice(firstInner, 0, '·')
  return words.join(' ')
}

/** The words of {@link formatOrder}, one a digit. */
export function digitNames(digits: readonly DigitRule[]): string[] {
  return digits.map((digit) => formatDigit(digit, !fallsInWeight(digits, digit.axes)))
}

/** One digit in the notation of {@link formatOrder}. */
export function formatDigit(digit: DigitRule, explicit: boolean): string {
  const axes = digit.axes.length > 1 ? `(${digit.axes})` : digit.axes
  if (digit.radix === 'rest') {
    return digit.weight === 1 && digit.axes.length === 1 ? axes : `${axes}/${digit.weight}`
  }
  if (!explicit) return `${axes}${digit.radix}`
  return digit.weight === 1 ? `${axes}%${digit.radix}` : `(${axes}/${digit.weight})%${digit.radix}`
}

function fallsInWeight(digits: readonly DigitRule[], axes: string): boolean {
  const weights = digits.filter((digit) => digit.axes === axes).map((digit) => digit.weight)
  return weights.every((weight, position) => position === 0 || weight <= weights[position - 1]!)
}
