/**
 * Remembers the file that a model was read from, and the index of each object in it. A rewrite looks up the bytes that no
 * object holds: padding, uninitialised fields, the form of a parameter block.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { IndexedObject, Origin } from '../../../formats/tmfile/encode/encode_model.js'
import type { TmfileModel } from './model.js'

const origins = new WeakMap<TmfileModel, Origin>()

/** Call directly after the model was built from `source`, before any edit. */
export function rememberOrigin(model: TmfileModel, source: ByteSource): void {
  const { nodes, tensors, buffers, devices } = model.graph
  // Edits change the lists. Most models are never written again, so the index is made when it is asked for.
  const lists = [[...nodes], [...tensors], [...buffers], [...(devices ?? [])]] as const
  let indices: Map<IndexedObject, number> | undefined
  const indexOf = (object: IndexedObject): number | undefined => {
    indices ??= new Map(
      lists.flatMap((list) => list.map((each, index): [IndexedObject, number] => [each, index])),
    )
    return indices.get(object)
  }
  origins.set(model, { source, indexOf })
}

/** Undefined for a model created in memory. */
export function originOf(model: TmfileModel): Origin | undefined {
  return origins.get(model)
}
