/** Byte counts, counts of things and large numbers as text. */

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const

/** `712 B`, `1.5 KiB`, `16 MiB`: at most three digits before the unit changes. */
export function formatBytes(count: number): string {
  if (count < 1024) return `${count} B`
  let value = count / 1024
  let unit = 0
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024
    unit++
  }
  const digits = value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0)
  return `${digits.replace(/\.0+$/, '')} ${UNITS[unit]}`
}

/** `1 tensor`, `2 tensors`; `1 entry`, `2 entries` where the plural is given. */
export function formatCount(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}

/** `1,234,567`. */
export function formatNumber(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}
