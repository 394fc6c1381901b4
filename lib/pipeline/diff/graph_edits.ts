/** The edits between two models of one format: nodes, edges, attributes, graph inputs and outputs, metadata. */
import type {
  AttributeDescription,
  GraphDescription,
  ModelDescription,
  NodeDescription,
} from '../../formats/model_description.js'
import { append } from '../../long_lists.js'
import type { Tensor } from '../../tensor/tensor.js'

/** One difference of two graphs. */
export interface GraphEdit {
  readonly kind: 'added' | 'removed' | 'changed'
  readonly what:
    | 'graph'
    | 'node'
    | 'operator'
    | 'attribute'
    | 'edge'
    | 'input'
    | 'output'
    | 'value'
    | 'metadata'
  /** The subgraph or function; empty for the main graph. */
  readonly graph: string
  /** The node, the value or the key, for example `Conv "conv1" strides`. */
  readonly place: string
  /** Texts of what is there; null for what is not there. */
  readonly before: string | null
  readonly after: string | null
}

/** Whether the tensors of two attributes have equal types, shapes and values. */
export type AreSameTensors = (a: readonly Tensor[], b: readonly Tensor[]) => Promise<boolean>

/** The edits that turn `a` into `b`, graph by graph. */
export async function graphEdits(
  a: ModelDescription,
  b: ModelDescription,
  areSame: AreSameTensors,
): Promise<GraphEdit[]> {
  const edits: GraphEdit[] = [...textEdits('metadata', '', a.metadata, b.metadata)]
  const others = new Map(b.graphs.map((graph) => [graph.path, graph]))
  for (const graph of a.graphs) {
    const other = others.get(graph.path)
    others.delete(graph.path)
    if (other) append(edits, await editsOfGraph(graph, other, areSame))
    else edits.push(wholeGraph('removed', graph))
  }
  for (const graph of others.values()) edits.push(wholeGraph('added', graph))
  return edits
}

function wholeGraph(kind: 'added' | 'removed', { path, nodes }: GraphDescription): GraphEdit {
  const text = `${nodes.length} nodes`
  return { kind, what: 'graph', graph: path, place: path, ...sidesOf(kind, text) }
}

function sidesOf(kind: 'added' | 'removed', text: string): Pick<GraphEdit, 'before' | 'after'> {
  return kind === 'added' ? { before: null, after: text } : { before: text, after: null }
}

async function editsOfGraph(
  a: GraphDescription,
  b: GraphDescription,
  areSame: AreSameTensors,
): Promise<GraphEdit[]> {
  const { path } = a
  const edits = [
    ...textEdits('input', path, a.inputs, b.inputs),
    ...textEdits('output', path, a.outputs, b.outputs),
  ]
  const { pairs, removed, added } = matchNodes(a.nodes, b.nodes)
  for (const node of removed) edits.push(wholeNode('removed', path, node))
  for (const node of added) edits.push(wholeNode('added', path, node))
  for (const [one, other] of pairs) append(edits, await editsOfNode(path, one, other, areSame))
  append(edits, textEdits('value', path, a.values, b.values))
  return edits
}

function* textEdits(
  what: GraphEdit['what'],
  graph: string,
  a: ReadonlyMap<string, string>,
  b: ReadonlyMap<string, string>,
): Generator<GraphEdit> {
  for (const [place, before] of a) {
    const after = b.get(place)
    if (after === undefined) yield { kind: 'removed', what, graph, place, before, after: null }
    else if (after !== before) yield { kind: 'changed', what, graph, place, before, after }
  }
  for (const [place, after] of b) {
    if (!a.has(place)) yield { kind: 'added', what, graph, place, before: null, after }
  }
}

function wholeNode(kind: 'added' | 'removed', graph: string, node: NodeDescription): GraphEdit {
  const text = `(${node.inputs.join(', ')}) -> (${node.outputs.join(', ')})`
  return { kind, what: 'node', graph, place: placeOf(node), ...sidesOf(kind, text) }
}

function placeOf({ operator, name, outputs }: NodeDescription): string {
  return `${bounded(operator)} "${bounded(name || (outputs[0] ?? ''))}"`
}

/** Longest name in a place. Each edit of a node repeats its place, and a name may be as long as the file (CWE-400). */
const MAX_PLACE_NAME = 1024

function bounded(name: string): string {
  return name.length <= MAX_PLACE_NAME ? name : `${name.slice(0, MAX_PLACE_NAME)}…`
}

