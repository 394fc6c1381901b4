/** Dimensions that an operator fixes, by operator: what contradicts them cannot run, whatever the data. */

import { ownEntry } from '../../../../own_entry.js'
import type { NodeView } from '../../infer/node_view.js'
import type { Schema } from '../../schemas/schemas.js'
import { CLASSIC_RULES } from './classic.js'
import { CONTROL_RULES } from './control.js'
import { LINEAR_RULES } from './linear.js'
import { MOVEMENT_RULES } from './movement.js'
import { patternRule } from './patterns.js'
import { type ExtentRule, firstOf } from './rule.js'
import { SEQUENCE_RULES } from './sequences.js'
import { TYPE_RULES } from './types.js'
import { WINDOW_RULES } from './windows.js'

const TABLES: readonly Readonly<Record<string, ExtentRule>>[] = [
  TYPE_RULES,
  CLASSIC_RULES,
  CONTROL_RULES,
  LINEAR_RULES,
  MOVEMENT_RULES,
  SEQUENCE_RULES,
  WINDOW_RULES,
]

/** The rules of an operator: those of several files are tried one after the other. */
function ruleOf(opType: string): ExtentRule | undefined {
  const rules = TABLES.map((table) => ownEntry(table, opType)).filter((rule) => rule !== undefined)
  return rules.length > 0 ? firstOf(rules) : undefined
}

/** What is wrong, as a text that follows the path of the node and its operator. */
export function extentProblem(node: NodeView, { since }: Schema): string | undefined {
  return patternRule(node, since) ?? ruleOf(node.opType)?.(node, since)
}
