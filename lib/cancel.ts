/** How an AbortSignal ends what runs: on this thread, on the addon's threads, and in a wait for somebody else. */
import { readInput } from './caller_input.js'
import { TileworkError } from './errors.js'
import { valueText } from './value_text.js'

/**
 * Runs a native job that looks at a cancel flag once a tile, and sets that flag when the signal fires.
 *
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause
 */
export async function withCancelFlag(
  signal: AbortSignal | undefined,
  job: (cancel: Int32Array | undefined) => Promise<void>,
): Promise<void> {
  if (signal === undefined) return job(undefined)
  throwIfAborted(signal)
  const cancel = new Int32Array(new SharedArrayBuffer(4))
  const forget = whenAborted(signal, () => void Atomics.store(cancel, 0, 1))
  try {
    await job(cancel)
  } finally {
    forget()
  }
  throwIfAborted(signal)
}

/**
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause; ERR_ARGUMENT for what is no AbortSignal, which
 * would never abort
 */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined) return
  const isAborted = readInput('The signal', () => {
    if (signal instanceof AbortSignal) return signal.aborted
    throw new TileworkError('ERR_ARGUMENT', `signal must be an AbortSignal; it is ${valueText(signal)}.`)
  })
  if (isAborted) throw abortedError(signal)
}

/**
 * Waits for work that may never end by itself (a stream whose reader is stuck, a source of somebody else). The work is
 * not stopped, its result is dropped.
 *
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  let forget = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    forget = whenAborted(signal, () => reject(abortedError(signal)))
    if (signal.aborted) reject(abortedError(signal))
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    forget()
  }
}

/** Who waits for a signal. It gets one listener for all of them: Node takes more than ten on one signal for a leak. */
interface Waiting {
  readonly calls: Set<() => void>
  readonly tellAll: () => void
}

const waitingFor = new WeakMap<AbortSignal, Waiting>()

/** @returns ends the waiting; to be called when it is no longer needed */
function whenAborted(signal: AbortSignal, call: () => void): () => void {
  const { calls, tellAll } = waitingFor.get(signal) ?? listenTo(signal)
  calls.add(call)
  return () => {
    calls.delete(call)
    if (calls.size > 0 || waitingFor.get(signal)?.calls !== calls) return
    waitingFor.delete(signal)
    signal.removeEventListener('abort', tellAll)
  }
}

function listenTo(signal: AbortSignal): Waiting {
  const calls = new Set<() => void>()
  const waiting = {
    calls,
    tellAll: () => {
      for (const call of [...calls]) call()
    },
  }
  signal.addEventListener('abort', waiting.tellAll, { once: true })
  waitingFor.set(signal, waiting)
  return waiting
}

function abortedError(signal: AbortSignal): TileworkError {
  return new TileworkError('ERR_ABORTED', 'The operation was cancelled.', { cause: signal.reason })
}
