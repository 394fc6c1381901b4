/** Manifest entries of finished files: how they are created, and when they are still valid. */
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

/** Looks up entries of earlier runs, as a manifest does. */
export interface FinishedFiles {
  get(output: string): ManifestEntry | undefined
}

type InputParts = NonNullable<ManifestEntry['input']['parts']>

/** The entry of an output that was written with the same settings and is unchanged since. */
export async function currentEntry(
  finished: FinishedFiles | undefined,
  output: string,
  settings: string,
  stateOf: StateOf,
): Promise<ManifestEntry | undefined> {
  const entry = finished?.get(output)
  if (entry?.settings !== settings) return undefined
  return (await isOutputUnchanged(entry, output, stateOf)) ? entry : undefined
}

/** True where the output and its parts are there, as they were written. */
export async function isOutputUnchanged(
  { output: { parts = [], ...main } }: ManifestEntry,
  output: string,
  stateOf: StateOf,
): Promise<boolean> {
  if (!isSameOutput(main, await tryState(output, stateOf))) return false
  for (const part of parts) {
    if (!isSameOutput(part, await tryState(beside(output, part.name), stateOf))) return false
  }
  return true
}

/** The state of a file or of a remote object. @throws TileworkError ERR_IO */
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

/** Ignores the inode: a copy of the output with its modification time counts as the output. */
function isSameOutput(noted: FileState, now: FileState | undefined): boolean {
  return now?.bytes === noted.bytes && now.mtime === noted.mtime
}

/** True where the states of the input and its parts prove that they are unchanged. */
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

/** A path or URL as stored in an entry: absolute; a URL without its secrets. */
export function notedPath(path: string): string {
  return urlOf(path) ? publicName(path) : resolve(path)
}

/**
 * The entry with the new modification time of the input, so that the next run need not read it. Undefined if the bytes of the
 * input have changed.
 */
export async function renewEntry(
  entry: ManifestEntry,
  input: InspectedInput,
  signal: AbortSignal | undefined,
): Promise<ManifestEntry | undefined> {
  // A different tag means different bytes; hashing an object would be a second download.
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

/** The states of the files that the input has referred to so far. */
export function inputParts({ file, pair }: InspectedInput): InputParts {
  return partsOf(file).map(([name, source]) => {
    const state = isRemoteSource(source) ? objectState(source) : fileState(beside(pair.input, name))
    return { name, ...inputState(state) }
  })
}

/** The state of a complete output. If the input has parts, the output is opened to find its own parts. */
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

/** Stores the name without the folder, so that output and manifest can be moved together. */
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
