/** Recognises Gelu where it is written as `x * 0.5 * (1 + Erf(x / sqrt(2)))`, since the engine has no Erf. */
import type { Graph, Node } from '../../../models/onnx/index.js'

/** Gelu that several nodes compute. */
export interface GeluMatch {
  /** Name of the value that it is computed from. */
  readonly input: string
  /** The node whose output is the result. */
  readonly last: Node
  /** The nodes between, without the last. */
  readonly inner: readonly Node[]
}

/** The number of a constant of one element; undefined for other values. */
export type ScalarOf = (name: string) => number | undefined

const isNear = (value: number | undefined, wanted: number): boolean =>
  value !== undefined && Math.abs(value - wanted) < 1e-5

/** The other input of a node of two, given one of them. */
function otherInput({ inputs }: Node, name: string): string | undefined {
  const [one, other] = inputs
  if (inputs.length !== 2) return undefined
  return one === name ? other : other === name ? one : undefined
}

/** @param erf - a node Erf */
export function matchGelu(graph: Graph, erf: Node, scalarOf: ScalarOf): GeluMatch | undefined {
  const input = scaledInput(graph, erf, scalarOf)
  const sum = onlyUser(graph, erf, 'Add')
  if (input === undefined || !sum || !isNear(scalarOf(otherInput(sum, erf.outputs[0]!) ?? ''), 1))
    return undefined
  const inner = [erf]
  let [last, hasInput, hasHalf] = [sum, false, false]
  while (!hasInput || !hasHalf) {
    const next = onlyUser(graph, last, 'Mul')
    const factor = next && otherInput(next, last.outputs[0]!)
    if (!next || factor === undefined) return undefined
    const isHalf = isNear(scalarOf(factor), 0.5)
    const isHalved = isHalfOf(graph, factor, input, scalarOf)
    if (hasHalf ? isHalf || isHalved : !isHalf && !isHalved && factor !== input) return undefined
    if (hasInput && (factor === input || isHalved)) return undefined
    hasHalf ||= isHalf || isHalved
    hasInput ||= factor === input || isHalved
    inner.push(last)
    last = next
  }
  return { input, last, inner }
}

/** x of `Erf(x / sqrt(2))`. */
function scaledInput(graph: Graph, erf: Node, scalarOf: ScalarOf): string | undefined {
  const scale = graph.producerOf(erf.inputs[0] ?? '')
  const [one = '', other = ''] = scale?.inputs ?? []
  if (scale?.opType === 'Div' && isNear(scalarOf(other), Math.SQRT2)) return one
  if (scale?.opType !== 'Mul') return undefined
  if (isNear(scalarOf(other), Math.SQRT1_2)) return one
  return isNear(scalarOf(one), Math.SQRT1_2) ? other : undefined
}

function isHalfOf(graph: Graph, name: string, input: string, scalarOf: ScalarOf): boolean {
  const node = graph.producerOf(name)
  const factor = node?.opType === 'Mul' ? otherInput(node, input) : undefined
  return factor !== undefined && isNear(scalarOf(factor), 0.5)
}

/** The one node that uses the output of a node. */
function onlyUser(graph: Graph, node: Node, operator: string): Node | undefined {
  const name = node.outputs[0] ?? ''
  const users = graph.usesOf(name)
  const [only] = users
  return users.length === 1 && only!.node.opType === operator && !graph.outputNames.has(name)
    ? only!.node
    : undefined
}
