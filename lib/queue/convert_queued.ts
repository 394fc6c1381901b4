/** Converts many files by workers; the input list, manifest, reports and result are those of `convertMany`. */
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { whenAborted } from '../cancel.js'
import { TileworkError } from '../errors.js'
import {
  type CheckedManyOptions,
  type ConvertManyOptions,
  convertList,
  MANY_OPTIONS,
  type ManyRun,
  manyOptionNames,
  type PairPerformer,
  readManyOptions,
  stateOf,
} from '../pipeline/convert_many.js'
import type { ConvertInputs } from '../pipeline/many/input_list.js'
import { isOutputUnchanged, isSameInput, notedPath, type StateOf } from '../pipeline/many/manifest_entry.js'
import { isFields } from '../pipeline/many/manifest_line.js'
import type { FilePair } from '../pipeline/many/output_paths.js'
import { type Finished, skipPair } from '../pipeline/many/run_pairs.js'
import type { ConvertManySummary } from '../pipeline/many/tally.js'
import { open } from '../pipeline/open.js'
import { checkPlace, type QueuePlace } from './connection.js'
import { JOB_VERSION, type JobData, type JobOptions, jobOptions, sentPath } from './job_data.js'
import { MAX_ATTEMPTS, MAX_PRIORITY } from './job_policy.js'
import { failedPair, readFailure, settingsOf, writtenPair } from './job_result.js'
import { type JobOutcome, Submitter } from './submitter.js'
import { checkNumber } from './worker_options.js'

export interface QueueOnlyOptions {
  readonly queue: QueuePlace
  /** Attempts of a file whose failure may pass, 1 to 100. Default: 5. */
  readonly attempts?: number
  /** From 1, taken first, to 2,097,151. Default: none, taken before all that have one. */
  readonly priority?: number
  /**
   * Files of this run that are in the queue at the same time, 1 to 1,000,000: the memory of the server that the run takes.
   * Default: 10,000.
   */
  readonly window?: number
  /** Called once, where no worker takes files three seconds after the start of the run. */
  readonly onStall?: (reason: QueueStall) => void
}

/** Why no worker takes files: none is connected, or the queue is paused. */
export type QueueStall = 'no worker' | 'paused'

/**
 * Options of `convertQueued`: the options of `convertMany` that decide what is written, and the options of the queue. How files
 * are read (`open.mode`, `remote` and the like), `device` and the number of parallel files are options of each worker.
 */
export type ConvertQueuedOptions = Omit<ConvertManyOptions, 'jobs'> & QueueOnlyOptions

const QUEUE_OPTIONS = {
  queue: true,
  attempts: true,
  priority: true,
  window: true,
  onStall: true,
} as const satisfies Record<keyof QueueOnlyOptions, true>

const DEFAULT_WINDOW = 10_000
/** A worker that is started with the run needs about a second. */
const STALLED_AFTER_MS = 3000
/** Most jobs of a run that the server holds in memory, each of up to 256 KiB; a larger number is a mistake. */
const MAX_WINDOW = 1_000_000

/**
 * Converts files by the workers of a queue, as `convertMany` does on one machine: the same list, outputs, manifest, reports and
 * result. A run that is stopped removes the files that no worker has taken; the next run collects the results of the others.
 *
 * A path must name the same file on every worker. Two runs that write the same output share one job.
 *
 * @throws TileworkError as `convertMany`; ERR_UNSUPPORTED for options that are not sent to workers and where the package bullmq
 * is not installed; ERR_IO where the queue cannot be reached
 */
export async function convertQueued(
  inputs: ConvertInputs,
  given: ConvertQueuedOptions,
): Promise<ConvertManySummary> {
  const { many, queued, sent } = readQueuedOptions(given, 'convertQueued')
  const place = checkPlace(queued.queue)
  let submitter: Submitter | undefined
  let timer: NodeJS.Timeout | undefined
  try {
    return await convertList(inputs, many, async (run) => {
      const performer = new QueuePerformer(run, many, sent)
      submitter = await Submitter.open(place, {
        ...queued,
        onProgress: (output, progress) => performer.progress(output, progress),
      })
      if (queued.onStall) timer = setTimeout(tellStall, STALLED_AFTER_MS, submitter, queued.onStall)
      return performer.start(submitter, queued.window ?? DEFAULT_WINDOW)
    })
  } finally {
    clearTimeout(timer)
    await submitter?.close()
  }
}

async function tellStall(submitter: Submitter, onStall: (reason: QueueStall) => void): Promise<void> {
  // Where the queue cannot be asked now, the run itself meets the failure.
  const counts = await submitter.counts().catch(() => undefined)
  if (counts === undefined || submitter.size === 0 || counts.active > 0) return
  if (counts.isPaused) onStall('paused')
  else if (counts.workers === 0) onStall('no worker')
}

/** Files that `submitFiles` has put into a queue. */
export interface SubmitSummary {
  /** Files of the list, including files that were in the queue already. */
  readonly files: number
}

/**
 * Puts files into a queue and does not wait for them. A later `convertQueued` with the same options collects the results for as
 * long as the server keeps them (seven days). No file is skipped as done already, and no manifest is written.
 *
 * @throws TileworkError as `convertQueued`
 */
export async function submitFiles(
  inputs: ConvertInputs,
  given: ConvertQueuedOptions,
): Promise<SubmitSummary> {
  const { many, queued, sent } = readQueuedOptions(given, 'submitFiles')
  const submitter = await Submitter.open(checkPlace(queued.queue), queued)
  try {
    let files = 0
    await convertList(inputs, { ...many, manifest: false }, async ({ pairs, settings }) => {
      files = pairs.length
      for (let start = 0; start < files; start += DEFAULT_WINDOW) {
        const jobs = pairs.slice(start, start + DEFAULT_WINDOW).map((pair) => jobOf(pair, settings, sent))
        await submitter.submit(jobs)
      }
      return { jobs: 1, perform: async () => undefined }
    })
    return { files }
  } finally {
    await submitter.close()
  }
}

