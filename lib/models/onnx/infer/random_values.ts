/** Which values of a model may differ from run to run: they depend on operators that draw random numbers. */
import type { OnnxModel } from '../document/model.js'
import { functionKey, type ModelFunction } from '../document/model_function.js'
import { standardDomain } from '../document/node.js'
import { usedNames } from '../document/node_names.js'
import { orderedNodes } from '../document/node_order.js'
import type { Graph, Node } from '../document/types.js'

/** Operators that draw random numbers, by domain. */
const RANDOM: ReadonlySet<string> = new Set([
  ':Bernoulli',
  ':Multinomial',
  ':RandomNormal',
  ':RandomNormalLike',
  ':RandomUniform',
  ':RandomUniformLike',
  'com.microsoft:Sampling',
])

/** Names of the values of the main graph that depend on random numbers, each with the operator that draws them. */
export function randomValues(model: OnnxModel): ReadonlyMap<string, string> {
  const drawing = drawingFunctions(model)
  const found = new Map<string, string>()
  for (const node of orderedNodes(model.graph.nodes)) {
    const operator = drawnBy(node, model.graph, drawing) ?? dependsOn(node, found)
    if (operator === undefined) continue
    for (const name of node.outputs) if (name !== '') found.set(name, operator)
  }
  return found
}

function dependsOn(node: Node, found: ReadonlyMap<string, string>): string | undefined {
  for (const name of usedNames(node)) {
    const operator = found.get(name)
    if (operator !== undefined) return operator
  }
  return undefined
}

/** The operator that draws random numbers in a node, its subgraphs or the functions that they call. */
function drawnBy(
  node: Node,
  graph: Graph | undefined,
  drawing: ReadonlyMap<string, string>,
): string | undefined {
  const own = drawnByItself(node, graph, drawing)
  if (own !== undefined) return own
  for (const inner of node.subgraphs) {
    for (const each of inner.allNodes()) {
      const operator = drawnByItself(each, undefined, drawing)
      if (operator !== undefined) return operator
    }
  }
  return undefined
}

function drawnByItself(
  node: Node,
  graph: Graph | undefined,
  drawing: ReadonlyMap<string, string>,
): string | undefined {
  const { domain, opType, overload } = node
  const called = drawing.get(functionKey(standardDomain(domain), opType, overload))
  if (called !== undefined) return called
  if (RANDOM.has(`${standardDomain(domain)}:${opType}`)) return opType
  return standardDomain(domain) === '' && opType === 'Dropout' && mayTrain(node, graph) ? opType : undefined
}

/** Dropout draws numbers where its third input is true. */
function mayTrain({ inputs }: Node, graph: Graph | undefined): boolean {
  const name = inputs[2] ?? ''
  if (name === '') return false
  const mode = graph?.initializer(name)
  const isConstant = mode?.kind === 'dense' && mode.hasData && mode.dtype === 'bool' && mode.size === 1
  return !(isConstant && mode.bytesSync()[0] === 0)
}

/** Functions that draw random numbers, or call others that do. */
function drawingFunctions({ functions }: OnnxModel): ReadonlyMap<string, string> {
  const drawing = new Map<string, string>()
  const callers = new Map<string, string[]>()
  const open: string[] = []
  for (const each of functions) {
    const key = keyOf(each)
    for (const node of innerNodes(each)) {
      const called = functionKey(standardDomain(node.domain), node.opType, node.overload)
      const before = callers.get(called)
      if (before) before.push(key)
      else callers.set(called, [key])
      const operator = drawnByItself(node, undefined, drawing)
      if (operator === undefined || drawing.has(key)) continue
      drawing.set(key, operator)
      open.push(key)
    }
  }
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    for (const caller of callers.get(key) ?? []) {
      if (drawing.has(caller)) continue
      drawing.set(caller, drawing.get(key)!)
      open.push(caller)
    }
  }
  return drawing
}

function keyOf({ domain, name, overload }: ModelFunction): string {
  return functionKey(standardDomain(domain), name, overload)
}

function* innerNodes({ nodes }: ModelFunction): Generator<Node> {
  for (const node of nodes) {
    yield node
    for (const inner of node.subgraphs) yield* inner.allNodes()
  }
}
