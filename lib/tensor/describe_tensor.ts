/** A tensor in one line, for `console.log` and `util.inspect`. */
import { inspect } from 'node:util'
import type { DenseTensor, SparseTensor } from './tensor.js'

/** Longest part of a name that is shown; names come from files and may be megabytes. */
const MAX_NAME_LENGTH = 80

/** Most extents that are shown; shapes come from files as well. */
const MAX_EXTENTS = 16

/**
 * Kind, name where there is one, element type, shape, and where it is more than that: the layout of a dense tensor, the
 * number of entries of a sparse one.
 *
 * @returns for example `DenseTensor 'conv1' float32 [64, 3, 7, 7] row_major`
 */
export function describeTensor(tensor: DenseTensor | SparseTensor): string {
  const kind = tensor.kind === 'dense' ? 'DenseTensor' : 'SparseTensor'
  const rest = tensor.kind === 'dense' ? tensor.storage.layout : entriesText(tensor.entryCount)
  const name = tensor.name === '' ? [] : [nameText(tensor.name)]
  return [kind, ...name, tensor.dtype, shapeText(tensor.shape), rest].join(' ')
}

/** In quotes, with control characters escaped: a name from a file must not steer a terminal. */
function nameText(name: string): string {
  const isCut = name.length > MAX_NAME_LENGTH
  return inspect(isCut ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name, {
    breakLength: Number.POSITIVE_INFINITY,
  })
}

function shapeText(shape: readonly number[]): string {
  const shown = shape.slice(0, MAX_EXTENTS).join(', ')
  return shape.length > MAX_EXTENTS ? `[${shown}, … ${shape.length} axes]` : `[${shown}]`
}

function entriesText(count: number): string {
  return count === 1 ? '1 entry' : `${count} entries`
}
