/**
 * Reading as a generator: it yields what it needs, and goes on when that is there. One reading serves sources that
 * answer at once and those that answer later, and asks for nothing where the bytes are in memory already.
 */

/** Runs a reading to its end. @param fetch - gets what it needs; at once where it returns nothing */
export async function drive<Need, T>(
  reading: Generator<Need, T, void>,
  fetch: (need: Need) => Promise<void> | void,
): Promise<T> {
  for (;;) {
    const step = reading.next()
    if (step.done) return step.value
    const fetched = fetch(step.value)
    if (fetched) await fetched
  }
}

/** As `drive`, at once. */
export function driveSync<Need, T>(reading: Generator<Need, T, void>, fetch: (need: Need) => void): T {
  for (;;) {
    const step = reading.next()
    if (step.done) return step.value
    fetch(step.value)
  }
}
