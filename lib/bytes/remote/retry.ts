/** Repeats requests after transient failures, with exponential backoff. */
import { setTimeout as delay } from 'node:timers/promises'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { systemError } from '../system_error.js'
import type { CheckedRemoteOptions } from './remote_options.js'
import { RetryableError } from './url_scheme.js'

/** Statuses after which the same request may succeed. */
export const RETRYABLE_STATUS: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504])

/** Bound of the first wait in milliseconds; the bound doubles with each further wait. */
const FIRST_WAIT = 100
const LONGEST_WAIT = 10_000
/** Longest Retry-After in milliseconds that is honoured. */
const LONGEST_ASKED_WAIT = 60_000

/**
 * Runs `request`, and again after each RetryableError. Each wait is random between 0 and its bound ("full jitter"), so that
 * many clients of one server do not retry at the same moment.
 *
 * @throws TileworkError ERR_IO after the last attempt; ERR_ABORTED; at once for every other error
 */
export async function withRetries<T>(
  label: string,
  { retries, signal }: Pick<CheckedRemoteOptions, 'retries' | 'signal'>,
  request: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    throwIfAborted(signal)
    try {
      return await request()
    } catch (error) {
      throwIfAborted(signal)
      if (!(error instanceof RetryableError)) throw systemError.from(label, error)
      if (attempt === retries) throw lastError(label, error, attempt + 1)
      const bound = Math.min(FIRST_WAIT * 2 ** attempt, LONGEST_WAIT)
      const wait = Math.max(Math.random() * bound, Math.min(error.wait, LONGEST_ASKED_WAIT))
      await delay(wait, undefined, signal && { signal }).catch(() => throwIfAborted(signal))
    }
  }
}

function lastError(label: string, error: RetryableError, attempts: number): TileworkError {
  const times = attempts === 1 ? '' : `, in each of ${attempts} attempts`
  return new TileworkError('ERR_IO', `${label}: ${error.message}${times}.`, { path: label, cause: error })
}