interface QueuedOptions {
  readonly many: CheckedManyOptions
  readonly queued: QueueOnlyOptions
  readonly sent: JobOptions
}

function readQueuedOptions(given: ConvertQueuedOptions, call: string): QueuedOptions {
  const known = [...manyOptionNames().filter((name) => name !== 'jobs'), ...Object.keys(QUEUE_OPTIONS)]
  checkOptions(given as unknown as Record<string, unknown>, call, known)
  return readInput(`The options of ${call}`, () => {
    const { queue, attempts, priority, window, onStall, ...rest } = given
    checkListener(onStall, 'onStall')
    if (attempts !== undefined) checkNumber('attempts', attempts, 1, MAX_ATTEMPTS)
    if (priority !== undefined) checkNumber('priority', priority, 1, MAX_PRIORITY)
    if (window !== undefined) checkNumber('window', window, 1, MAX_WINDOW)
    const many = readManyOptions(rest, call)
    const queued = {
      queue,
      ...(attempts !== undefined && { attempts }),
      ...(priority !== undefined && { priority }),
      ...(window !== undefined && { window }),
      ...(onStall !== undefined && { onStall }),
    }
    return { many, queued, sent: jobOptions(sentOptions(many)) }
  })
}

function sentOptions({ signal: _, ...options }: CheckedManyOptions): object {
  return Object.fromEntries(Object.entries(options).filter(([name]) => !Object.hasOwn(MANY_OPTIONS, name)))
}

function jobOf({ input, output }: FilePair, settings: string, options: JobOptions): JobData {
  return { version: JOB_VERSION, input: sentPath(input), output: sentPath(output), settings, options }
}

/** Performs the conversions of a run by workers. */
class QueuePerformer {
  readonly #run: ManyRun
  readonly #many: CheckedManyOptions
  readonly #sent: JobOptions
  readonly #stateOf: StateOf
  /** The pairs in the queue, by the output path or URL in their jobs. */
  readonly #pairs = new Map<string, FilePair>()

  constructor(run: ManyRun, many: CheckedManyOptions, sent: JobOptions) {
    this.#run = run
    this.#many = many
    this.#sent = sent
    this.#stateOf = stateOf(many)
  }

  start(submitter: Submitter, window: number): PairPerformer {
    const { signal, keepGoing } = this.#many
    if (signal) whenAborted(signal, () => void submitter.withdraw({ waitForActive: false }))
    const jobs = Math.min(window, Math.max(1, this.#run.pairs.length))
    return {
      jobs,
      perform: async (pair) => {
        const finished = await this.#perform(pair, submitter)
        if (finished?.outcome.status === 'failed' && !keepGoing) {
          submitter.withdraw({ waitForActive: true }).catch(() => undefined)
        }
        return finished
      },
    }
  }

  progress(output: string, progress: unknown): void {
    const pair = this.#pairs.get(output)
    if (!pair || !isFields(progress)) return
    const { bytesDone, bytesTotal } = progress
    if (typeof bytesDone !== 'number' || typeof bytesTotal !== 'number' || !(bytesDone <= bytesTotal)) return
    this.#run.onAdvance(pair, { bytesDone, bytesTotal })
  }

  async #perform(pair: FilePair, submitter: Submitter): Promise<Finished | undefined> {
    const { manifest, settings } = this.#run
    const { signal, open: openOptions } = this.#many
    const skipped = await skipPair(pair, {
      finished: manifest,
      settings,
      signal,
      open: (path) => open(path, openOptions),
      stateOf: this.#stateOf,
    })
    if (skipped) return skipped
    if (signal?.aborted) return undefined
    const data = jobOf(pair, settings, this.#sent)
    this.#pairs.set(data.output, pair)
    try {
      return await this.#finished(
        await submitter.convert(data, (outcome) => this.#mayUse(outcome, pair, data)),
        pair,
        data,
      )
    } catch (error) {
      return { outcome: { status: 'failed', stage: 'convert', error } }
    } finally {
      this.#pairs.delete(data.output)
    }
  }

  async #finished(outcome: JobOutcome, pair: FilePair, { input }: JobData): Promise<Finished | undefined> {
    if (outcome.kind === 'withdrawn') return undefined
    if (outcome.kind === 'failed') return failedPair(readFailure(outcome.text))
    const result = isFields(outcome.result) ? outcome.result : {}
    const finished = writtenPair(result, pair, notedPath(input))
    if (finished) return finished
    throw new TileworkError(
      'ERR_INTERNAL',
      'The queue holds a result that no worker of this version has written.',
    )
  }

  /**
   * Whether the result of an earlier run may be used: a success while the input and the output are unchanged. A failure is tried again,
   * and so is a file whose output somebody has removed since.
   */
  async #mayUse(outcome: JobOutcome, pair: FilePair, { settings, input }: JobData): Promise<boolean> {
    if (outcome.kind !== 'completed' || settingsOf(outcome.result) !== settings || this.#many.force)
      return false
    const note = writtenPair(outcome.result, pair, notedPath(input))?.note
    if (!note) return false
    try {
      if (!(await isOutputUnchanged(note, pair.output, this.#stateOf))) return false
      return await isSameInput(note, pair.input, await this.#stateOf(pair.input), this.#stateOf)
    } catch {
      return false
    }
  }
}
