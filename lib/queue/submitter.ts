/**
 * The submitting side of a queue: adds jobs in bulk and waits for their results.
 *
 * Results arrive as events of BullMQ's stream, which is fast but may lose some: it is trimmed, and a server that restarts may
 * lose its last second. So pending jobs are also polled, a bounded number at a time; a job that is gone is added again.
 */
import type { Queue, QueueEvents } from 'bullmq'
import type { TileworkError } from '../errors.js'
import { parseJson } from '../pipeline/many/manifest_line.js'
import { type CheckedPlace, Connections, connectionError, loadBullMq } from './connection.js'
import { countsOf, type QueueCounts } from './control.js'
import { JOB_NAME, type JobData, jobId } from './job_data.js'
import { sentPolicy } from './job_policy.js'
import { readFailure, settingsOf } from './job_result.js'

/** How a job ended. */
export type JobOutcome =
  | { readonly kind: 'completed'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly text: string }
  /** Taken back before a worker had it, or no longer waited for. */
  | { readonly kind: 'withdrawn' }

export interface SubmitterOptions {
  readonly attempts?: number | undefined
  readonly priority?: number | undefined
  onProgress?(output: string, progress: unknown): void
}

interface Pending {
  readonly data: JobData
  readonly resolve: (outcome: JobOutcome) => void
  readonly reject: (error: TileworkError) => void
  /** Number of results under this id that came from runs with different options. */
  foreignResults: number
}

/** Jobs per command: enough that the round trip costs little, few enough that commands of workers are not delayed. */
const BULK = 500
/** Jobs that one poll looks up, and the interval of polls. 2,000 look-ups a second cost a server about 1 % of its time. */
const LOOKED_UP = 1000
const LOOK_UP_EVERY_MS = 500
/** Ids per request when the finished jobs of earlier runs are listed. */
const PAGE = 5000
/** Delay before a collected result is removed from the server: by then the manifest has recorded it. */
const REMOVE_AFTER_MS = 200
/** Attempts to add jobs that the server refuses, for example because its memory is full, and the longest wait between two. */
const MAX_REFUSALS = 12
const LONGEST_WAIT_MS = 10_000
/** Results from runs with different options for the same output that are rejected; the next one is accepted. */
const MAX_FOREIGN_RESULTS = 5
/** How long in milliseconds `withdraw` waits for a server that does not answer. */
const WITHDRAW_MS = 3000

export class Submitter {
  readonly #place: CheckedPlace
  readonly #options: SubmitterOptions
  readonly #connections: Connections
  readonly #queue: Queue
  readonly #events: QueueEvents
  readonly #pending = new Map<string, Pending>()
  /** Ids of jobs that finished in an earlier run and were not collected. */
  readonly #leftOver = new Set<string>()
  #batch: string[] = []
  #collected: string[] = []
  #adding: Promise<void> = Promise.resolve()
  #isFlushPlanned = false
  #lookUpFrom: Iterator<string> | undefined
  #lookUp: NodeJS.Timeout | undefined
  #isClosed = false

  private constructor(
    place: CheckedPlace,
    options: SubmitterOptions,
    connections: Connections,
    [queue, events]: readonly [Queue, QueueEvents],
  ) {
    this.#place = place
    this.#options = options
    this.#connections = connections
    this.#queue = queue
    this.#events = events
    // ioredis reconnects by itself, and polling finds the results whose events were lost.
    queue.on('error', () => undefined)
    events.on('error', () => undefined)
  }

  /** @throws TileworkError ERR_IO, ERR_UNSUPPORTED */
  static async open(place: CheckedPlace, options: SubmitterOptions): Promise<Submitter> {
    const { Queue, QueueEvents } = loadBullMq()
    const connections = new Connections(place)
    try {
      const ends = [
        new Queue(place.name, { connection: await connections.open() }),
        new QueueEvents(place.name, { connection: await connections.open() }),
      ] as const
      const submitter = new Submitter(place, options, connections, ends)
      await submitter.#readLeftOver()
      submitter.#listen()
      return submitter
    } catch (error) {
      connections.end()
      throw error
    }
  }

