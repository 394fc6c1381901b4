/** A tensor in one line, for `console.log` and `util.inspect`. */
import { inspect } from 'node:util'
import type { AnyTensor } from './tensor.js'

/** Longest part of a name that is shown: names come from files and may have megabytes. */
const MAX_NAME_LENGTH = 80

/** Most extents that are shown: a shape from a file may have hundreds. */
const MAX_EXTENTS = 16

/**
 * Kind, name if any, element type and shape; then the layout of a dense tensor, or the number of entries of a sparse one.
 *
 * @returns for example `DenseTensor 'conv1' float32 [64, 3, 7, 7] row_major`
 */
export function describeTensor(tensor: AnyTensor): string {
  const name = tensor.name === '' ? [] : [nameText(tensor.name)]
  return [
    CLASS_NAMES[tensor.kind],
    ...name,
    tensor.dtype,
    shapeText(tensor.shape),
    ...detailsOf(tensor),
  ].join(' ')
}

const CLASS_NAMES = {
  dense: 'DenseTensor',
  sparse: 'SparseTensor',
  string: 'StringTensor',
  block: 'BlockTensor',
} as const

function detailsOf(tensor: AnyTensor): string[] {
  if (tensor.kind === 'dense') return [tensor.storage.layout]
  return tensor.kind === 'sparse' ? [entriesText(tensor.entryCount)] : []
}

/** In quotes, with control characters escaped: a name from a file must not control a terminal. */
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
