/** The result of a file as JSON in Redis: written by the worker, checked by the submitter. */
import { basename } from 'node:path'
import { ERROR_CODES, type ErrorCode, TileworkError } from '../errors.js'
import type { ConvertResult } from '../pipeline/convert.js'
import { isEntry, isFields, isUndo, type ManifestEntry, parseJson } from '../pipeline/many/manifest_line.js'
import type { FilePair } from '../pipeline/many/output_paths.js'
import type { Finished } from '../pipeline/many/run_pairs.js'
import { formatByName } from '../pipeline/registry.js'
import { pathBeside } from '../pipeline/undo.js'

/** A result may list many tensors, and Redis keeps results in memory. Longer results omit the list. */
export const MAX_RESULT_BYTES = 64 * 1024

/** Longest message of a failure, such as a compiler log; bounded because Redis keeps it for days. */
const MAX_MESSAGE_LENGTH = 4096

/** Most entries of a list in a result; its length depends on the file. More are not worth their memory. */
const MAX_ENTRIES = 1000

/** Why a job failed. */
export interface JobFailure {
  readonly code: ErrorCode
  readonly message: string
  /** As in `FileOutcome`. */
  readonly stage: 'open' | 'convert'
  readonly format?: string
  readonly path?: string
  readonly offset?: number
  /** `settings` of the job's data; absent where the data could not be read. */
  readonly settings?: string
}

/** A file that was written. */
export interface JobResult {
  readonly settings: string
  readonly result: ConvertResult
  readonly note?: ManifestEntry
}

/** The result of a job as JSON values, shortened to `MAX_RESULT_BYTES`. */
export function shortResult(settings: string, { outcome, note }: Finished): JobResult {
  const { result } = outcome as Extract<Finished['outcome'], { status: 'written' }>
  const short = { settings, result, ...(note && { note }) }
  const json = JSON.stringify(short, exactNumbers)
  if (json.length <= MAX_RESULT_BYTES) return JSON.parse(json) as JobResult
  const { findings, losses, graph: _, ...rest } = result
  const lists = {
    tensors: [],
    findings: findings.slice(0, MAX_ENTRIES),
    losses: losses.slice(0, MAX_ENTRIES),
  }
  return JSON.parse(JSON.stringify({ ...short, result: { ...rest, ...lists } }, exactNumbers)) as JobResult
}

/** JSON has no bigint; results use it only for sizes beyond 2^53. */
function exactNumbers(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

export function failureOf(error: unknown, stage: JobFailure['stage'], settings?: string): JobFailure {
  const { code, format, path, offset } =
    error instanceof TileworkError ? error : new TileworkError('ERR_INTERNAL', '')
  const message = error instanceof Error ? error.message : String(error)
  return {
    code,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    stage,
    ...(format !== undefined && { format }),
    ...(path !== undefined && { path: path.slice(0, MAX_MESSAGE_LENGTH) }),
    ...(offset !== undefined && { offset }),
    ...(settings !== undefined && { settings }),
  }
}

/** The text that BullMQ keeps and its dashboards show. */
export function failureText(failure: JobFailure): string {
  return JSON.stringify(failure)
}

/** BullMQ's failure reason for a job whose workers died too often. */
const STALLED = 'job stalled more than allowable limit'

/** Parses the text of a failure; a text that no tilework worker has written becomes ERR_INTERNAL with that text. */
export function readFailure(text: string): JobFailure {
  if (text.startsWith(STALLED)) return lostFailure()
  const value = parseJson(text)
  if (!isFields(value) || !Object.hasOwn(ERROR_CODES, String(value.code))) {
    return failureOf(new TileworkError('ERR_INTERNAL', `The worker reported: ${text}`), 'convert')
  }
  const { code, message, stage, format, path, offset, settings } = value
  return {
    code: code as ErrorCode,
    message: String(message).slice(0, MAX_MESSAGE_LENGTH),
    stage: stage === 'open' ? 'open' : 'convert',
    ...(typeof format === 'string' && { format }),
    ...(typeof path === 'string' && { path }),
    ...(Number.isSafeInteger(offset) && { offset: offset as number }),
    ...(typeof settings === 'string' && { settings }),
  }
}

export function lostFailure(settings?: string): JobFailure {
  const message = 'Each worker that took the file died while it converted it, without reporting an error.'
  return failureOf(new TileworkError('ERR_WORKER_LOST', message), 'convert', settings)
}

/** The outcome that `convertMany` reports for the same failure on this machine. */
export function failedPair({ code, message, stage, format, path, offset }: JobFailure): Finished {
  const place = { ...(format && { format }), ...(path && { path }), ...(offset !== undefined && { offset }) }
  return { outcome: { status: 'failed', stage, error: new TileworkError(code, message, place) } }
}

/**
 * The outcome that `convertMany` reports for the same file on this machine. Paths are taken from `pair`, never from the result.
 *
 * @returns undefined for anything that is not a result
 */
export function writtenPair(value: unknown, pair: FilePair, inputPath: string): Finished | undefined {
  if (!isFields(value)) return undefined
  const { result, note } = value
  if (!isResult(result)) return undefined
  const undo = result.undo.map(({ output = '', options }) => ({
    output: pathBeside(pair.output, basename(output)),
    options,
  }))
  const outcome = { status: 'written', result: { ...result, undo } } as const
  if (!isFields(note) || !isEntry(note)) return { outcome }
  const entry = note as unknown as ManifestEntry
  return {
    outcome,
    note: {
      ...entry,
      input: { ...entry.input, path: inputPath },
      output: { ...entry.output, path: pair.output },
    },
  }
}

/** `settings` of a result or a failure. */
export function settingsOf(value: unknown): unknown {
  return isFields(value) ? value.settings : undefined
}

function isResult(value: unknown): value is ConvertResult {
  if (!isFields(value)) return false
  const { format, byteLength, tensors, findings, undo, droppedNodes, losses } = value
  return (
    isFormat(format) &&
    isCount(byteLength) &&
    isCount(droppedNodes) &&
    isListOf(tensors, ['name', 'dtype']) &&
    isListOf(findings, ['severity', 'code', 'path', 'message']) &&
    isListOf(losses, ['name', 'dtype']) &&
    isNamedUndo(undo)
  )
}

function isFormat(value: unknown): boolean {
  try {
    return typeof value === 'string' && formatByName(value) !== undefined
  } catch {
    return false
  }
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** Whether `value` is a list of objects in which each field of `texts` is a string. */
function isListOf(value: unknown, texts: readonly string[]): boolean {
  return (
    Array.isArray(value) &&
    value.every((each) => isFields(each) && texts.every((name) => typeof each[name] === 'string'))
  )
}

function isNamedUndo(value: unknown): boolean {
  if (!Array.isArray(value)) return false
  const notes: unknown[] = value.map((each) =>
    isFields(each) ? { ...each, output: basename(String(each.output)) } : each,
  )
  return isUndo(notes)
}
