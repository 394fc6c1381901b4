/**
 * Converts pairs of input and output in one process, a bounded number at a time, and skips finished files. Each outcome is
 * reported and then dropped, so that memory does not grow with the list.
 */
import { dirname } from 'node:path'
import { createFolders } from '../../bytes/open_native.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import type { ConvertResult } from '../convert.js'
import type { OpenFile } from '../open.js'
import { contentHash, partsOf } from './file_state.js'
import type { Manifest } from './manifest.js'
import {
  currentEntry,
  type FinishedFiles,
  type InspectedInput,
  inputNote,
  inputParts,
  isSameInput,
  outputNote,
  renewEntry,
  type StateOf,
  skippedResult,
} from './manifest_entry.js'
import type { ManifestEntry } from './manifest_line.js'
import type { FilePair } from './output_paths.js'
import { urlOf } from './remote_files.js'
import { runJobs, type Verdict } from './run_jobs.js'

/** The outcome of a file. */
export type PairOutcome =
  | { readonly status: 'written'; readonly result: ConvertResult }
  | { readonly status: 'skipped'; readonly result: SkippedResult }
  | { readonly status: 'failed'; readonly stage: 'open' | 'convert'; readonly error: unknown }

/** The failure after which no further file is started. */
export interface StopReason {
  readonly error: unknown
}

/** The part of a result that the manifest stores. */
export type SkippedResult = Pick<ConvertResult, 'format' | 'byteLength' | 'undo'>

export interface RunPairsOptions {
  /** Files converted at the same time. */
  readonly jobs: number
  /** Continues after a failure. */
  readonly keepGoing: boolean
  /** Undefined to record nothing. */
  readonly manifest: Pick<Manifest, 'append'> | undefined
  readonly signal: AbortSignal | undefined
  /** Converts one file. Never rejects; resolves to undefined where nothing was done because the run is aborted. */
  perform(pair: FilePair): Promise<Finished | undefined>
  /** @param seconds - duration of `perform` */
  onEnd(pair: FilePair, outcome: PairOutcome, seconds: number): void
}

/** How one file is converted on this machine. */
export interface PairConversion {
  /** Entries of earlier runs, by which files are skipped. Undefined if this run keeps no manifest either. */
  readonly finished: FinishedFiles | undefined
  /** Hash of the options that decide the output, see `settingsHash`. */
  readonly settings: string
  readonly signal: AbortSignal | undefined
  /** @param began - when work on the file began, by `performance.now` */
  open(path: string, began: number): Promise<OpenFile>
  /** The state of an input or output. */
  readonly stateOf: StateOf
  /** Writes the output. It is committed when this resolves, and untouched when this rejects. */
  convert(file: OpenFile, pair: FilePair, began: number): Promise<ConvertResult>
}

/** Skipped files never await, so a list of skipped files yields to the event loop after this many files. */
const FILES_PER_YIELD = 256

/**
 * Converts `pairs` in order.
 *
 * Without `keepGoing` no file is started after the first failure; files in progress are finished. After an abort, files in
 * progress are cancelled: they have no outcome, and the next run converts them. If the manifest cannot be written, the file
 * counts as failed and no further file is started.
 *
 * @returns the failure that stopped the run, if any
 */
export async function runPairs(
  pairs: Iterable<FilePair>,
  options: RunPairsOptions,
): Promise<StopReason | undefined> {
  let started = 0
  let reason: StopReason | undefined
  await runJobs(pairs, options.jobs, async (pair): Promise<Verdict> => {
    if (++started % FILES_PER_YIELD === 0) await yieldToEventLoop()
    if (options.signal?.aborted) return 'stop'
    const startedAt = performance.now()
    const finished = await options.perform(pair)
    if (!finished) return 'stop'
    const { note } = finished
    let { outcome } = finished
    let verdict: Verdict = outcome.status === 'failed' && !options.keepGoing ? 'stop' : 'continue'
    try {
      if (note) options.manifest?.append(note)
    } catch (error) {
      outcome = { status: 'failed', stage: 'convert', error }
      verdict = 'stop'
    }
    if (outcome.status === 'failed' && options.signal?.aborted && isAbort(outcome.error)) return 'stop'
    if (outcome.status === 'failed' && verdict === 'stop') reason ??= { error: outcome.error }
    options.onEnd(pair, outcome, (performance.now() - startedAt) / 1000)
    return verdict
  })
  return reason
}

/** Whether an error is due to an abort; a cancelled file does not count as failed. */
export function isAbort(error: unknown): boolean {
  if (error instanceof TileworkError) return error.code === 'ERR_ABORTED'
  return error instanceof Error && error.cause !== undefined && isAbort(error.cause)
}

