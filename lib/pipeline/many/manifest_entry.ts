/** The manifest entry of a finished file: how it is made, and when it still holds. */
import { basename, dirname, join, resolve } from 'node:path'
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
import type { Manifest } from './manifest.js'
import type { ManifestEntry, UndoNote } from './manifest_line.js'
import type { FilePair } from './output_paths.js'

/** An open input, with its state from before it was opened. */
export interface InspectedInput {
  readonly file: OpenFile
  readonly pair: FilePair
  readonly state: FileState
}

type InputParts = NonNullable<ManifestEntry['input']['parts']>

/** The entry of an output that is still as it was written, by a run with the same settings. */
export function currentEntry(
  manifest: Manifest | undefined,
  output: string,
  settings: string,
): ManifestEntry | undefined {
  const entry = manifest?.get(output)
  if (entry?.settings !== settings) return undefined
  const { parts = [], ...main } = entry.output
  const isWhole =
    isSameOutput(main, output) && parts.every((part) => isSameOutput(part, beside(output, part.name)))
  return isWhole ? entry : undefined
}

/** The inode is ignored: an output that was copied with its modification time is still the output. */
function isSameOutput(noted: FileState, path: string): boolean {
  const now = tryFileState(path)
  return now?.bytes === noted.bytes && now.mtime === noted.mtime
}

/** True when the states of the input and its parts show that none has changed. */
export function isSameInput({ input }: ManifestEntry, path: string, state: FileState): boolean {
  const { parts = [] } = input
  return (
    input.path === resolve(path) &&
    isUnchanged(input, state) &&
    parts.every((part) => isUnchanged(part, tryFileState(beside(path, part.name))))
  )
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
  if (entry.input.bytes !== input.state.bytes) return undefined
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
  return { path: resolve(pair.input), ...inputState(state), sha256, ...(parts.length > 0 && { parts }) }
}

/** The state of each other file that the input has referred to so far. */
export function inputParts({ file, pair }: InspectedInput): InputParts {
  return partsOf(file).map(([name]) => ({ name, ...inputState(fileState(beside(pair.input, name))) }))
}

/** The state of a complete output. Where the input has parts the output is opened to find its own. */
export async function outputNote(
  { file, pair }: InspectedInput,
  { format, undo }: ConvertResult,
  open: (path: string) => Promise<OpenFile>,
): Promise<ManifestEntry['output']> {
  const notes = undo.map(undoNote)
  const main = {
    path: pair.output,
    format,
    ...fileState(pair.output),
    ...(notes.length > 0 && { undo: notes }),
  }
  if (partsOf(file).length === 0) return main
  const output = await open(pair.output)
  try {
    const parts = partsOf(output).map(([name]) => ({ name, ...fileState(beside(pair.output, name)) }))
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
  return join(dirname(path), name)
}
