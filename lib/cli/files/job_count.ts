/** `--jobs`: how many files are worked on at a time. */
import { availableParallelism } from 'node:os'
import { TileworkError } from '../../index.js'

/** Each job has some files open at a time, and many systems allow a process 1,024. */
const MAX_JOBS = 256

/**
 * The number of jobs; 0 stands for as many as there are CPUs.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function parseJobs(text: string): number {
  const jobs = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN
  if (jobs <= MAX_JOBS) return jobs === 0 ? Math.min(availableParallelism(), MAX_JOBS) : jobs
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--jobs takes a whole number from 0 (as many as there are CPUs) to ${MAX_JOBS}; "${text}" is none.`,
  )
}
