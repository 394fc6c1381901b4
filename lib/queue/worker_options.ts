/** Options of a worker. */
import { checkRemoteOptions, type RemoteOptions } from '../bytes/remote/remote_options.js'
import { checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { checkDeadline } from '../deadline.js'
import { type ErrorCode, TileworkError } from '../errors.js'
import type { OpenOptions } from '../pipeline/open.js'
import { valueText } from '../value_text.js'
import { type CheckedPlace, checkPlace, type QueuePlace } from './connection.js'
import { Scope } from './scope.js'

/** How inputs are read on this machine. */
export type WorkerReadOptions = Pick<OpenOptions, 'mode' | 'guard' | 'symlinks' | 'hardLinks' | 'limits'>

export interface WorkerOptions {
  readonly queue: QueuePlace
  /** Folders, and URLs such as `s3://bucket/models/`, below which files are read and written. Links are resolved first. */
  readonly roots?: readonly string[]
  /**
   * Schemes for which every URL is read and written, such as `s3`. For `http` and `https` only hosts with public addresses are
   * allowed; other hosts need a root.
   */
  readonly allowSchemes?: readonly string[]
  /** Files converted at the same time, 1 to 256. Default: 1. */
  readonly jobs?: number
  /** Rate limit across all workers: at most `files` are started per `perMilliseconds`. Must be the same for every worker. */
  readonly rate?: { readonly files: number; readonly perMilliseconds: number }
  /**
   * Milliseconds after which the lock of a worker on its files expires; it is renewed at half of the time. When a worker dies,
   * others take its files after this time. Default: 30,000.
   */
  readonly lockMs?: number
  /** Milliseconds that `stop` waits for files in progress before it returns them to the queue. Default: 5,000. */
  readonly graceMs?: number
  /** Bytes of the largest output that a job may write. Default: 1 TiB. */
  readonly maxOutputBytes?: number
  /**
   * Milliseconds for a file as a whole: opening it, waits for servers included, computing and writing. After that it fails with
   * ERR_LIMIT and is not tried again. Default: none.
   */
  readonly deadline?: number
  readonly open?: WorkerReadOptions
  /** Settings for URLs on this machine; jobs cannot set them. */
  readonly remote?: RemoteOptions
  /** Stops the worker as `stop` does. */
  readonly signal?: AbortSignal
  /** Called for each event, for logs and metrics. */
  readonly onEvent?: (event: WorkerEvent) => void
}

/**
 * An event of a worker. URLs have no user, password and query. Durations are measured by this worker; `waitedMs` is the time
 * since the file was submitted or returned.
 */
export type WorkerEvent =
  | { readonly kind: 'started'; readonly input: string; readonly waitedMs: number }
  | {
      readonly kind: 'written'
      readonly input: string
      readonly output: string
      readonly byteLength: number
      readonly ms: number
    }
  | {
      readonly kind: 'failed'
      readonly input: string
      readonly code: ErrorCode
      readonly message: string
      readonly ms: number
      /** Whether the file is tried again. */
      readonly isRetried: boolean
    }
  /** Returned to the queue unfinished because the worker stops. */
  | { readonly kind: 'returned'; readonly input: string }
  /** Files of dead workers that this worker has returned to the queue. */
  | { readonly kind: 'recovered'; readonly files: number }
  /** The connection was lost or a command failed. The worker continues. */
  | { readonly kind: 'trouble'; readonly message: string }

export interface CheckedWorkerOptions extends WorkerOptions {
  readonly place: CheckedPlace
  readonly scope: Scope
  readonly jobs: number
  readonly lockMs: number
  readonly graceMs: number
  readonly maxOutputBytes: number
}

const NAMES: readonly (keyof WorkerOptions)[] = [
  'queue',
  'roots',
  'allowSchemes',
  'jobs',
  'rate',
  'lockMs',
  'graceMs',
  'maxOutputBytes',
  'deadline',
  'open',
  'remote',
  'signal',
  'onEvent',
]

const READ_NAMES: readonly (keyof WorkerReadOptions)[] = ['mode', 'guard', 'symlinks', 'hardLinks', 'limits']

/** A mistyped number would open more files than a process may have. */
const MAX_WORKER_JOBS = 256
/** With a shorter lock, a pause of the process would lose its files. */
const MIN_LOCK_MS = 1000
/** A day: a longer time is a mistake of unit. */
const MAX_MS = 24 * 3600 * 1000

const DEFAULTS = { jobs: 1, lockMs: 30_000, graceMs: 5_000, maxOutputBytes: 1024 ** 4 } as const

/** @throws TileworkError ERR_ARGUMENT, ERR_ABORTED, ERR_IO for a root that is not there */
export function checkWorkerOptions(given: WorkerOptions): CheckedWorkerOptions {
  checkOptions(given, 'startWorker', NAMES)
  const options = readInput('The options of startWorker', () => ({
    ...DEFAULTS,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  })) as WorkerOptions & typeof DEFAULTS
  checkNumber('jobs', options.jobs, 1, MAX_WORKER_JOBS)
  checkNumber('lockMs', options.lockMs, MIN_LOCK_MS, MAX_MS)
  checkNumber('graceMs', options.graceMs, 0, MAX_MS)
  checkDeadline('deadline', options.deadline)
  checkNumber('maxOutputBytes', options.maxOutputBytes, 1, Number.MAX_SAFE_INTEGER)
  const { rate } = options
  if (rate !== undefined) {
    checkOptions(rate, 'startWorker: rate', ['files', 'perMilliseconds'])
    checkNumber('rate.files', rate.files, 1, Number.MAX_SAFE_INTEGER)
    checkNumber('rate.perMilliseconds', rate.perMilliseconds, 1, MAX_MS)
  }
  checkListener(options.onEvent, 'onEvent')
  throwIfAborted(options.signal)
  checkRemoteOptions(options.remote)
  if (options.open !== undefined) checkOptions(options.open, 'startWorker: open', READ_NAMES)
  const roots = textList('roots', options.roots)
  const schemes = textList('allowSchemes', options.allowSchemes)
  return { ...options, place: checkPlace(options.queue), scope: new Scope({ roots, schemes }) }
}

export function checkNumber(name: string, value: unknown, min: number, max: number): void {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${name} is ${valueText(value)}; it must be a whole number from ${min} to ${max}.`,
  )
}

function textList(name: string, value: unknown = []): readonly string[] {
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a list of strings.`)
}
