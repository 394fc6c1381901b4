/**
 * Turns for others: a loop whose reads are answered at once (from memory, from the page cache) would keep timers,
 * signals and other requests of the process waiting until its end, and no abort would ever be seen.
 */
import { setImmediate } from 'node:timers/promises'

/** Work between two turns: short beside what a person notices, long beside what a turn costs. */
const TURN_EVERY_MS = 10

let lastTurn = performance.now()

/** True when `turn` would turn. For loops that wait for nothing else, where a call that waits costs more than a look. */
export function isTurnDue(): boolean {
  return performance.now() - lastTurn >= TURN_EVERY_MS
}

/** Lets the event loop turn once if it has not done so for some milliseconds; else costs next to nothing. */
export async function turn(): Promise<void> {
  if (!isTurnDue()) return
  await setImmediate()
  lastTurn = performance.now()
}