  counts(): Promise<QueueCounts> {
    return countsOf(this.#queue)
  }

  /** Number of pending jobs. */
  get size(): number {
    return this.#pending.size
  }

  /**
   * Adds a job, unless the queue has a job with the same output, and waits for its result.
   *
   * @param mayUse - whether the result of an earlier run may be used
   * @throws TileworkError ERR_IO where the server refuses the job
   */
  async convert(data: JobData, mayUse: (outcome: JobOutcome) => Promise<boolean>): Promise<JobOutcome> {
    const id = jobId(data.output)
    if (this.#leftOver.delete(id)) {
      const outcome = await this.#outcomeOf(id)
      if (outcome && (await mayUse(outcome))) {
        this.#collected.push(id)
        return outcome
      }
      await this.#queue.remove(id)
    }
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { data, resolve, reject, foreignResults: 0 })
      this.#add(id)
    })
  }

  /** Adds a job and does not wait. Resolves when the server has it. */
  async submit(jobs: readonly JobData[]): Promise<void> {
    for (let start = 0; start < jobs.length; start += BULK) {
      await this.#addBulk(jobs.slice(start, start + BULK).map((data) => ({ id: jobId(data.output), data })))
    }
  }

  /** Removes the pending jobs that no worker has taken; `waitForActive` also waits for the jobs that a worker has. */
  async withdraw({ waitForActive }: { readonly waitForActive: boolean }): Promise<void> {
    const ids = [...this.#pending.keys()]
    const removal = this.#removeWaiting(ids)
    if (waitForActive) return removal
    await Promise.race([removal.catch(() => undefined), delayed(WITHDRAW_MS)])
    for (const id of ids) this.#settle(id, { kind: 'withdrawn' })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#lookUp)
    const closing = Promise.all([this.#removeCollected(), this.#adding]).then(() =>
      Promise.all([this.#queue.close(), this.#events.close()]),
    )
    await this.#connections.endAfter(closing)
  }

  #listen(): void {
    const events = this.#events
    events.on('completed', ({ jobId: id, returnvalue }) =>
      this.#settle(id, { kind: 'completed', result: returnvalue }),
    )
    events.on('failed', ({ jobId: id, failedReason }) =>
      this.#settle(id, { kind: 'failed', text: failedReason }),
    )
    events.on('progress', ({ jobId: id, data }) => {
      const pending = this.#pending.get(id)
      if (pending) this.#options.onProgress?.(pending.data.output, data)
    })
    this.#lookUp = setInterval(() => void this.#lookUpSome().catch(() => undefined), LOOK_UP_EVERY_MS)
  }

  async #readLeftOver(): Promise<void> {
    for (let start = 0; ; start += PAGE) {
      const ids = await this.#queue.getRanges(['completed', 'failed'], start, start + PAGE - 1)
      for (const id of ids) this.#leftOver.add(id)
      if (ids.length === 0) return
    }
  }

  #add(id: string): void {
    this.#batch.push(id)
    if (this.#isFlushPlanned) return
    this.#isFlushPlanned = true
    setImmediate(() => {
      this.#isFlushPlanned = false
      this.#flush()
    })
  }

  #flush(): void {
    const batch = this.#batch
    this.#batch = []
    this.#adding = this.#adding.then(async () => {
      for (let start = 0; start < batch.length; start += BULK) {
        const ids = batch.slice(start, start + BULK)
        // Jobs that were withdrawn in the meantime are skipped.
        const jobs = ids.flatMap((id) => {
          const pending = this.#pending.get(id)
          return pending ? [{ id, data: pending.data }] : []
        })
        await this.#addBulk(jobs).catch((error: TileworkError) => {
          for (const { id } of jobs) {
            this.#pending.get(id)?.reject(error)
            this.#pending.delete(id)
          }
        })
      }
    })
  }

  /** Adding a job that the queue has already changes nothing, so the command can be repeated safely. */
  async #addBulk(jobs: readonly { readonly id: string; readonly data: JobData }[]): Promise<void> {
    const opts = sentPolicy(this.#options)
    const added = jobs.map(({ id, data }) => ({ name: JOB_NAME, data, opts: { ...opts, jobId: id } }))
    for (let refusals = 0; added.length > 0; refusals++) {
      try {
        await this.#queue.addBulk(added)
        return
      } catch (error) {
        if (this.#isClosed || refusals === MAX_REFUSALS) throw connectionError(this.#place.label, error)
        await delayed(Math.min(100 * 2 ** refusals, LONGEST_WAIT_MS))
      }
    }
  }

  #settle(id: string, outcome: JobOutcome): void {
    const pending = this.#pending.get(id)
    if (!pending) return
    if (!isOwnOutcome(outcome, pending.data.settings) && pending.foreignResults++ < MAX_FOREIGN_RESULTS) {
      void this.#addAgain(id).catch(() => undefined)
      return
    }
    this.#pending.delete(id)
    if (outcome.kind === 'completed') this.#collected.push(id)
    pending.resolve(outcome)
  }

  async #addAgain(id: string): Promise<void> {
    await this.#queue.remove(id)
    if (this.#pending.has(id)) this.#add(id)
  }

  /** The result of a finished job; `undefined` for an unfinished job, `null` for a job that does not exist. */
  async #outcomeOf(id: string): Promise<JobOutcome | undefined | null> {
    const job = await this.#queue.getJob(id)
    if (!job) return null
    if (!job.finishedOn) return undefined
    if (job.failedReason) return { kind: 'failed', text: job.failedReason }
    const { returnvalue } = job
    return {
      kind: 'completed',
      result: typeof returnvalue === 'string' ? parseJson(returnvalue) : returnvalue,
    }
  }

  async #lookUpSome(): Promise<void> {
    await this.#removeCollected()
    const ids = this.#nextToLookUp()
    await Promise.all(
      ids.map(async (id) => {
        const outcome = await this.#outcomeOf(id)
        if (outcome) this.#settle(id, outcome)
        else if (outcome === null && this.#pending.has(id)) this.#add(id)
      }),
    )
  }

  /** The next pending jobs to poll, round robin; jobs that are not added yet are skipped. */
  #nextToLookUp(): string[] {
    const unsent = new Set(this.#batch)
    const ids: string[] = []
    for (let steps = Math.min(LOOKED_UP, this.#pending.size); steps > 0; steps--) {
      this.#lookUpFrom ??= this.#pending.keys()
      const { done, value } = this.#lookUpFrom.next()
      if (done) {
        this.#lookUpFrom = undefined
        break
      }
      if (!unsent.has(value)) ids.push(value)
    }
    return ids
  }

  async #removeCollected(): Promise<void> {
    const ids = this.#collected
    this.#collected = []
    if (ids.length === 0) return
    // Once the run has ended, its manifest has recorded every result.
    if (!this.#isClosed) await delayed(REMOVE_AFTER_MS)
    for (let start = 0; start < ids.length; start += BULK) {
      await Promise.all(ids.slice(start, start + BULK).map((id) => this.#queue.remove(id)))
    }
  }

  async #removeWaiting(ids: readonly string[]): Promise<void> {
    await this.#adding
    for (let start = 0; start < ids.length; start += BULK) {
      await Promise.all(
        ids.slice(start, start + BULK).map(async (id) => {
          // `remove` returns 0 for a job that a worker has.
          if ((await this.#queue.remove(id)) === 1) this.#settle(id, { kind: 'withdrawn' })
        }),
      )
    }
  }
}

/** False for a result from a run with different options. */
function isOwnOutcome(outcome: JobOutcome, settings: string): boolean {
  if (outcome.kind === 'withdrawn') return true
  const own = outcome.kind === 'completed' ? settingsOf(outcome.result) : readFailure(outcome.text).settings
  return own === settings || (own === undefined && outcome.kind === 'failed')
}

function delayed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })
}
