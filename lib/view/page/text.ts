/** Numbers and sizes as text. */

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

export function bytesText(bytes: number | null): string {
  if (bytes === null) return '–'
  let [size, unit] = [bytes, 0]
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${UNITS[unit]}`
}

export function countText(count: number): string {
  return count.toLocaleString('en')
}

/** Six significant digits: enough to distinguish two weights. */
export function numberText(value: number | string | boolean | null): string {
  if (value === null) return '–'
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value)
  return digitsText(value, 6)
}

/** Very large and very small numbers get an exponent, so that every text is short. */
export function digitsText(value: number, digits: number): string {
  const size = Math.abs(value)
  const rounded = Number(value.toPrecision(digits))
  if (size === 0 || !Number.isFinite(size) || (size >= 1e-4 && size < 1e8)) return String(rounded)
  return rounded.toExponential()
}

export function shapeText(shape: readonly number[]): string {
  // Sizes that are known only at run time are -1.
  return shape.length === 0 ? 'scalar' : shape.map((extent) => (extent < 0 ? '?' : extent)).join(' × ')
}

/** A text with `*` or `?` is a pattern for the whole name, any other text a part of the name: as in `inspect --filter`. */
export function nameFilter(pattern: string): (name: string) => boolean {
  const lower = pattern.toLowerCase()
  if (!/[*?]/.test(pattern)) return (name) => name.toLowerCase().includes(lower)
  const source = lower
    .replace(/[\\^$.|+()[\]{}]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.')
  const whole = new RegExp(`^${source}$`, 's')
  return (name) => whole.test(name.toLowerCase())
}
