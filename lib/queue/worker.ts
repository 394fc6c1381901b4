/**
 * A worker: takes files from the queue, converts them within its scope, and reports each result.
 *
 * BullMQ provides the queue (locks, attempts, backoff, recovery of jobs of dead workers). This file adds what BullMQ cannot
 * know: which jobs are allowed, which failures are transient, and which file crashes its workers.
 */
import type * as BullMq from 'bullmq'
import type { Worker as BullWorker, Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { whenAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import { isFields } from '../pipeline/many/manifest_line.js'
import type { FilePair } from '../pipeline/many/output_paths.js'
import { publicName } from '../pipeline/many/remote_files.js'
import { isAbort } from '../pipeline/many/run_pairs.js'
import { Connections, loadBullMq } from './connection.js'
import { convertJob, pairOfJob } from './convert_job.js'
import { JOB_NAME, type JobData, readJob } from './job_data.js'
import { jobPolicy } from './job_policy.js'
import {
  failureOf,
  failureText,
  type JobFailure,
  type JobResult,
  lostFailure,
  shortResult,
} from './job_result.js'
import { Lanes } from './lanes.js'
import { isTransient } from './transient.js'
import {
  type CheckedWorkerOptions,
  checkWorkerOptions,
  type WorkerEvent,
  type WorkerOptions,
} from './worker_options.js'

/** A running worker. */
export interface QueueWorker {
  /** Resolves when the worker has stopped. */
  readonly closed: Promise<void>
  /**
   * Takes no more files. Files in progress may finish within `graceMs`; after that they return to the queue without a counted
   * attempt. Resolves when the connections are closed.
   */
  stop(): Promise<void>
}

/** A file fails once this many processes died while they converted it alone. A single death may be the machine's fault. */
const MAX_DEATHS_ALONE = 3

/** BullMQ's limit of recoveries per job. It also counts the innocent files of a crashed process, so it is set out of reach. */
const MAX_STALLS = 1000

/** Interval of progress reports of a file in milliseconds. */
const REPORT_EVERY_MS = 1000

/** Milliseconds until BullMQ repeats a command that failed because the connection was lost. */
const COMMAND_RETRY_MS = 500

/**
 * Starts to convert files of a queue.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_ABORTED; ERR_UNSUPPORTED without the package bullmq; ERR_IO where the queue cannot be
 * reached
 */
export async function startWorker(options: WorkerOptions): Promise<QueueWorker> {
  const checked = checkWorkerOptions(options)
  const bullmq = loadBullMq()
  const connections = new Connections(checked.place)
  const worker = new FileWorker(checked, bullmq, connections, await connections.open())
  worker.start()
  return worker
}

/** What a worker stores in the `progress` field of a job. */
interface JobProgress {
  readonly bytesDone: number
  readonly bytesTotal: number
  /** Number of processes that died while they converted only this file. */
  readonly deathsAlone: number
}

class FileWorker implements QueueWorker {
  readonly closed: Promise<void>
  readonly #options: CheckedWorkerOptions
  readonly #bullmq: typeof BullMq
  readonly #connections: Connections
  readonly #lanes = new Lanes()
  readonly #folders = new Set<string>()
  /** Aborts the conversions in progress. */
  readonly #abort = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  readonly #bull: BullWorker
  #stopping: Promise<void> | undefined
  #setClosed: () => void = () => undefined

  constructor(
    options: CheckedWorkerOptions,
    bullmq: typeof BullMq,
    connections: Connections,
    connection: Redis,
  ) {
    const { place, jobs, lockMs, rate } = options
    this.#options = options
    this.#bullmq = bullmq
    this.#connections = connections
    this.closed = new Promise((resolve) => {
      this.#setClosed = resolve
    })
    this.#bull = new bullmq.Worker(place.name, (job, token) => this.#track(this.#process(job, token)), {
      connection,
      autorun: false,
      concurrency: jobs,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: MAX_STALLS,
      runRetryDelay: COMMAND_RETRY_MS,
      ...(rate && { limiter: { max: rate.files, duration: rate.perMilliseconds } }),
    })
  }

  start(): void {
    const bull = this.#bull
    bull.on('error', ({ message }) => this.#emit({ kind: 'trouble', message }))
    bull.on('stalled', () => this.#emit({ kind: 'recovered', files: 1 }))
    const { signal } = this.#options
    if (signal) {
      const unsubscribe = whenAborted(signal, () => void this.stop())
      void this.closed.then(unsubscribe)
    }
    bull.run().catch(({ message }: Error) => this.#emit({ kind: 'trouble', message }))
    if (signal?.aborted) void this.stop()
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    await this.#bull.pause(true)
    await settledWithin(this.#running, this.#options.graceMs)
    this.#abort.abort(new Error('The worker stops.'))
    // If the server does not answer, other workers take these files when the locks expire.
    await this.#connections.endAfter(this.#bull.close())
    this.#setClosed()
  }

  #emit(event: WorkerEvent): void {
    this.#options.onEvent?.(event)
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#running.add(work)
    try {
      return await work
    } finally {
      this.#running.delete(work)
    }
  }

  /** Runs one job. The returned value or the thrown error tells BullMQ whether the job is completed, retried or failed. */
  async #process(job: Job, token: string | undefined): Promise<JobResult> {
    // The job's own attempts, backoff and retention are untrusted: they come from Redis.
    job.opts = jobPolicy(job.opts)
    const started = performance.now()
    let data: JobData
    let pair: FilePair
    try {
      data = this.#readJob(job)
      pair = pairOfJob(data, this.#options)
    } catch (error) {
      const input = isFields(job.data) ? shownName(String(job.data.input)) : ''
      const settings = isFields(job.data) ? job.data.settings : undefined
      const failure = failureOf(error, 'open', typeof settings === 'string' ? settings : undefined)
      throw this.#failed(job, { input, failure, started, isLasting: true })
    }
    const isSuspect = job.stalledCounter > 0
    const finished = await this.#lanes.run(isSuspect, async () => {
      if (this.#abort.signal.aborted) return undefined
      if (isSuspect) await this.#countDeath(job, data, started)
      const waitedMs = Math.max(0, Date.now() - job.timestamp)
      this.#emit({ kind: 'started', input: shownName(data.input), waitedMs })
      return convertJob(data, pair, {
        ...this.#options,
        folders: this.#folders,
        signal: this.#abort.signal,
        onProgress: this.#reporter(job),
      })
    })
    const { outcome } = finished ?? {}
    if (finished && outcome?.status === 'written') {
      const { byteLength } = outcome.result
      this.#emit({ kind: 'written', ...filesOf(data), byteLength, ms: performance.now() - started })
      return shortResult(data.settings, finished)
    }
    const error = outcome?.status === 'failed' ? outcome.error : undefined
    if (this.#abort.signal.aborted && (error === undefined || isAbort(error)))
      return this.#handBack(job, data, token)
    const stage = outcome?.status === 'failed' ? outcome.stage : 'convert'
    const failure = failureOf(error, stage, data.settings)
    throw this.#failed(job, {
      input: shownName(data.input),
      failure,
      started,
      isLasting: !isTransient(error),
    })
  }

  #readJob(job: Job): JobData {
    if (job.name === JOB_NAME) return readJob(job.data)
    throw new TileworkError('ERR_ARGUMENT', `The name of the job must be "${JOB_NAME}".`)
  }

  /** Reports the progress of long conversions, once a second at most to limit the load on Redis. */
  #reporter(job: Job): (state: Pick<JobProgress, 'bytesDone' | 'bytesTotal'>) => void {
    let last = performance.now()
    return ({ bytesDone, bytesTotal }) => {
      if (performance.now() - last < REPORT_EVERY_MS) return
      last = performance.now()
      const progress: JobProgress = { bytesDone, bytesTotal, deathsAlone: deathsAlone(job) }
      job.updateProgress(progress).catch(({ message }: Error) => this.#emit({ kind: 'trouble', message }))
    }
  }

  /**
   * A suspect file (its previous worker crashed) is converted alone, so its neighbours are not blamed. The count of crashes is
   * stored before the conversion starts: it survives where the process dies again.
   */
  async #countDeath(job: Job, data: JobData, started: number): Promise<void> {
    const deaths = deathsAlone(job)
    if (deaths >= MAX_DEATHS_ALONE) {
      const failure = lostFailure(data.settings)
      throw this.#failed(job, { input: shownName(data.input), failure, started, isLasting: true })
    }
    await job.updateProgress({ bytesDone: 0, bytesTotal: 0, deathsAlone: deaths + 1 })
  }

  #failed(job: Job, { input, failure, started, isLasting }: Failed): Error {
    const isRetried = !isLasting && job.attemptsMade + 1 < (job.opts.attempts ?? 1)
    const { code, message } = failure
    this.#emit({ kind: 'failed', input, code, message, ms: performance.now() - started, isRetried })
    const { UnrecoverableError } = this.#bullmq
    const error = isLasting ? new UnrecoverableError(failureText(failure)) : new Error(failureText(failure))
    // The stack names folders of this machine, and Redis would keep it.
    delete error.stack
    return error
  }

  /** Returns a job to the front of the queue without counting an attempt. */
  async #handBack(job: Job, { input }: JobData, token: string | undefined): Promise<never> {
    await job.moveToWait(token)
    this.#emit({ kind: 'returned', input: shownName(input) })
    throw new this.#bullmq.WaitingError()
  }
}

interface Failed {
  readonly input: string
  readonly failure: JobFailure
  /** By `performance.now()`. */
  readonly started: number
  /** Whether another attempt would fail in the same way. */
  readonly isLasting: boolean
}

function filesOf({ input, output }: JobData): Pick<JobData, 'input' | 'output'> {
  return { input: shownName(input), output: shownName(output) }
}

/** Without the query of a URL, which may be an access token. */
function shownName(name: string): string {
  try {
    return publicName(name)
  } catch {
    return 'a URL that is not valid'
  }
}

function deathsAlone({ progress }: Job): number {
  const deaths = isFields(progress) ? progress.deathsAlone : 0
  return Number.isSafeInteger(deaths) ? (deaths as number) : 0
}

function delayed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref()
  })
}

async function settledWithin(work: ReadonlySet<Promise<unknown>>, milliseconds: number): Promise<void> {
  await Promise.race([Promise.allSettled(work), delayed(milliseconds)])
}
