/** A model as names and texts, for the comparison of two models of one format. */
import type { Tensor } from '../tensor/tensor.js'

export interface ModelDescription {
  /** Versions, producer and the like, by name. */
  readonly metadata: ReadonlyMap<string, string>
  /** The main graph first, then subgraphs and functions. */
  readonly graphs: readonly GraphDescription[]
}

export interface GraphDescription {
  /** Empty for the main graph. Long names are shortened in it. */
  readonly path: string
  /** The node that a subgraph belongs to, by indices; undefined for the main graph and for functions. */
  readonly owner?: { readonly graph: number; readonly node: number }
  readonly nodes: readonly NodeDescription[]
  /** Types by name, in order. */
  readonly inputs: ReadonlyMap<string, string>
  readonly outputs: ReadonlyMap<string, string>
  /** Declared types of the other values. */
  readonly values: ReadonlyMap<string, string>
}

export interface NodeDescription {
  /** Empty where it has none. */
  readonly name: string
  readonly operator: string
  /** Names of values; empty for an omitted one. */
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes: ReadonlyMap<string, AttributeDescription>
}

/** A value as text, or the tensors that it is. */
export type AttributeDescription = string | readonly Tensor[]
