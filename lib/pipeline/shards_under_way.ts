/**
 * Which shards are being written by the saves of this process. Their names are chosen before they are there, so two
 * saves into one folder at the same time could choose the same, and leave the index of one with shards of the other.
 */

const saves = new Map<string, Promise<unknown>>()
let ended = 0

/** Some file systems take names that differ in case for one. */
const keyOf = (path: string): string => path.toLowerCase()

/** The end of a save that is writing one of these files; undefined where none is. */
export function shardsUnderWay(paths: readonly string[]): Promise<unknown> | undefined {
  const busy = paths.find((path) => saves.has(keyOf(path)))
  return busy === undefined ? undefined : saves.get(keyOf(busy))
}

/** How many saves have ended so far: names that were chosen before the last of them may be taken now. */
export function endedSaves(): number {
  return ended
}

/** Runs `save`, which writes these files. */
export async function whileWriting(paths: readonly string[], save: () => Promise<void>): Promise<void> {
  const running = save()
  const end = running.catch(() => undefined)
  for (const path of paths) saves.set(keyOf(path), end)
  try {
    await running
  } finally {
    if (paths.length > 0) ended += 1
    for (const path of paths) saves.delete(keyOf(path))
  }
}
