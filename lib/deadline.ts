/** A total time for a call. What ends an inactive connection does not end a server that sends a byte now and then. */
import { TileworkError } from './errors.js'
import { valueText } from './value_text.js'

/** setTimeout takes 31 bits. */
const MAX_DEADLINE_MS = 2 ** 31 - 1

/** The reason of a signal that a deadline has fired. */
export class DeadlineReason extends Error {
  override readonly name = 'DeadlineReason'
}

/** @throws TileworkError ERR_ARGUMENT unless it is undefined or a number of milliseconds */
export function checkDeadline(name: string, value: unknown): void {
  if (value === undefined) return
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_DEADLINE_MS) return
  const message = `${name} is ${valueText(value)}; it must be a whole number of milliseconds from 1 to ${MAX_DEADLINE_MS}.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/**
 * What is left of a total time, as the option of a call; one that has none left fails at once.
 *
 * @param began - by `performance.now`
 * @param most - another limit of the call
 */
export function timeLeft(
  total: number | undefined,
  began: number,
  most = Number.POSITIVE_INFINITY,
): { readonly deadline?: number } {
  const left = Math.min(most, (total ?? Number.POSITIVE_INFINITY) - (performance.now() - began))
  return Number.isFinite(left) ? { deadline: Math.max(1, Math.ceil(left)) } : {}
}

/**
 * Runs a job with a signal that fires with the given one, and when the deadline has passed before the job ended: the job then rejects
 * with ERR_LIMIT. The signal stays usable after the job, for what the job has opened.
 *
 * @param what - the job in words, at the start of the message
 */
export async function withDeadline<T>(
  {
    deadline,
    signal,
    what,
  }: {
    readonly deadline?: number | undefined
    readonly signal?: AbortSignal | undefined
    readonly what: string
  },
  job: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (deadline === undefined) return job(signal)
  const controller = new AbortController()
  const timer = setTimeout(() => {
    controller.abort(new DeadlineReason(`${what} took longer than its deadline of ${deadline} ms.`))
  }, deadline)
  try {
    return await job(signal ? AbortSignal.any([signal, controller.signal]) : controller.signal)
  } finally {
    clearTimeout(timer)
  }
}
