/** The edits of a graph by node, as `fc1: MatMul → MatMulNBits, K 1024, bits 4` needs them. */
import type { GraphEdit } from '../../../pipeline/diff/graph_edits.js'

export interface NodeEdits {
  readonly kind: GraphEdit['kind']
  /** The subgraph or function; empty for the main graph. */
  readonly graph: string
  /** The name of the node in the reference, or of its first output; of an added one in the compared model. */
  readonly name: string
  readonly operator: string
  /** What the node is there, one text for each change. */
  readonly changes: readonly string[]
}

export interface GroupedEdits {
  readonly nodes: readonly NodeEdits[]
  /** Edits of the ends, values and metadata. */
  readonly others: readonly string[]
}

const OF_NODES: ReadonlySet<GraphEdit['what']> = new Set(['node', 'operator', 'attribute', 'edge'])

export function groupEdits(edits: readonly GraphEdit[]): GroupedEdits {
  const nodes = new Map<
    string,
    { -readonly [Key in keyof NodeEdits]: NodeEdits[Key] } & { changes: string[] }
  >()
  const others: string[] = []
  for (const edit of edits) {
    const { kind, what, graph, place } = edit
    if (!OF_NODES.has(what)) {
      others.push(`${kind} ${what} ${graph === '' ? '' : `${graph}: `}${place}${colon(changeOf(edit))}`)
      continue
    }
    const { operator, name, part } = partsOf(place)
    const key = JSON.stringify([graph, operator, name])
    const node = nodes.get(key) ?? { kind: 'changed', graph, name, operator, changes: [] }
    nodes.set(key, node)
    if (what === 'node') node.kind = kind
    if (what === 'operator') node.operator = `${edit.before} → ${edit.after}`
    else node.changes.push(textOf(edit, part))
  }
  return { nodes: [...nodes.values()], others }
}

/** `Conv "conv1" strides` is an operator, a name and a part of the node. */
function partsOf(place: string): { operator: string; name: string; part: string } {
  const start = place.indexOf(' "')
  const end = place.lastIndexOf('"')
  return { operator: place.slice(0, start), name: place.slice(start + 2, end), part: place.slice(end + 2) }
}

function textOf(edit: GraphEdit, part: string): string {
  const { kind, what, before, after } = edit
  if (what === 'attribute' && kind === 'added') return `${part} ${after}`
  if (what === 'attribute' && kind === 'removed') return `without ${part} ${before}`
  return `${part}${part === '' ? '' : ' '}${changeOf(edit)}`
}

function changeOf({ before, after }: GraphEdit): string {
  if (before === null) return after ?? ''
  return after === null ? before : `${before} → ${after}`
}

function colon(text: string): string {
  return text === '' ? '' : `: ${text}`
}
