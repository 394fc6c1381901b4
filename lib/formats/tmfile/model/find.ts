/** Finds parts of a model by name, for those who change it. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { FORMAT_NAME } from '../schema.js'
import type { TmfileModel, TmfileNode, TmfileTensor } from './model.js'

/** The node itself, or the first of that name. @throws TileworkError ERR_ARGUMENT when it is not in the graph */
export function findNode({ graph }: TmfileModel, key: TmfileNode | string): TmfileNode {
  return find(graph.nodes, key, 'node')
}

/** The tensor itself, or the first of that name. @throws TileworkError ERR_ARGUMENT when it is not in the graph */
export function findTensor({ graph }: TmfileModel, key: TmfileTensor | string): TmfileTensor {
  return find(graph.tensors, key, 'tensor')
}

function find<T extends { readonly name: string | null }>(
  list: readonly T[],
  key: T | string,
  what: string,
): T {
  const found =
    typeof key === 'string' ? list.find(({ name }) => name === key) : list.find((entry) => entry === key)
  if (found) return found
  const named = typeof key === 'object' && key !== null ? valueText(key.name) : valueText(key)
  throw new TileworkError('ERR_ARGUMENT', `There is no ${what} ${named}; the graph has ${list.length}.`, {
    format: FORMAT_NAME,
  })
}

/** An edit that the graph does not allow. */
export function refuseEdit(message: string): never {
  throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME })
}
