/** The manifest entry of a finished file: how it is made, and when it still holds. */
import { basename, dirname, join, resolve } from 'node:path'
import { isRemoteSource, siblingUrl } from '../../bytes/remote/schemes.js'
import { TileworkError } from '../../errors.js'
import type { ConvertResult } from '../convert.js'
import type { OpenFile } from '../open.js'
import type { FormatName } from '../registry.js'
import { pathBeside, type UndoConversion } from '../undo.js'
import { contentHash, type FileState, fileState, inputState, isUnchanged, partsOf } from './file_state.js'
import type { ManifestEntry, UndoNote } from './manifest_line.js'
import type { FilePair } from './output_paths.js'
import { objectState, publicName, urlOf } from './remote_files.js'

/** An open input, with its state from before it was opened. */
export interface InspectedInput {
  readonly file: OpenFile
  readonly pair: FilePair
  readonly state: FileState
}

/** Where entries of earlier runs are looked up; a manifest is one. */
export interface FinishedFiles {
  get(output: string): ManifestEntry | undefined
}

type InputParts = NonNullable<ManifestEntry['input']['parts']>

/** The entry of an output that is still as it was written, by a run with the same settings. */
export async function currentEntry(
  finished: FinishedFiles | undefined,
  output: string,
  settings: string,
  stateOf: StateOf,
): Promise<ManifestEntry | undefined> {
  const entry = finished?.get(output)
  if (entry?.settings !== settings) return undefined
  const { parts = [], ...main } = entry.output
  if (!isSameOutput(main, await tryState(output, stateOf))) return undefined
  for (const part of parts) {
    if (!isSameOutput(part, await tryState(beside(output, part.name), stateOf))) return undefined
  }
  return entry
}

/** The state of a file, or of an object of another machine. @throws TileworkError ERR_IO */
export type StateOf = (path: string) => FileState | Promise<FileState>

/** Undefined where the file cannot be inspected. */
async function tryState(path: string, stateOf: StateOf): Promise<FileState | undefined> {
  try {
    return await stateOf(path)
  } catch (error) {
    if (error instanceof TileworkError && error.code === 'ERR_ABORTED') throw error
    return undefined
  }
}

/** The inode is ignored: an output that was copied with its modification time is still the output. */
function isSameOutput(noted: FileState, now: FileState | undefined): boolean {
  return now?.bytes === noted.bytes && now.mtime === noted.mtime
}

/** True when the states of the input and its parts show that none has changed. */
export async function isSameInput(
  { input }: ManifestEntry,
  path: string,
  state: FileState,
  stateOf: StateOf,
): Promise<boolean> {
  if (input.path !== notedPath(path) || !isUnchanged(input, state)) return false
  for (const part of input.parts ?? []) {
    if (!isUnchanged(part, await tryState(beside(path, part.name), stateOf))) return false
  }
  return true
}

/** A path or URL as an entry names it: absolute; a URL without its secrets. */
export function notedPath(path: string): string {
  return urlOf(path) ? publicName(path) : resolve(path)
}

/**
 * The entry with the new modification time of the input, so that the next run need not read it. Undefined when the
 * input has other bytes.
 */
export async function renewEntry(
  entry: ManifestEntry,
  input: InspectedInput,
  signal: AbortSignal | undefined,
): Promise<ManifestEntry | undefined> {
  // The bytes of an object are those of its tag; hashing them would be a second download.
  if (urlOf(input.pair.input) || entry.input.bytes !== input.state.bytes) return undefined
  const parts = inputParts(input)
  const sha256 = await contentHash(input.file, signal)
  if (sha256 !== entry.input.sha256) return undefined
  const output = { ...entry.output, path: input.pair.output }
  return { ...entry, input: inputNote(input, parts, sha256), output }
}

export function inputNote(
  { pair, state }: InspectedInput,
  parts: InputParts,
  sha256: string,
): ManifestEntry['input'] {
  return { path: notedPath(pair.input), ...inputState(state), sha256, ...(parts.length > 0 && { parts }) }
}

/** The state of each other file that the input has referred to so far. */
export function inputParts({ file, pair }: InspectedInput): InputParts {
  return partsOf(file).map(([name, source]) => {
    const state = isRemoteSource(source) ? objectState(source) : fileState(beside(pair.input, name))
    return { name, ...inputState(state) }
  })
}

/** The state of a complete output. Where the input has parts the output is opened to find its own. */
export async function outputNote(
  { file, pair }: InspectedInput,
  { format, undo }: ConvertResult,
  open: (path: string) => Promise<OpenFile>,
  stateOf: StateOf,
): Promise<ManifestEntry['output']> {
  const notes = undo.map(undoNote)
  const main = {
    path: pair.output,
    format,
    ...(await stateOf(pair.output)),
    ...(notes.length > 0 && { undo: notes }),
  }
  if (partsOf(file).length === 0) return main
  const output = await open(pair.output)
  try {
    const parts = await Promise.all(
      partsOf(output).map(async ([name]) => ({ name, ...(await stateOf(beside(pair.output, name))) })),
    )
    return parts.length > 0 ? { ...main, parts } : main
  } finally {
    output.close()
  }
}

/** By name alone, so that the output and the manifest may be moved together. */
function undoNote({ output = '', options }: UndoConversion): UndoNote {
  return { output: basename(output), options }
}

/** The result of the run that wrote the output. */
export function skippedResult(
  { output }: ManifestEntry,
  path: string,
): Pick<ConvertResult, 'format' | 'byteLength' | 'undo'> {
  const { format, parts = [], undo = [] } = output
  return {
    format: format as FormatName,
    byteLength: parts.reduce((sum, { bytes }) => sum + bytes, output.bytes),
    undo: undo.map((note) => ({ output: pathBeside(path, note.output), options: note.options })),
  }
}

function beside(path: string, name: string): string {
  const url = urlOf(path)
  if (url) return siblingUrl(url, name).href
  return join(dirname(path), name)
}
