/** The first name that an earlier entry has as well. A file may have millions, so none is compared with all others. */
export function firstRepeated(names: readonly string[]): string | undefined {
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}
