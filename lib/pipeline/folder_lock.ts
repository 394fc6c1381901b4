/**
 * Serializes the multi-file saves into a folder, across all processes: concurrent saves would choose the same names or replace
 * each other's data. The folder itself is locked, so a killed process leaves no lock file behind.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { statSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { tryLockFolder } from '../bytes/open_native.js'
import { throwIfAborted, untilAborted } from '../cancel.js'
import type { NativeLock } from '../native/types.js'

/** Pause before the first retry to get the lock; the pause doubles. */
const FIRST_PAUSE_MS = 1
/** Longest pause between retries: imperceptible, while each retry costs a system call. */
const MAX_PAUSE_MS = 50

/** The last save of each folder in this process. */
const turns = new Map<string, Promise<unknown>>()
/** The folders that the current save has locked, for a caller's source that itself saves. */
const held = new AsyncLocalStorage<ReadonlySet<string>>()

/**
 * Runs `job` with exclusive access to the folder. `isAlone` is false where the folder or its file system has no locks: then only
 * the saves of this process are serialized.
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
  // Waits for both: an aborted wait settles before the save for which it waited.
  const ended = Promise.allSettled([before, turn])
  turns.set(key, ended)
  try {
    return await turn
  } finally {
    if (turns.get(key) === ended) turns.delete(key)
  }
}

/** Undefined for a missing folder, which is reported when the first file is opened. */
function keyOf(folder: string): string | undefined {
  try {
    const { dev, ino } = statSync(folder, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/** Locks the folder; undefined where locks are not supported. */
async function lock(folder: string, signal: AbortSignal | undefined): Promise<NativeLock | undefined> {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    const state = tryLockFolder(folder)
    if (state === 'unknown') return undefined
    if (state !== 'busy') return state
    // Jitter, so that processes do not retry in lockstep.
    await setTimeout(pause * (0.5 + Math.random()))
    throwIfAborted(signal)
  }
}
