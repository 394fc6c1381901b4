/**
 * The submitter's end of a queue: adds jobs in bulk, and waits for their ends.
 *
 * Ends arrive as events of BullMQ's stream, which is fast and may lose some: it is trimmed, and a server that restarts may
 * forget its last second. So jobs that wait are also looked up, a bounded number at a time; one that is gone is added again.
 */
import type { Queue, QueueEvents } from 'bullmq'
import type { TileworkError } from '../errors.js'
import { parseJson } from '../pipeline/many/manifest_line.js'
import { type CheckedPlace, Connections, connectionError, loadBullMq } from './connection.js'
import { JOB_NAME, type JobData, jobId } from './job_data.js'
import { sentPolicy } from './job_policy.js'
import { readFailure, settingsOf } from './job_result.js'

/** How a job ended. */
export type JobEnd =
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
  readonly resolve: (end: JobEnd) => void
  readonly reject: (error: TileworkError) => void
  /** Ends of other runs that came under its id. */
  otherEnds: number
}

/** Jobs of one command: large enough that the round trip costs little, small enough that workers get their turn. */
const BULK = 500
/** Jobs looked up at a time, and how often. 2,000 a second cost a server about 1 % of its time. */
const LOOKED_UP = 1000
const LOOK_UP_EVERY_MS = 500
/** Ids read at a time of the finished jobs that an earlier run left. */
const PAGE = 5000
/** Results are removed from the server a moment after they were taken, when the manifest has them. */
const REMOVE_AFTER_MS = 200
/** Attempts to add jobs that the server refuses, for example because its memory is full, and the longest wait between two. */
const MAX_REFUSALS = 12
const LONGEST_WAIT_MS = 10_000
/** Results of another run with other options for the same target; the next one after these is accepted. */
const MAX_OTHER_ENDS = 5
/** Milliseconds to take jobs back from a server that does not answer. */
const WITHDRAW_MS = 3000

export class Submitter {
  readonly #place: CheckedPlace
  readonly #options: SubmitterOptions
  readonly #connections: Connections
  readonly #queue: Queue
  readonly #events: QueueEvents
  readonly #pending = new Map<string, Pending>()
  /** Jobs that an earlier run left finished. */
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
    // Lost connections come back by themselves, and lost events are looked up.
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

  /** Jobs that are waited for. */
  get size(): number {
    return this.#pending.size
  }

  /**
   * Adds a job, unless the queue has one with this target, and waits for its end.
   *
   * @param isEnd - whether an end that an earlier run left may be used
   * @throws TileworkError ERR_IO where the server refuses the job
   */
  async convert(data: JobData, isEnd: (end: JobEnd) => Promise<boolean>): Promise<JobEnd> {
    const id = jobId(data.output)
    if (this.#leftOver.delete(id)) {
      const end = await this.#endOf(id)
      if (end && (await isEnd(end))) {
        this.#collected.push(id)
        return end
      }
      await this.#queue.remove(id)
    }
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { data, resolve, reject, otherEnds: 0 })
      this.#add(id)
    })
  }

  /** Adds a job and does not wait. Resolves when the server has it. */
  async submit(jobs: readonly JobData[]): Promise<void> {
    for (let start = 0; start < jobs.length; start += BULK) {
      await this.#addBulk(jobs.slice(start, start + BULK).map((data) => ({ id: jobId(data.output), data })))
    }
  }

  /** Takes back the jobs that no worker has; those that one has are waited for, or not. */
  async withdraw({ waitForActive }: { readonly waitForActive: boolean }): Promise<void> {
    const ids = [...this.#pending.keys()]
    const removal = this.#removeWaiting(ids)
    if (waitForActive) return removal
    await Promise.race([removal.catch(() => undefined), delayed(WITHDRAW_MS)])
    for (const id of ids) this.#end(id, { kind: 'withdrawn' })
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
      this.#end(id, { kind: 'completed', result: returnvalue }),
    )
    events.on('failed', ({ jobId: id, failedReason }) =>
      this.#end(id, { kind: 'failed', text: failedReason }),
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
        // Withdrawn meanwhile.
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

  /** A job that the queue has already stays as it is, so a command may be repeated. */
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

  #end(id: string, end: JobEnd): void {
    const pending = this.#pending.get(id)
    if (!pending) return
    if (!isEndOf(end, pending.data.settings) && pending.otherEnds++ < MAX_OTHER_ENDS) {
      void this.#addAgain(id).catch(() => undefined)
      return
    }
    this.#pending.delete(id)
    if (end.kind === 'completed') this.#collected.push(id)
    pending.resolve(end)
  }

  async #addAgain(id: string): Promise<void> {
    await this.#queue.remove(id)
    if (this.#pending.has(id)) this.#add(id)
  }

  /** The end of a job that has one; `undefined` otherwise, `null` for a job that is not there. */
  async #endOf(id: string): Promise<JobEnd | undefined | null> {
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
        const end = await this.#endOf(id)
        if (end) this.#end(id, end)
        else if (end === null && this.#pending.has(id)) this.#add(id)
      }),
    )
  }

  /** The next jobs in turn; ids that are not added yet wait for theirs. */
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
    // The manifest of a run that has ended has all.
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
          // 0 where a worker has it.
          if ((await this.#queue.remove(id)) === 1) this.#end(id, { kind: 'withdrawn' })
        }),
      )
    }
  }
}

/** False for the end of a job of another run, which had other options. */
function isEndOf(end: JobEnd, settings: string): boolean {
  if (end.kind === 'withdrawn') return true
  const own = end.kind === 'completed' ? settingsOf(end.result) : readFailure(end.text).settings
  return own === settings || (own === undefined && end.kind === 'failed')
}

function delayed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })
}
