/** What BullMQ does with a job: attempts, waits between them, what is kept of finished ones. One place for both sides. */
import type { JobsOptions } from 'bullmq'

/** Attempts of a file whose failures may pass. Each has the repeated requests of `remote.retries` in it. */
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
 * Options of a job, for BullMQ in the worker. Those that a job in Redis has are hostile: of them the two numbers are taken,
 * within their bounds.
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
