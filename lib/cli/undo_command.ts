/**
 * The command that undoes a conversion. A format without metadata stores a blocked tensor as the array of its
 * digits, so the layout and the logical shape live on in this command alone.
 */
import { basename, dirname, extname, join } from 'node:path'
import type { DenseTensor } from '../index.js'
import { formatShape } from './parse_shape.js'
import { printable } from './printable.js'
import { shellQuote } from './shell_quote.js'

/** One command, for a person and for a program. */
export interface UndoCommand {
  /** To be pasted into a POSIX shell. */
  readonly command: string
  /** The same words, unquoted, without the name of the program. */
  readonly args: readonly string[]
}

/** A tensor as it is written, and what it was. */
export interface Reordered {
  readonly before: DenseTensor
  readonly after: DenseTensor
}

/** The commands that undo the writing of `tensors`, in file order, to `output`; tensors in row-major order need none. */
export function undoCommands(output: string, tensors: readonly Reordered[], as?: 'weights'): UndoCommand[] {
  return tensors.flatMap((tensor, index) => {
    if (isPlain(tensor.after)) return []
    const args = undoArguments(output, tensor, index, tensors.length > 1, as)
    return [{ args, command: shellQuote(['tilework', ...args.map(printable)]) }]
  })
}

function undoArguments(
  output: string,
  { before, after }: Reordered,
  index: number,
  isOneOfMany: boolean,
  as: 'weights' | undefined,
): string[] {
  const isPlainTarget = isPlain(before)
  return [
    'convert',
    ...[output, backPath(output, isOneOfMany ? index : undefined)].map(protectDash),
    ...['--from-layout', after.storage.layout, '--shape', formatShape(after.shape)],
    // Without --layout the padding options are those of --from-layout.
    ...paddingOptions(after, isPlainTarget ? '' : 'from-'),
    ...(isPlainTarget ? [] : ['--layout', before.storage.layout, ...paddingOptions(before, '')]),
    ...(isPlainTarget || as === undefined ? [] : ['--as', as]),
    ...['--tensor', `#${index}`],
  ]
}

function isPlain({ storage }: DenseTensor): boolean {
  return storage.layout === 'row_major' && !isPadded(storage)
}

function isPadded({ lower, upper }: DenseTensor['storage']): boolean {
  return [...lower, ...upper].some((count) => count !== 0)
}

function paddingOptions({ storage }: DenseTensor, prefix: '' | 'from-'): string[] {
  if (!isPadded(storage)) return []
  const { lower, upper } = storage
  return [`--${prefix}pad-lower`, formatShape(lower), `--${prefix}pad-upper`, formatShape(upper)]
}

/** A path that begins with a dash would be read as an option. */
function protectDash(path: string): string {
  return path.startsWith('-') ? `./${path}` : path
}

/** `out.btf` is undone to `out.back.btf`; the tensors of one file each to their own: `out.back.0.btf`. */
function backPath(output: string, index: number | undefined): string {
  const extension = extname(output)
  const stem = basename(output, extension)
  const folder = dirname(output)
  const name = `${stem}.back${index === undefined ? '' : `.${index}`}${extension}`
  return folder === '.' && !output.startsWith('.') ? name : join(folder, name)
}
