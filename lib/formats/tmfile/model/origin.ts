/**
 * Where the objects of a model came from: the source, and which record each one was. A rewrite looks there for what no
 * object keeps: padding, fields that nobody set, the form of a parameter block.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { TmfileModel } from './model.js'
import type { TmfileBuffer, TmfileDevice, TmfileNode, TmfileTensor } from './types.js'

type Numbered = TmfileNode | TmfileTensor | TmfileBuffer | TmfileDevice

export interface Origin {
  readonly source: ByteSource
  /** Position in the file's list; undefined for an object that was not in the file. */
  indexOf(object: Numbered): number | undefined
}

const origins = new WeakMap<TmfileModel, Origin>()

/** Notes what the objects of a model are, which was just made from the source. */
export function rememberOrigin(model: TmfileModel, source: ByteSource): void {
  const { nodes, tensors, buffers, devices } = model.graph
  const indices = new WeakMap<Numbered, number>()
  for (const list of [nodes, tensors, buffers, devices ?? []] as const) {
    for (const [index, object] of list.entries()) indices.set(object, index)
  }
  origins.set(model, { source, indexOf: (object) => indices.get(object) })
}

/** Undefined for a model that was made in memory. */
export function originOf(model: TmfileModel): Origin | undefined {
  return origins.get(model)
}
