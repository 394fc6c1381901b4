/** Branches and loops of which is known how often they run: their nodes take their place. */
import { tensor } from '../../../tensor/from_values.js'
import { elementsOf } from '../rewrite/elements.js'
import type { RewriteGraph, RewriteNode, RewriteValue } from '../rewrite/rewrite_graph.js'
import type { NodeMaker, NodeRule, Replacement } from '../rewrite/rewriter.js'
import { ruleOf } from './facts.js'

function oneElement(value: RewriteValue | undefined): number | bigint | undefined {
  const elements = elementsOf(value)
  return elements?.length === 1 ? elements[0] : undefined
}

function graphOf(node: RewriteNode, name: string): RewriteGraph | undefined {
  const [graph] = node.attribute(name)?.graphs ?? []
  return graph && node.subgraphs.find(({ source }) => source === graph)
}

const branch: NodeRule['apply'] = (node, maker) => {
  const condition = oneElement(node.input(0))
  if (condition === undefined) return undefined
  const graph = graphOf(node, condition === 1 ? 'then_branch' : 'else_branch')
  return graph?.inputs.length === 0 && graph.outputs.length === node.outputs.length
    ? maker.inline(graph, [])
    : undefined
}

function loop(node: RewriteNode, maker: NodeMaker): Replacement | undefined {
  const body = graphOf(node, 'body')
  const [count, condition, ...initial] = node.inputs
  if (!body || body.inputs.length !== initial.length + 2) return undefined
  const times = count ? oneElement(count) : undefined
  const isRun = condition ? oneElement(condition) : 1
  const isNever = (times !== undefined && times <= 0) || isRun === 0
  const isOnce = times === 1n && isRun === 1
  // What a body adds at each iteration is joined to a new axis, which no replacement does.
  const scans = node.outputs.slice(initial.length)
  if (!(isNever || isOnce) || scans.some((value) => value && !value.isUnused)) return undefined
  if (initial.some((value) => value === undefined)) return undefined
  if (isNever) return initial
  if (body.outputs.length < initial.length + 1) return undefined
  const given = [iteration(body, maker), truth(body, maker), ...(initial as RewriteValue[])]
  return maker.inline(body, given).slice(1, initial.length + 1)
}

/** The number of the first iteration, of the rank that the body declares. */
function iteration({ inputs: [input] }: RewriteGraph, maker: NodeMaker): RewriteValue {
  return maker.constant(tensor([0n], { dtype: 'int64', shape: declaredShape(input) }))
}

function truth({ inputs: [, input] }: RewriteGraph, maker: NodeMaker): RewriteValue {
  return maker.constant(tensor([1], { dtype: 'bool', shape: declaredShape(input) }))
}

function declaredShape(input: RewriteValue | undefined): readonly number[] {
  const declared = input?.source && input.graph.source.typeOf(input.name)
  return declared?.kind === 'tensor' && declared.shape?.length === 1 ? [1] : []
}

export const BRANCHES: readonly NodeRule[] = [
  ruleOf('if-constant', ['If'], branch),
  ruleOf('loop-constant', ['Loop'], loop),
]
