/**
 * Yields to the event loop. A loop whose reads complete at once (from memory, from the page cache) would block timers, signals
 * and other requests of the process until its end, and no abort would be noticed.
 */
import { setImmediate } from 'node:timers/promises'

/** Milliseconds between two yields: below what a person notices, far above the cost of a yield. */
const YIELD_INTERVAL_MS = 10

let lastYield = performance.now()

/** True when `yieldToEventLoop` would yield. For hot loops, where an await costs more than this test. */
export function isYieldDue(): boolean {
  return performance.now() - lastYield >= YIELD_INTERVAL_MS
}

/** Lets the event loop run if it has not run for {@link YIELD_INTERVAL_MS}; otherwise returns at once. */
export async function yieldToEventLoop(): Promise<void> {
  if (!isYieldDue()) return
  await setImmediate()
  lastYield = performance.now()
}