interface MatchedNodes {
  readonly pairs: readonly (readonly [NodeDescription, NodeDescription])[]
  readonly removed: readonly NodeDescription[]
  readonly added: readonly NodeDescription[]
}

/** Keys by which nodes are matched, the most reliable first; undefined where a node has no such key. */
const NODE_KEYS: readonly ((node: NodeDescription) => string | undefined)[] = [
  ({ name, operator }) => (name === '' ? undefined : JSON.stringify([name, operator])),
  ({ name }) => (name === '' ? undefined : name),
  ({ outputs, operator }) => outputs[0] && JSON.stringify([outputs[0], operator]),
  ({ outputs }) => outputs[0] || undefined,
  ({ operator, inputs, attributes }) =>
    JSON.stringify([operator, inputs, [...attributes].map(([key, value]) => [key, textOf(value)])]),
]

/** Pairs nodes whose key is unique in each graph, one kind of key after the other. */
function matchNodes(a: readonly NodeDescription[], b: readonly NodeDescription[]): MatchedNodes {
  const matches = new Map<NodeDescription, NodeDescription>()
  let added = b
  for (const keyOf of NODE_KEYS) {
    const left = a.filter((node) => !matches.has(node))
    if (left.length === 0 || added.length === 0) break
    const [ofA, ofB] = [uniqueKeys(left, keyOf), uniqueKeys(added, keyOf)]
    const taken = new Set<NodeDescription>()
    for (const [key, node] of ofA) {
      const other = node && ofB.get(key)
      if (!other) continue
      matches.set(node, other)
      taken.add(other)
    }
    added = added.filter((node) => !taken.has(node))
  }
  return { pairs: [...matches], removed: a.filter((node) => !matches.has(node)), added }
}

/** Nodes by key; null for a key of several nodes. */
function uniqueKeys(
  nodes: readonly NodeDescription[],
  keyOf: (node: NodeDescription) => string | undefined,
): Map<string, NodeDescription | null> {
  const byKey = new Map<string, NodeDescription | null>()
  for (const node of nodes) {
    const key = keyOf(node)
    if (key !== undefined) byKey.set(key, byKey.has(key) ? null : node)
  }
  return byKey
}

async function editsOfNode(
  graph: string,
  a: NodeDescription,
  b: NodeDescription,
  areSame: AreSameTensors,
): Promise<GraphEdit[]> {
  const place = placeOf(a)
  const edits: GraphEdit[] = []
  if (a.operator !== b.operator) {
    edits.push({ kind: 'changed', what: 'operator', graph, place, before: a.operator, after: b.operator })
  }
  append(edits, edgeEdits(graph, `${place} input`, a.inputs, b.inputs))
  append(edits, edgeEdits(graph, `${place} output`, a.outputs, b.outputs))
  for (const [name, before] of a.attributes) {
    const after = b.attributes.get(name)
    const where = { what: 'attribute', graph, place: `${place} ${name}` } as const
    if (after === undefined) edits.push({ kind: 'removed', ...where, before: textOf(before), after: null })
    else if (!(await isSameAttribute(before, after, areSame)))
      edits.push({ kind: 'changed', ...where, before: textOf(before), after: textOf(after) })
  }
  for (const [name, after] of b.attributes) {
    if (a.attributes.has(name)) continue
    const where = { what: 'attribute', graph, place: `${place} ${name}` } as const
    edits.push({ kind: 'added', ...where, before: null, after: textOf(after) })
  }
  return edits
}

/** Edits of the inputs or of the outputs of a node, by position. */
function* edgeEdits(
  graph: string,
  place: string,
  a: readonly string[],
  b: readonly string[],
): Generator<GraphEdit> {
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    // An omitted optional input at the end equals an absent one.
    const [before, after] = [a[at] || null, b[at] || null]
    if (before === after) continue
    const kind = before === null ? 'added' : after === null ? 'removed' : 'changed'
    yield { kind, what: 'edge', graph, place: `${place} ${at}`, before, after }
  }
}

async function isSameAttribute(
  a: AttributeDescription,
  b: AttributeDescription,
  areSame: AreSameTensors,
): Promise<boolean> {
  if (typeof a === 'string' || typeof b === 'string') return a === b
  return textOf(a) === textOf(b) && (await areSame(a, b))
}

function textOf(value: AttributeDescription): string {
  if (typeof value === 'string') return value
  return value.map(({ dtype, shape }) => `tensor ${dtype} [${shape.join(', ')}]`).join(', ')
}