/** An outcome, and the entry to append to the manifest. */
export interface Finished {
  readonly outcome: PairOutcome
  readonly note?: ManifestEntry | undefined
}

/**
 * Converts one file, unless an entry shows that its output is up to date.
 *
 * @param folders - output folders that exist; created ones are added
 */
export async function convertPair(
  pair: FilePair,
  options: PairConversion,
  folders: Set<string>,
): Promise<Finished> {
  const began = performance.now()
  let file: OpenFile | undefined
  try {
    const { finished, settings, stateOf } = options
    const entry = await currentEntry(finished, pair.output, settings, stateOf)
    // Inspected before the file is opened: a later write changes the time, so that the entry no longer matches.
    const state = finished && (await stateOf(pair.input))
    if (entry && state && (await isSameInput(entry, pair.input, state, stateOf))) return skipped(pair, entry)
    file = await options.open(pair.input, began)
    const input = { file, pair, began }
    if (!state) {
      const result = await convertInFolder(input, options, folders)
      return { outcome: { status: 'written', result } }
    }
    const renewed = entry && (await renewEntry(entry, { file, pair, state }, options.signal))
    if (renewed) return { ...skipped(pair, renewed), note: renewed }
    return await convertAndNote({ ...input, state }, options, folders)
  } catch (error) {
    return { outcome: { status: 'failed', stage: file ? 'convert' : 'open', error } }
  } finally {
    file?.close()
  }
}

/**
 * The first part of `convertPair`, without a conversion: skips the file where an entry shows that its output is up to date.
 */
export async function skipPair(
  pair: FilePair,
  options: Omit<PairConversion, 'convert'>,
): Promise<Finished | undefined> {
  let file: OpenFile | undefined
  try {
    const { finished, settings, stateOf } = options
    const entry = await currentEntry(finished, pair.output, settings, stateOf)
    if (!entry) return undefined
    const state = await stateOf(pair.input)
    if (await isSameInput(entry, pair.input, state, stateOf)) return skipped(pair, entry)
    // Checked here as in `renewEntry`, so that the file need not be opened.
    if (urlOf(pair.input) || entry.input.bytes !== state.bytes) return undefined
    file = await options.open(pair.input, performance.now())
    const renewed = await renewEntry(entry, { file, pair, state }, options.signal)
    return renewed && { ...skipped(pair, renewed), note: renewed }
  } catch (error) {
    return { outcome: { status: 'failed', stage: 'open', error } }
  } finally {
    file?.close()
  }
}

function skipped(pair: FilePair, entry: ManifestEntry): Finished {
  return { outcome: { status: 'skipped', result: skippedResult(entry, pair.output) } }
}

interface BegunPair {
  readonly file: OpenFile
  readonly pair: FilePair
  /** When work on the file began, by `performance.now`. */
  readonly began: number
}

async function convertInFolder(
  { file, pair, began }: BegunPair,
  options: PairConversion,
  folders: Set<string>,
): Promise<ConvertResult> {
  const folder = dirname(pair.output)
  if (!urlOf(pair.output) && !folders.has(folder)) {
    createFolders(folder)
    folders.add(folder)
  }
  return options.convert(file, pair, began)
}

/** Converts and hashes the input in parallel, on separate threads that read the same cached pages. */
async function convertAndNote(
  input: InspectedInput & BegunPair,
  options: PairConversion,
  folders: Set<string>,
): Promise<Finished> {
  const { file, pair } = input
  const parts = inputParts(input)
  let hasFailed = false
  const [conversion, hash] = await Promise.allSettled([
    convertInFolder(input, options, folders).catch((error: unknown) => {
      hasFailed = true
      throw error
    }),
    // A hash would need a second download; the tag serves the same purpose.
    urlOf(pair.input) ? '' : contentHash(file, options.signal, () => !hasFailed),
  ])
  if (conversion.status === 'rejected') throw conversion.reason
  if (hash.status === 'rejected') throw hash.reason
  const result = conversion.value
  const outcome = { status: 'written', result } as const
  // The hash does not include parts that only the conversion has opened, so the file must not be recorded.
  if (partsOf(file).length !== parts.length) return { outcome }
  // Files with missing tensors are not recorded either, so that every run reports them until the input is complete.
  if (result.findings.some(({ omitsTensor }) => omitsTensor)) return { outcome }
  // The output is written: what the time of the file leaves no longer counts.
  const reopen = (path: string) => options.open(path, performance.now())
  const output = await outputNote(input, result, reopen, options.stateOf)
  return {
    outcome,
    note: { input: inputNote(input, parts, hash.value), output, settings: options.settings },
  }
}
