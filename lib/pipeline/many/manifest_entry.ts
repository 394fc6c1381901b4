/** What is noted of a finished file, and when a note still holds. */
import { dirname, join, resolve } from 'node:path'
import type { OpenFile } from '../open.js'
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

/** An input that is open, with the look that was taken at it before. */
export interface LookedAt {
  readonly file: OpenFile
  readonly pair: FilePair
  readonly state: FileState
}

/** What a conversion says of its output; a caller may add to it. */
export interface Written {
  /** File format of the output. */
  readonly format: string
  /** Length of the output, with all its parts. */
  readonly byteLength: number
  /** How to come back; empty where nothing has to be said for that. */
  readonly undo: readonly UndoNote[]
}

type InputParts = NonNullable<ManifestEntry['input']['parts']>

/** The entry of an output that is still as it was written, with the same settings. */
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

/** Not by inode: an output that was copied with its time is still the output. */
function isSameOutput(noted: FileState, path: string): boolean {
  const now = tryFileState(path)
  return now?.bytes === noted.bytes && now.mtime === noted.mtime
}

/** True when one look at the input and its parts shows that none has changed. */
export function isSameInput({ input }: ManifestEntry, path: string, state: FileState): boolean {
  const { parts = [] } = input
  return (
    input.path === resolve(path) &&
    isUnchanged(input, state) &&
    parts.every((part) => isUnchanged(part, tryFileState(beside(path, part.name))))
  )
}

/** The entry with the input's new time, so that the next run need not read it; undefined when its bytes are others. */
export async function renewEntry(
  entry: ManifestEntry,
  input: LookedAt,
  signal: AbortSignal,
): Promise<ManifestEntry | undefined> {
  if (entry.input.bytes !== input.state.bytes) return undefined
  const parts = inputParts(input)
  const sha256 = await contentHash(input.file, signal)
  if (sha256 !== entry.input.sha256) return undefined
  const output = { ...entry.output, path: input.pair.output }
  return { ...entry, input: inputNote(input, parts, sha256), output }
}

export function inputNote(
  { pair, state }: LookedAt,
  parts: InputParts,
  sha256: string,
): ManifestEntry['input'] {
  return { path: resolve(pair.input), ...inputState(state), sha256, ...(parts.length > 0 && { parts }) }
}

/** A look at each other file that the input has referred to so far. */
export function inputParts({ file, pair }: LookedAt): InputParts {
  return partsOf(file).map(([name]) => ({ name, ...inputState(fileState(beside(pair.input, name))) }))
}

/** A look at an output that is complete. Where the input has parts the output is asked for its own. */
export async function outputNote(
  { file, pair }: LookedAt,
  { format, undo }: Written,
  open: (path: string) => Promise<OpenFile>,
): Promise<ManifestEntry['output']> {
  const main = { path: pair.output, format, ...fileState(pair.output), ...(undo.length > 0 && { undo }) }
  if (partsOf(file).length === 0) return main
  const output = await open(pair.output)
  try {
    const parts = partsOf(output).map(([name]) => ({ name, ...fileState(beside(pair.output, name)) }))
    return parts.length > 0 ? { ...main, parts } : main
  } finally {
    output.close()
  }
}

function beside(path: string, name: string): string {
  return join(dirname(path), name)
}
