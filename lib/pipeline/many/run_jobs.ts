/** A list worked through by a bounded number of jobs at a time, in one process. */

/** What a job says about the rest of the list. */
export type Verdict = 'continue' | 'stop'

/**
 * Runs `work` for the items in order, at most `jobs` at a time. After a `stop` no further item is begun and those
 * begun are waited for; so it is after a throw, which then is thrown on.
 *
 * Nothing is kept of an item that is done, so memory does not grow with the list.
 */
export async function runJobs<T>(
  items: Iterable<T>,
  jobs: number,
  work: (item: T) => Promise<Verdict>,
): Promise<void> {
  const rest = items[Symbol.iterator]()
  let isStopped = false
  const worker = async (): Promise<void> => {
    while (!isStopped) {
      const next = rest.next()
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
