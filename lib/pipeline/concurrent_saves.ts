/**
 * The shards that the saves of this process are writing. A save chooses the names of its shards before they exist, so two
 * concurrent saves into one folder could choose the same names, and one index would refer to the other's shards.
 */

const saves = new Map<string, Promise<unknown>>()
let completed = 0

/** Some file systems ignore case. */
const keyOf = (path: string): string => path.toLowerCase()

/** Settles with the save that is writing one of these files; undefined where there is none. */
export function saveThatWrites(paths: readonly string[]): Promise<unknown> | undefined {
  const busy = paths.find((path) => saves.has(keyOf(path)))
  return busy === undefined ? undefined : saves.get(keyOf(busy))
}

/** The number of completed saves. Names that were chosen before the last one may be taken now. */
export function completedSaves(): number {
  return completed
}

/** Runs `save` and registers the files that it writes. */
export async function whileWriting(paths: readonly string[], save: () => Promise<void>): Promise<void> {
  const running = save()
  const end = running.catch(() => undefined)
  for (const path of paths) saves.set(keyOf(path), end)
  try {
    await running
  } finally {
    if (paths.length > 0) completed += 1
    for (const path of paths) saves.delete(keyOf(path))
  }
}
