/**
 * Names of nodes and tensors. The reference uses tensor names as keys, and edits find tensors and nodes by name, so every
 * new name must be unique among nodes or among tensors. Duplicate names in a file are kept.
 */
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type { TmfileGraph } from '../../../formats/tmfile/types.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { refuseEdit } from '../document/lookup.js'

/** A NUL ends a name in C, and a lone surrogate has no UTF-8 encoding. */
const UNWRITABLE = /\0|\p{Surrogate}/u

/**
 * Checks a new name and returns it.
 *
 * @param what - the start of the message, for example `The name of a node`
 * @throws TileworkError ERR_ARGUMENT for an empty name, and for one that a file cannot hold
 */
export function checkNewName(name: unknown, what: string): string {
  if (typeof name === 'string' && name !== '' && !UNWRITABLE.test(name)) return name
  const message = `${what} is ${valueText(name)}; it must be a non-empty string without NUL and lone surrogates.`
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
  refuseEdit(`The name ${JSON.stringify(name)} is taken by another ${what}.`)
}

/**
 * Renames every tensor and node with the name: a node usually has the name of its output.
 *
 * @returns the number of renamed objects
 * @throws TileworkError ERR_ARGUMENT for an invalid name; ERR_GRAPH where nothing has the old name, or the new name is
 * taken
 */
export function rename(graph: TmfileGraph, from: string, to: string): number {
  if (typeof from !== 'string') {
    const message = `from is ${valueText(from)}; it must be a string.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const renamed = { name: checkNewName(to, 'The new name') }
  const tensors = graph.tensors.filter(({ name }) => name === from)
  const nodes = graph.nodes.filter(({ name }) => name === from)
  if (tensors.length + nodes.length === 0) {
    const known = new Set([...graph.tensors, ...graph.nodes].map(({ name }) => name ?? ''))
    refuseEdit(`No tensor or node has the name ${JSON.stringify(from)}${nearestText(from, known)}`)
  }
  if (from !== to && tensors.length > 0) refuseTakenName('tensor', renamed, graph.tensors)
  if (from !== to && nodes.length > 0) refuseTakenName('node', renamed, graph.nodes)
  for (const each of [...tensors, ...nodes]) each.name = to
  return tensors.length + nodes.length
}

/** Removes the names of all tensors and nodes. The reference runs such a model, and aborts when it saves it. */
export function stripNames(graph: TmfileGraph): void {
  for (const each of [...graph.tensors, ...graph.nodes]) each.name = null
}
