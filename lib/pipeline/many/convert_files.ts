/**
 * Many files converted in one process: a bounded number at a time, finished ones skipped, every outcome told as it
 * comes and then forgotten, so that memory does not grow with the list.
 */
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { systemError } from '../../bytes/system_error.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import type { OpenFile } from '../open.js'
import { contentHash, fileState, partsOf } from './file_state.js'
import type { Manifest } from './manifest.js'
import {
  currentEntry,
  inputNote,
  inputParts,
  isSameInput,
  type LookedAt,
  outputNote,
  renewEntry,
  type Written,
} from './manifest_entry.js'
import type { ManifestEntry } from './manifest_line.js'
import type { FilePair } from './output_paths.js'
import { runJobs, type Verdict } from './run_jobs.js'

/** How one file ended. */
export type Outcome<W extends Written> =
  | { readonly status: 'written'; readonly pair: FilePair; readonly written: W }
  | { readonly status: 'skipped'; readonly pair: FilePair; readonly written: Written }
  | { readonly status: 'failed'; readonly pair: FilePair; readonly error: unknown }

export interface ConvertFilesOptions<W extends Written> {
  /** Files that are worked on at the same time. */
  readonly jobs: number
  /** True: a failure does not stop the list. */
  readonly keepGoing: boolean
  /** Without it nothing is skipped and nothing is noted. */
  readonly manifest?: Manifest | undefined
  /** One value for all that decides the output, see `settingsHash`. */
  readonly settings: string
  readonly signal: AbortSignal
  open(path: string): Promise<OpenFile>
  /** Writes the output; it is complete under its name when this resolves, and untouched when it rejects. */
  convert(file: OpenFile, pair: FilePair): Promise<W>
  onBegin(pair: FilePair): void
  onEnd(outcome: Outcome<W>): void
}

/** To skip a file takes no turn of the event loop, and a signal must be heard in a list that is skipped whole. */
const FILES_A_TURN = 256

/**
 * Converts `pairs` in order.
 *
 * Without `keepGoing` no file is begun after the first failure; those under way are brought to their end. After an abort
 * they are cancelled: such files have no outcome, and are converted again by the next run. A manifest that cannot be
 * written is the failure of a file after which nothing is begun.
 */
export async function convertFiles<W extends Written>(
  pairs: Iterable<FilePair>,
  options: ConvertFilesOptions<W>,
): Promise<void> {
  const folders = new Set<string>()
  let begun = 0
  await runJobs(pairs, options.jobs, async (pair): Promise<Verdict> => {
    if (++begun % FILES_A_TURN === 0) await yieldToEventLoop()
    if (options.signal.aborted) return 'stop'
    options.onBegin(pair)
    let { outcome, note } = await convertOne(pair, options, folders).catch(
      (error: unknown): Finished<W> => ({ outcome: { status: 'failed', pair, error } }),
    )
    let verdict: Verdict = outcome.status === 'failed' && !options.keepGoing ? 'stop' : 'continue'
    try {
      if (note) options.manifest?.append(note)
    } catch (error) {
      outcome = { status: 'failed', pair, error }
      verdict = 'stop'
    }
    if (outcome.status === 'failed' && options.signal.aborted && isAbort(outcome.error)) return 'stop'
    options.onEnd(outcome)
    return verdict
  })
}

/** A cancelled file is no failure of its own. */
function isAbort(error: unknown): boolean {
  if (error instanceof TileworkError) return error.code === 'ERR_ABORTED'
  return error instanceof Error && error.cause !== undefined && isAbort(error.cause)
}

/** An outcome, and what the manifest is to be told. */
interface Finished<W extends Written> {
  readonly outcome: Outcome<W>
  readonly note?: ManifestEntry | undefined
}

async function convertOne<W extends Written>(
  pair: FilePair,
  options: ConvertFilesOptions<W>,
  folders: Set<string>,
): Promise<Finished<W>> {
  // Before the file is opened: what is written to it later then has another time than the one that is noted.
  const state = options.manifest && fileState(pair.input)
  const entry = currentEntry(options.manifest, pair.output, options.settings)
  if (entry && state && isSameInput(entry, pair.input, state)) return { outcome: skipped(pair, entry) }
  const file = await options.open(pair.input)
  try {
    if (!state) return { outcome: written(pair, await convertInFolder(file, pair, options, folders)) }
    const input = { file, pair, state }
    const renewed = entry && (await renewEntry(entry, input, options.signal))
    if (renewed) return { outcome: skipped(pair, renewed), note: renewed }
    return await convertAndNote(input, options, folders)
  } finally {
    file.close()
  }
}

function skipped<W extends Written>(pair: FilePair, { output }: ManifestEntry): Outcome<W> {
  const byteLength = (output.parts ?? []).reduce((sum, { bytes }) => sum + bytes, output.bytes)
  const { format, undo = [] } = output
  return { status: 'skipped', pair, written: { format, byteLength, undo } }
}

function written<W extends Written>(pair: FilePair, result: W): Outcome<W> {
  return { status: 'written', pair, written: result }
}

async function convertInFolder<W extends Written>(
  file: OpenFile,
  pair: FilePair,
  options: ConvertFilesOptions<W>,
  folders: Set<string>,
): Promise<W> {
  const folder = dirname(pair.output)
  if (!folders.has(folder)) {
    await systemError.wrapAsync(folder, () => mkdir(folder, { recursive: true }))
    folders.add(folder)
  }
  return options.convert(file, pair)
}

/** Converts and hashes side by side: the kernels run on threads of their own, and the bytes are in memory then. */
async function convertAndNote<W extends Written>(
  input: LookedAt,
  options: ConvertFilesOptions<W>,
  folders: Set<string>,
): Promise<Finished<W>> {
  const { file, pair } = input
  const parts = inputParts(input)
  let hasFailed = false
  const [conversion, hash] = await Promise.allSettled([
    convertInFolder(file, pair, options, folders).catch((error: unknown) => {
      hasFailed = true
      throw error
    }),
    contentHash(file, options.signal, () => !hasFailed),
  ])
  if (conversion.status === 'rejected') throw conversion.reason
  if (hash.status === 'rejected') throw hash.reason
  const outcome = written(pair, conversion.value)
  // A part that only the conversion has opened is not in the hash, so this file must not be skipped on its strength.
  if (partsOf(file).length !== parts.length) return { outcome }
  const output = await outputNote(input, conversion.value, options.open)
  return {
    outcome,
    note: { input: inputNote(input, parts, hash.value), output, settings: options.settings },
  }
}
