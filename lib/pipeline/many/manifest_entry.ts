/** The manifest entry of a finished file: how it is made, and when it still holds. */
import { basename, dirname, join, resolve } from 'node:path'
import type { RemoteOptions } from '../../bytes/remote/remote_options.js'
import { remoteUrl, siblingUrl } from '../../bytes/remote/schemes.js'
import { urlLabel } from '../../bytes/remote/url_scheme.js'
import type { FormatName } from '../../formats/registry.js'
import type { ConvertResult } from '../convert.js'
import type { OpenFile } from '../open.js'
import { pathBeside, type UndoConversion } from '../undo.js'
import {
  contentHash,
  type FileState,
  fileState,
  inputState,
  isUnchanged,
  partsOf,
  tryFileState,
} from './file_state.js'
import type { ManifestEntry, UndoNote } from './manifest_line.js'
import type { FilePair } from './output_paths.js'

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

/** What an entry depends on beside the files. */
export interface EntryOptions {
  /** Hash of the options that decide the output, see `settingsHash`. */
  readonly settings: string
  /** How URLs are asked for the state of their objects. */
  readonly remote: RemoteOptions | undefined
}

type InputParts = NonNullable<ManifestEntry['input']['parts']>

/** The entry of an output that is still as it was written, by a run with the same settings. */
export async function currentEntry(
  finished: FinishedFiles | undefined,
  output: string,
  { settings, remote }: EntryOptions,
): Promise<ManifestEntry | undefined> {
  const entry = finished?.get(output)
  if (entry?.settings !== settings) return undefined
  const { parts = [], ...main } = entry.output
  const files = [main, ...parts.map((part) => ({ ...part, path: beside(output, part.name) }))]
  const [, ...paths] = files.map(({ path }) => path)
  for (const [index, path] of [output, ...paths].entries()) {
    if (!isSameOutput(files[index]!, await tryFileState(path, remote))) return undefined
  }
  return entry
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
  remote: RemoteOptions | undefined,
): Promise<boolean> {
  if (input.path !== absolutePath(path) || !isUnchanged(input, state)) return false
  for (const part of input.parts ?? []) {
    if (!isUnchanged(part, await tryFileState(beside(path, part.name), remote))) return false
  }
  return true
}

/**
 * The entry with the new modification time of the input, so that the next run need not read it. Undefined when the
 * input has other bytes.
 */
export async function renewEntry(
  entry: ManifestEntry,
  input: InspectedInput,
  signal: AbortSignal | undefined,
  remote: RemoteOptions | undefined,
): Promise<ManifestEntry | undefined> {
  if (entry.input.bytes !== input.state.bytes) return undefined
  const parts = await inputParts(input, remote)
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
  return { path: absolutePath(pair.input), ...inputState(state), sha256, ...(parts.length > 0 && { parts }) }
}

/** The state of each other file that the input has referred to so far. */
export function inputParts(
  { file, pair }: InspectedInput,
  remote: RemoteOptions | undefined,
): Promise<InputParts> {
  return Promise.all(
    partsOf(file).map(async ([name]) => ({
      name,
      ...inputState(await fileState(beside(pair.input, name), remote)),
    })),
  )
}

/** The state of a complete output. Where the input has parts the output is opened to find its own. */
export async function outputNote(
  { file, pair }: InspectedInput,
  { format, undo }: ConvertResult,
  open: (path: string) => Promise<OpenFile>,
  remote: RemoteOptions | undefined,
): Promise<ManifestEntry['output']> {
  const notes = undo.map(undoNote)
  const main = {
    path: pair.output,
    format,
    ...(await fileState(pair.output, remote)),
    ...(notes.length > 0 && { undo: notes }),
  }
  if (partsOf(file).length === 0) return main
  const output = await open(pair.output)
  try {
    const parts = await Promise.all(
      partsOf(output).map(async ([name]) => ({
        name,
        ...(await fileState(beside(pair.output, name), remote)),
      })),
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
  const url = remoteUrl(path)
  return url ? siblingUrl(url, name).href : join(dirname(path), name)
}

/** A path as every folder sees it; a URL without its query, which may be a secret. */
function absolutePath(path: string): string {
  const url = remoteUrl(path)
  return url ? urlLabel(url) : resolve(path)
}
