/** Changes of names. The reference takes names of tensors for keys, so each stays the only one of its kind. */
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { refuseEdit } from './find.js'
import type { TmfileModel } from './model.js'
import { FORMAT_NAME } from './schema.js'

/**
 * Renames every tensor and node of a name: a node usually has the name of its output.
 *
 * @returns how many there were
 * @throws TileworkError ERR_ARGUMENT for what is no name; ERR_GRAPH where nothing has it, or a tensor has the new one already
 */
export function rename({ graph }: TmfileModel, from: string, to: string): number {
  for (const [argument, name] of Object.entries({ from, to })) {
    if (typeof name === 'string') continue
    const message = `${argument} must be a string; it is ${valueText(name)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const tensors = graph.tensors.filter(({ name }) => name === from)
  const nodes = graph.nodes.filter(({ name }) => name === from)
  if (tensors.length + nodes.length === 0) refuseEdit(`Nothing has the name ${JSON.stringify(from)}.`)
  const isTaken = from !== to && tensors.length > 0 && graph.tensors.some(({ name }) => name === to)
  if (isTaken) refuseEdit(`A tensor has the name ${JSON.stringify(to)} already.`)
  for (const each of [...tensors, ...nodes]) each.name = to
  return tensors.length + nodes.length
}

/** Leaves all names of tensors and nodes away. The reference runs such a model, and aborts when it is to save it. */
export function stripNames({ graph }: TmfileModel): void {
  for (const each of [...graph.tensors, ...graph.nodes]) each.name = null
}
