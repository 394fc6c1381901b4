/**
 * The command that undoes a conversion. A format that cannot name a layout stores a blocked tensor as the array of its
 * digits, so the layout and the logical shape live on in this command alone.
 */
import { basename, dirname, extname, join } from 'node:path'
import type { FormatEntry } from '../../formats/format.js'
import { extensionOf } from '../../formats/registry.js'
import type { DenseTensor } from '../../index.js'
import type { UndoNote } from '../../pipeline/many/manifest_line.js'
import { isPadded, isPlain } from '../../tensor/plain_storage.js'
import { formatShape } from './parse_shape.js'
import { shellQuote } from './shell_quote.js'

/** One command, for a person and for a program. */
export interface UndoCommand {
  /** To be pasted into a shell. */
  readonly command: string
  /** The same words, unquoted, without the name of the program. */
  readonly args: readonly string[]
}

/** A tensor as it is written, and what it was. */
export interface Reordered {
  readonly before: DenseTensor
  readonly after: DenseTensor
}

/** A file as it is written. */
export interface OutputFile {
  readonly path: string
  readonly format: FormatEntry
}

/** How to undo the writing of `tensors`, in file order; tensors in row-major order need nothing. */
export function undoNotes(output: OutputFile, tensors: readonly Reordered[], as?: 'weights'): UndoNote[] {
  return tensors.flatMap((tensor, index) => {
    if (isPlain(tensor.after.storage)) return []
    const back = backName(output, tensors.length > 1 ? index : undefined)
    return [{ back, options: [...layoutOptions(output.format, tensor, as), '--tensor', `#${index}`] }]
  })
}

/** The command for a note about the output at `path`. */
export function undoCommand(path: string, { back, options }: UndoNote): UndoCommand {
  const folder = dirname(path)
  const backPath = folder === '.' && !path.startsWith('.') ? back : join(folder, back)
  const args = ['convert', ...[path, backPath].map(protectDash), ...options]
  return { args, command: shellQuote(['tilework', ...args]) }
}

function layoutOptions(
  { keepsLayout }: FormatEntry,
  { before, after }: Reordered,
  as: 'weights' | undefined,
): string[] {
  const isKept = keepsLayout?.(after.storage) === true
  const isPlainTarget = isPlain(before.storage)
  const from = ['--from-layout', after.storage.layout, '--shape', formatShape(after.shape)]
  return [
    // Without --layout the padding options are those of --from-layout.
    ...(isKept ? [] : [...from, ...paddingOptions(after, isPlainTarget ? '' : 'from-')]),
    ...(isPlainTarget && !isKept ? [] : ['--layout', before.storage.layout, ...paddingOptions(before, '')]),
    ...(isPlainTarget || as === undefined ? [] : ['--as', as]),
  ]
}

/** True for row-major order without padding, the order that every format has. */
function paddingOptions({ storage }: DenseTensor, prefix: '' | 'from-'): string[] {
  if (!isPadded(storage)) return []
  const { lower, upper } = storage
  return [`--${prefix}pad-lower`, formatShape(lower), `--${prefix}pad-upper`, formatShape(upper)]
}

/** A path that begins with a dash would be read as an option. */
function protectDash(path: string): string {
  return path.startsWith('-') ? `./${path}` : path
}

/**
 * `out.btf` is undone to `out.back.btf`; the tensors of one file each to their own: `out.back.0.btf`. Each is a single
 * file, also where the output is an index of several.
 */
function backName({ path, format }: OutputFile, index: number | undefined): string {
  const known = extensionOf(format, path)
  const own = known === undefined ? extname(path) : path.slice(path.length - known.length)
  const extension = known === undefined || known === format.extensions[0] ? own : format.extensions[0]
  const stem = basename(path).slice(0, basename(path).length - own.length)
  return `${stem}.back${index === undefined ? '' : `.${index}`}${extension}`
}
