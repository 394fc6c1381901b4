/**
 * Names, and changes of them. The reference takes names of tensors for keys, and edits find tensors and nodes by name, so
 * each that is given stays the only one of its kind. Files that have one twice keep it.
 */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { FORMAT_NAME } from '../schema.js'
import { refuseEdit } from './lookup.js'
import type { TmfileGraph } from './types.js'

/** In C a name ends at a NUL; half a surrogate pair has no UTF-8. */
const UNWRITABLE = /\0|\p{Surrogate}/u

/**
 * A name that is given to something.
 *
 * @param what - names it at the start of a sentence
 * @throws TileworkError ERR_ARGUMENT for what is no string of characters that a file can hold, and for an empty one
 */
export function checkNewName(name: unknown, what: string): string {
  if (typeof name === 'string' && name !== '' && !UNWRITABLE.test(name)) return name
  const message = `${what} must be a text of at least one character, without NUL and halves of surrogate pairs; it is ${valueText(name)}.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

interface NamedPart {
  readonly name: string | null
}

/** @throws TileworkError ERR_GRAPH where one of the others has the name */
export function refuseTakenName(
  what: 'node' | 'tensor',
  { name }: NamedPart,
  others: readonly NamedPart[],
): void {
  if (name === null || others.every((other) => other.name !== name)) return
  refuseEdit(`A ${what} has the name ${JSON.stringify(name)} already.`)
}

/**
 * Renames every tensor and node of a name: a node usually has the name of its output.
 *
 * @returns how many there were
 * @throws TileworkError ERR_ARGUMENT for what is no name; ERR_GRAPH where nothing has it, or another one of its kind has
 * the new one already
 */
export function rename(graph: TmfileGraph, from: string, to: string): number {
  if (typeof from !== 'string') {
    const message = `from must be a string; it is ${valueText(from)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const renamed = { name: checkNewName(to, 'The new name') }
  const tensors = graph.tensors.filter(({ name }) => name === from)
  const nodes = graph.nodes.filter(({ name }) => name === from)
  if (tensors.length + nodes.length === 0) refuseEdit(`Nothing has the name ${JSON.stringify(from)}.`)
  if (from !== to && tensors.length > 0) refuseTakenName('tensor', renamed, graph.tensors)
  if (from !== to && nodes.length > 0) refuseTakenName('node', renamed, graph.nodes)
  for (const each of [...tensors, ...nodes]) each.name = to
  return tensors.length + nodes.length
}

/** Leaves all names of tensors and nodes away. The reference runs such a model, and aborts when it is to save it. */
export function stripNames(graph: TmfileGraph): void {
  for (const each of [...graph.tensors, ...graph.nodes]) each.name = null
}
