/**
 * The conversions that undo a conversion. A format that cannot store a layout contains a blocked tensor as a plain array, so
 * layout and logical shape are known only from these options.
 */
import { basename, dirname, extname, join } from 'node:path'
import type { FormatEntry } from '../formats/format.js'
import { isPadded, isPlain } from '../tensor/plain_storage.js'
import type { AnyTensor, DenseTensor } from '../tensor/tensor.js'
import { type ReorderedTensor, reorderTensor, type TensorChanges } from './change_tensors.js'
import { extensionOf } from './registry.js'

/** The options that undo the conversion of one tensor. */
export type UndoOptions = Pick<
  TensorChanges,
  'tensors' | 'layout' | 'lower' | 'upper' | 'fromLayout' | 'shape' | 'fromLower' | 'fromUpper' | 'as'
>

/** A conversion of an output that restores the original layout of one of its tensors. */
export interface UndoConversion {
  /** Suggested path of the result, in the folder of the output. Absent if the output is a stream. */
  readonly output?: string
  /** Options for `convert`. */
  readonly options: UndoOptions
}

/** An output and its format; a stream has no path. */
export interface WrittenFile {
  readonly path: string | undefined
  readonly format: FormatEntry
}

/** How to undo the conversion of `tensors` with `changes`, in file order. Tensors in row-major order need no undo. */
export function undoConversions(
  { path, format }: WrittenFile,
  tensors: Iterable<AnyTensor> & { readonly length: number },
  changes: TensorChanges,
): UndoConversion[] {
  const conversions: UndoConversion[] = []
  let index = 0
  for (const tensor of tensors) {
    const reordered = reorderTensor(tensor, changes)
    if (!isPlain(reordered.after.storage)) {
      const options = { ...layoutOptions(format, reordered, changes.as), tensors: [index] }
      const position = tensors.length > 1 ? index : undefined
      const output = path === undefined ? {} : { output: pathBeside(path, undoName(path, format, position)) }
      conversions.push({ ...output, options })
    }
    index++
  }
  return conversions
}

/** The path of `name` in the folder of `path`. A path without a folder gives a name without `./`, which is easier to read. */
export function pathBeside(path: string, name: string): string {
  const folder = dirname(path)
  return folder === '.' && !path.startsWith('.') ? name : join(folder, name)
}

function layoutOptions(
  { keepsLayout }: FormatEntry,
  { before, after }: ReorderedTensor,
  as: 'weights' | undefined,
): UndoOptions {
  const isKept = keepsLayout?.(after.storage) === true
  const isPlainTarget = isPlain(before.storage)
  const from = padding(after)
  return {
    ...(!isKept && {
      fromLayout: after.storage.layout,
      shape: after.shape,
      ...(from && { fromLower: from.lower, fromUpper: from.upper }),
    }),
    ...((isKept || !isPlainTarget) && { layout: before.storage.layout, ...padding(before) }),
    ...(!isPlainTarget && as !== undefined && { as }),
  }
}

function padding({ storage }: DenseTensor): Pick<UndoOptions, 'lower' | 'upper'> | undefined {
  return isPadded(storage) ? { lower: storage.lower, upper: storage.upper } : undefined
}

/**
 * `out.btf` is undone to `out.back.btf`, and each of several tensors to a separate file, `out.back.0.btf`. The result is a single
 * file even if the output is an index of shards.
 */
function undoName(path: string, format: FormatEntry, index: number | undefined): string {
  const known = extensionOf(format, path)
  const own = known === undefined ? extname(path) : path.slice(path.length - known.length)
  const extension = known === undefined || known === format.extensions[0] ? own : format.extensions[0]
  const name = basename(path)
  const stem = name.slice(0, name.length - own.length)
  return `${stem}.back${index === undefined ? '' : `.${index}`}${extension}`
}
