/** The BullMQ options of a job (attempts, backoff, retention of results), shared by submitter and worker. */
import type { JobsOptions } from 'bullmq'

/** Attempts of a file after transient failures. Each attempt also retries its requests up to `remote.retries` times. */
export const DEFAULT_ATTEMPTS = 5
/** With waits that double, more attempts would outlast every disturbance. */
export const MAX_ATTEMPTS = 100

/** The last number that BullMQ takes: 2^21 - 1. */
export const MAX_PRIORITY = 2_097_151

/** Waits of 1, 2, 4, … seconds, half of each random, so that files that failed together do not come back together. */
const BACKOFF = { type: 'exponential', delay: 1000, jitter: 0.5 }

/** Seconds that results nobody has collected are kept: a run that was stopped on Friday resumes on Monday. */
const KEEP_SECONDS = 7 * 24 * 3600

/**
 * What a submitter sends: the worker adds the rest, which is the same for every job, and Redis keeps each job's options in
 * memory.
 */
export function sentPolicy({ attempts, priority }: JobNumbers): JobsOptions {
  return { ...(attempts !== undefined && { attempts }), ...(priority !== undefined && { priority }) }
}

interface JobNumbers {
  readonly attempts?: number | undefined
  readonly priority?: number | undefined
}

/**
 * Options of a job, for BullMQ in the worker. The options stored in Redis are untrusted: only the two numbers are used, clamped
 * to their bounds.
 */
export function jobPolicy(given: { readonly attempts?: unknown; readonly priority?: unknown }): JobsOptions {
  return {
    attempts: within(given.attempts, 1, MAX_ATTEMPTS) ?? DEFAULT_ATTEMPTS,
    ...(within(given.priority, 1, MAX_PRIORITY) !== undefined && { priority: given.priority as number }),
    backoff: BACKOFF,
    removeOnComplete: { age: KEEP_SECONDS },
    removeOnFail: { age: KEEP_SECONDS },
    stackTraceLimit: 0,
  }
}

function within(value: unknown, min: number, max: number): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
    ? (value as number)
    : undefined
}
