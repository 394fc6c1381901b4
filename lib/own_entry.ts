/** The entry of a table under a name that a file chose: `constructor` and `__proto__` are ordinary names there. */
export function ownEntry<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}
