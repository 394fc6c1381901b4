/** To the nearest whole number, halves to the even one, with the sign of zero: IEEE 754's roundToIntegralTiesToEven. */
export function roundEven(value: number): number {
  const size = Math.abs(value)
  // In [2^52, 2^53) doubles have no fraction, so that the sum is rounded to an integer.
  const rounded = size < 2 ** 52 ? size + 2 ** 52 - 2 ** 52 : size
  return value < 0 || Object.is(value, -0) ? -rounded : rounded
}
