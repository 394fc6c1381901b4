/**
 * Turns of the saves that write several files into one folder, over all processes: two of them would choose the same names,
 * or replace each other's data. The lock is that of the folder itself, so nothing is left when a process is killed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { throwIfAborted, untilAborted } from '../cancel.js'
import { native } from '../native/addon.js'
import type { NativeLock } from '../native/types.js'

/** The lock is asked for again after this time, which doubles. */
const FIRST_PAUSE_MS = 1
/** Longest pause: a person does not notice it, and asking costs a system call. */
const MAX_PAUSE_MS = 50

/** The last turn of each folder in this process. */
const turns = new Map<string, Promise<unknown>>()
/** The folders that a save holds, for a caller's source that itself saves. */
const held = new AsyncLocalStorage<ReadonlySet<string>>()

/**
 * Runs `job` when it has the folder for itself. `isAlone` is false where the folder or its file system has no locks: then
 * only this process takes turns.
 *
 * @throws TileworkError ERR_ABORTED when the signal fires during the wait, and what `job` throws
 */
export async function withFolder<T>(
  folder: string,
  signal: AbortSignal | undefined,
  job: (isAlone: boolean) => Promise<T>,
): Promise<T> {
  const key = keyOf(folder)
  if (key === undefined) return job(false)
  const holding = held.getStore()
  if (holding?.has(key)) return job(true)
  const before = turns.get(key)
  const turn = (async () => {
    if (before) await untilAborted(before, signal)
    const taken = await lock(folder, signal)
    try {
      return await held.run(new Set([...(holding ?? []), key]), () => job(taken !== undefined))
    } finally {
      taken?.release()
    }
  })()
  // An aborted wait ends before the turn that it waited for.
  const ended = Promise.allSettled([before, turn])
  turns.set(key, ended)
  try {
    return await turn
  } finally {
    if (turns.get(key) === ended) turns.delete(key)
  }
}

/** Undefined where there is no such folder, which the writer of the first file reports. */
function keyOf(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/** Undefined where there are no locks. */
async function lock(folder: string, signal: AbortSignal | undefined): Promise<NativeLock | undefined> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    const state = native().tryLock(folder)
    if (state === 'unknown') return undefined
    if (state !== 'busy') return state
    // A random part keeps processes from asking in step.
    await setTimeout(pause * (0.5 + Math.random()))
    throwIfAborted(signal)
  }
}
