/** Dimensions that an operator fixes, by operator: what contradicts them cannot run, whatever the data. */

import { ownEntry } from '../../../../own_entry.js'
import type { NodeView } from '../../infer/node_view.js'
import type { Schema } from '../../schemas/schemas.js'
import { LINEAR_RULES } from './linear.js'
import { MOVEMENT_RULES } from './movement.js'
import { patternRule } from './patterns.js'
import type { ExtentRule } from './rule.js'
import { WINDOW_RULES } from './windows.js'

const RULES: Readonly<Record<string, ExtentRule>> = { ...LINEAR_RULES, ...MOVEMENT_RULES, ...WINDOW_RULES }

/** What is wrong, as a text that follows the path of the node and its operator. */
export function extentProblem(node: NodeView, { since }: Schema): string | undefined {
  return patternRule(node, since) ?? ownEntry(RULES, node.opType)?.(node, since)
}
