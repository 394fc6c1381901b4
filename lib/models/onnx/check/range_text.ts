/** Counts that a rule takes, for messages: `2`, `1 to 3`, `at least 1`. */
export function rangeText(least: number, most: number): string {
  if (least === most) return `${least}`
  return most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`
}
