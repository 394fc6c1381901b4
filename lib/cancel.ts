/**
 * How an AbortSignal ends work: in JavaScript, on the addon's threads, and in a wait for code of the caller. This is the only
 * such mechanism, so that every abort is ERR_ABORTED with the signal's reason.
 */
import { readInput } from './caller_input.js'
import { DeadlineReason } from './deadline.js'
import { TileworkError } from './errors.js'
import { valueText } from './value_text.js'

/**
 * Runs a native job that polls a cancel flag once per tile, and sets that flag when the signal fires.
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
  const unsubscribe = whenAborted(signal, () => void Atomics.store(cancel, 0, 1))
  try {
    await job(cancel)
  } catch (error) {
    // The addon does not know the reason.
    if ((error as { code?: unknown }).code === 'ERR_ABORTED') throwIfAborted(signal)
    throw error
  } finally {
    unsubscribe()
  }
  throwIfAborted(signal)
}

/**
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause; ERR_ARGUMENT for a value that is not an AbortSignal and
 * so would never abort
 */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal === undefined) return
  const isAborted = readInput('The signal', () => {
    if (signal instanceof AbortSignal) return signal.aborted
    throw new TileworkError('ERR_ARGUMENT', `signal is ${valueText(signal)}; it must be an AbortSignal.`)
  })
  if (isAborted) throw abortedError(signal)
}

/**
 * Waits for work that may never end by itself (a stream whose reader is stuck, a caller's source). An abort ends the wait; the
 * work goes on and its result is dropped.
 *
 * @throws TileworkError ERR_ABORTED with the signal's reason as cause
 */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  let unsubscribe = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    unsubscribe = whenAborted(signal, () => reject(abortedError(signal)))
    if (signal.aborted) reject(abortedError(signal))
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    unsubscribe()
  }
}

/** The callbacks of one signal. They share one listener: Node warns of a leak at more than ten listeners of a signal. */
interface Subscription {
  readonly callbacks: Set<() => void>
  readonly callAll: () => void
}

const subscriptions = new WeakMap<AbortSignal, Subscription>()

/** @returns a function that unsubscribes; call it when the work has ended */
export function whenAborted(signal: AbortSignal, callback: () => void): () => void {
  const { callbacks, callAll } = subscriptions.get(signal) ?? subscribe(signal)
  callbacks.add(callback)
  return () => {
    callbacks.delete(callback)
    if (callbacks.size > 0 || subscriptions.get(signal)?.callbacks !== callbacks) return
    subscriptions.delete(signal)
    signal.removeEventListener('abort', callAll)
  }
}

function subscribe(signal: AbortSignal): Subscription {
  const callbacks = new Set<() => void>()
  const subscription = {
    callbacks,
    callAll: () => {
      for (const callback of [...callbacks]) callback()
    },
  }
  signal.addEventListener('abort', subscription.callAll, { once: true })
  subscriptions.set(signal, subscription)
  return subscription
}

function abortedError(signal: AbortSignal): TileworkError {
  if (signal.reason instanceof DeadlineReason) return new TileworkError('ERR_LIMIT', signal.reason.message)
  return new TileworkError('ERR_ABORTED', 'The operation was cancelled.', { cause: signal.reason })
}
