/** What a conversion did beside writing one node per node. */

import type { Dimension } from '../../../models/onnx/index.js'
import type { ReplacedNode } from '../to_tmfile/report.js'

export interface TmfileToOnnxReport {
  /** Number of nodes of the tmfile that were converted; constants and inputs are none. */
  readonly nodes: number
  /** Shapes of the inputs, with the extents that were set. */
  readonly inputs: Readonly<Record<string, readonly Dimension[]>>
  readonly replaced: readonly ReplacedNode[]
  /** Constants without data, which are zeros now. */
  readonly zeros: readonly string[]
  /** What a reader of the results should know, one sentence each. */
  readonly notes: readonly string[]
}
