/** What a conversion did beside writing one node per node. */

/** A node that became other nodes than its counterpart alone. */
export interface ReplacedNode {
  readonly node: string
  readonly operator: string
  /** Operators of the tmfile, in order. */
  readonly by: readonly string[]
}

/** A node that is part of another one. */
export interface FusedNode {
  readonly node: string
  readonly operator: string
  /** Name of the node that does its work. */
  readonly into: string
}

export interface OnnxToTmfileReport {
  /** Number of nodes that the tmfile computes; constants and inputs are none. */
  readonly nodes: number
  /** Shapes of the inputs, with the extents that were set. */
  readonly inputs: Readonly<Record<string, readonly number[]>>
  /** Nodes whose outputs were computed, by name. */
  readonly folded: readonly string[]
  /** Nodes that do nothing in a tmfile. */
  readonly dropped: readonly string[]
  readonly fused: readonly FusedNode[]
  readonly replaced: readonly ReplacedNode[]
  /** Outputs that other nodes read, or that no node computes; they are copies. */
  readonly copied: readonly string[]
  /** Names of nodes that work for this batch size alone. Empty: the first extent of the inputs can be changed later. */
  readonly fixedBatch: readonly string[]
  /** What a reader of the results should know, one sentence each. */
  readonly notes: readonly string[]
}

export class ReportBuilder {
  readonly folded: string[] = []
  readonly dropped: string[] = []
  readonly fused: FusedNode[] = []
  readonly replaced: ReplacedNode[] = []
  readonly copied: string[] = []
  readonly notes = new Set<string>()
}
