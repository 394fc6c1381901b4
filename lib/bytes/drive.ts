/**
 * Runs parsers that are generators: a parser yields the bytes it needs and continues when they are in memory. So one parser
 * serves synchronous and asynchronous sources, and never waits for bytes that are in memory already.
 */

/** Runs a parser to its end. @param fetch - provides what the parser needs; returns nothing where it did so synchronously */
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

/** As `drive`, synchronously. */
export function driveSync<Need, T>(reading: Generator<Need, T, void>, fetch: (need: Need) => void): T {
  for (;;) {
    const step = reading.next()
    if (step.done) return step.value
    fetch(step.value)
  }
}
