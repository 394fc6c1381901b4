/**
 * The lines of a manifest, each a JSON object: first the version, then one line per finished file. A killed process may leave an
 * incomplete line. Since the file is append-only, the next process ends that line and appends a line that marks it as torn.
 */
import type { UndoOptions } from '../undo.js'
import type { FileState, InputState } from './file_state.js'

/** Increased when the meaning of a line changes. */
export const MANIFEST_VERSION = 2

/** One of the files of a multi-part input or output. */
interface Named {
  /** Relative to the folder of the main file. */
  readonly name: string
}

/** How the conversion of one tensor is undone. It has no folder, because the folder of the output may be moved. */
export interface UndoNote {
  /** Name of the file to write, beside the output. */
  readonly output: string
  readonly options: UndoOptions
}

/** A finished file. */
export interface ManifestEntry {
  readonly input: InputState & {
    /** Absolute. */
    readonly path: string
    /** Hexadecimal SHA-256, see `contentHash`. */
    readonly sha256: string
    readonly parts?: readonly (Named & InputState)[]
  }
  readonly output: FileState & {
    /** Relative to the folder of the manifest, so that the folder may be moved. */
    readonly path: string
    /** File format. */
    readonly format: string
    readonly parts?: readonly (Named & FileState)[]
    /** Absent where there is nothing to undo. */
    readonly undo?: readonly UndoNote[]
  }
  /** Hash of the options of the run, see `settingsHash`. */
  readonly settings: string
}

export type ManifestLine =
  | { readonly kind: 'version'; readonly version: number }
  | { readonly kind: 'torn' }
  | { readonly kind: 'entry'; readonly entry: ManifestEntry }

export const VERSION_LINE = `${JSON.stringify({ tileworkManifest: MANIFEST_VERSION })}\n`

/** Written after the incomplete line of a killed process: ends that line, and marks it as expected damage. */
export const TORN_LINE = `\n${JSON.stringify({ torn: true })}\n`

export function entryLine(entry: ManifestEntry): string {
  return `${JSON.stringify(entry)}\n`
}

/** Undefined for a line that does not belong to a manifest. */
export function parseManifestLine(text: string): ManifestLine | undefined {
  const value = parseJson(text)
  if (!isFields(value)) return undefined
  if (typeof value.tileworkManifest === 'number') return { kind: 'version', version: value.tileworkManifest }
  if (value.torn === true) return { kind: 'torn' }
  return isEntry(value) ? { kind: 'entry', entry: value as unknown as ManifestEntry } : undefined
}

/** The value of a JSON text; undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The fields of a JSON object. */
export type Fields = Readonly<Record<string, unknown>>

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isEntry({ input, output, settings }: Fields): boolean {
  return (
    isFile(input, ['path', 'sha256']) &&
    isFile(output, ['path', 'format', 'mtime']) &&
    isUndo((output as Fields).undo) &&
    typeof settings === 'string'
  )
}

/** True for a state with these string fields whose parts, if any, are states with a name. */
function isFile(value: unknown, texts: readonly string[]): boolean {
  if (!isFields(value) || !isState(value) || !texts.every((name) => typeof value[name] === 'string'))
    return false
  const { parts = [] } = value
  return (
    Array.isArray(parts) &&
    parts.every((part) => isFields(part) && isState(part) && typeof part.name === 'string')
  )
}

export function isUndo(value: unknown): boolean {
  if (value === undefined) return true
  return Array.isArray(value) && value.every((note) => isFields(note) && isUndoNote(note))
}

function isUndoNote({ output, options }: Fields): boolean {
  // A name with a folder would give an undo command that overwrites a file in another folder.
  const isName = typeof output === 'string' && output !== '' && !output.includes('/')
  return isName && isFields(options) && Object.entries(options).every(isUndoOption)
}

const UNDO_OPTIONS: Readonly<Record<keyof UndoOptions, (value: unknown) => boolean>> = {
  tensors: isCountList,
  layout: isText,
  lower: isCountList,
  upper: isCountList,
  fromLayout: isText,
  shape: isCountList,
  fromLower: isCountList,
  fromUpper: isCountList,
  as: (value) => value === 'weights',
}

function isUndoOption([name, value]: [string, unknown]): boolean {
  return Object.hasOwn(UNDO_OPTIONS, name) && UNDO_OPTIONS[name as keyof UndoOptions](value)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isCountList(value: unknown): boolean {
  return Array.isArray(value) && value.every((count) => Number.isSafeInteger(count) && count >= 0)
}

function isState({ bytes, mtime, inode }: Fields): boolean {
  return (
    Number.isSafeInteger(bytes) &&
    typeof inode === 'string' &&
    (mtime === undefined || typeof mtime === 'string')
  )
}
