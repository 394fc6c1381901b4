/** Processes a list with a bounded number of concurrent jobs. */

/** Whether further items may start. */
export type Verdict = 'continue' | 'stop'

/**
 * Runs `work` for the items in order, at most `jobs` at a time. After a `stop` or an error no further item is started; items in
 * progress are awaited, then the first error is thrown.
 *
 * Completed items are dropped, so that memory does not grow with the list.
 */
export async function runJobs<T>(
  items: Iterable<T>,
  jobs: number,
  work: (item: T) => Promise<Verdict>,
): Promise<void> {
  const remaining = items[Symbol.iterator]()
  let isStopped = false
  const worker = async (): Promise<void> => {
    while (!isStopped) {
      const next = remaining.next()
      if (next.done) return
      try {
        if ((await work(next.value)) === 'stop') isStopped = true
      } catch (error) {
        isStopped = true
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: jobs }, worker))
  const failed = ended.find(({ status }) => status === 'rejected')
  if (failed) throw (failed as PromiseRejectedResult).reason
}
