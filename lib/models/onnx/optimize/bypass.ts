/** Removes nodes whose output is their first input: Identity, and Dropout where it does not drop anything. */
import { orderedNodes } from '../document/node_order.js'
import { isStandard, mainScope, type Scope } from '../document/scope.js'
import type { Node } from '../document/types.js'
import type { Body } from './functions.js'
import { Rewrite } from './rewrite.js'

export function removeIdentity(model: Body): number {
  return removePassing(model, 'Identity', () => true)
}

export function removeDropout(model: Body): number {
  const opset = Number(model.opsetImports.get('') ?? 1)
  return removePassing(model, 'Dropout', (node, scope) => !isTraining(node, scope, opset))
}

/** True where the node may drop elements, or its mask is used. */
function isTraining(node: Node, scope: Scope, opset: number): boolean {
  const mask = node.outputs[1] ?? ''
  if (mask !== '' && (scope.graph.outputNames.has(mask) || scope.graph.usersOf(mask).length > 0)) return true
  if (opset < FIRST_WITHOUT_TEST) return Number(node.attribute('is_test')?.value ?? 0) === 0
  const mode = opset < FIRST_WITH_MODE ? '' : (node.inputs[2] ?? '')
  return mode !== '' && !isFalse(scope, mode)
}

/** Dropout has the attribute `is_test` below, */
const FIRST_WITHOUT_TEST = 7
/** and from here on an input that says whether the model is in training. */
const FIRST_WITH_MODE = 12

function isFalse(scope: Scope, name: string): boolean {
  const bytes = scope.constantBytes(name)
  return bytes?.byteLength === 1 && bytes[0] === 0
}

function removePassing(model: Body, opType: string, passes: (node: Node, scope: Scope) => boolean): number {
  let count = 0
  for (const scope of [...mainScope(model).all()]) {
    // In the order of their chains; what is between two of them does not matter.
    const nodes = scope.graph.nodes.filter((node) => isStandard(node, opType))
    if (nodes.length === 0) continue
    const rewrite = new Rewrite(scope.graph)
    for (const node of orderedNodes(nodes)) {
      const [input = ''] = node.inputs
      const [output = ''] = node.outputs
      if (input !== '' && output !== '' && passes(node, scope)) rewrite.bypass(node, input, output)
    }
    count += rewrite.apply()
  }
  return count
}
