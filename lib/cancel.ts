/** How an AbortSignal ends what runs: on this thread, on the addon's threads, and in a wait for somebody else. */
import { TileworkError } from './errors.js'

/**
 * Runs a native job that looks at a cancel flag once a tile, and sets that flag when the signal fires.
 *
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause
 */
export async function withCancelFlag(
  signal: AbortSignal | undefined,
  job: (cancel: Int32Array | undefined) => Promise<void>,
): Promise<void> {
  if (!signal) return job(undefined)
  throwIfAborted(signal)
  const cancel = new Int32Array(new SharedArrayBuffer(4))
  const onAbort = (): void => void Atomics.store(cancel, 0, 1)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await job(cancel)
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
  throwIfAborted(signal)
}

/**
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause; ERR_ARGUMENT for what is no AbortSignal, which
 * would never abort
 */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TileworkError('ERR_ARGUMENT', 'signal must be an AbortSignal.')
  }
  if (signal?.aborted) throw abortedError(signal)
}

/**
 * Waits for work that may never end by itself (a stream whose reader is stuck, a source of somebody else). The work is
 * not stopped, its result is dropped.
 *
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  let onAbort: (() => void) | undefined
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(abortedError(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', onAbort!)
  }
}

function abortedError(signal: AbortSignal): TileworkError {
  return new TileworkError('ERR_ABORTED', 'The operation was cancelled.', { cause: signal.reason })
}
