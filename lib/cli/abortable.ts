/** Lets go of work that cannot be cancelled itself. */
import { TileworkError } from '../index.js'

/** @throws TileworkError ERR_ABORTED */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw cancelled(signal)
}

/**
 * The result of `work`, or ERR_ABORTED as soon as the signal fires. The work itself goes on and its result is
 * dropped; so this is for reading only. It is not begun when the signal has fired before.
 */
export async function abortable<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  throwIfAborted(signal)
  let onAbort: (() => void) | undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(cancelled(signal))
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    if (onAbort) signal.removeEventListener('abort', onAbort)
  }
}

function cancelled(signal: AbortSignal): TileworkError {
  return new TileworkError('ERR_ABORTED', 'The command was cancelled.', { cause: signal.reason })
}
