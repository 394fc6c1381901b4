/**
 * Computes the positions of the boxes of a graph. Small graphs are laid out by dagre, which minimises crossings but takes seconds
 * for a thousand nodes. Large graphs get only the first steps of the same method (Sugiyama): a node is placed one row below its
 * lowest input, and within its row next to nodes with nearby inputs.
 */
import { Graph, layout } from '@dagrejs/dagre'

/** What the worker gets: edges as pairs of nodes. */
export interface GraphToPlace {
  readonly nodes: number
  readonly widths: Float64Array
  readonly edges: Uint32Array
}

export interface PlacedNodes {
  /** Centres. */
  readonly x: Float64Array
  readonly y: Float64Array
  readonly width: number
  readonly height: number
  /** For each edge of `edges`: x and y of the points that route it around boxes. Straight where absent. */
  readonly routes?: readonly Float64Array[]
}

export const BOX_HEIGHT = 54
const ROW_GAP = 36
const COLUMN_GAP = 24
/** Most nodes for dagre. */
const DAGRE_BOXES = 400

export function placeNodes(graph: GraphToPlace): PlacedNodes {
  return graph.nodes <= DAGRE_BOXES ? placeByDagre(graph) : placeInRows(graph)
}

interface Point {
  readonly x: number
  readonly y: number
}

function placeByDagre({ nodes, widths, edges }: GraphToPlace): PlacedNodes {
  const graph = new Graph()
  graph.setGraph({ rankdir: 'TB', nodesep: COLUMN_GAP, ranksep: ROW_GAP })
  graph.setDefaultEdgeLabel(() => ({}))
  for (let node = 0; node < nodes; node++)
    graph.setNode(String(node), { width: widths[node]!, height: BOX_HEIGHT })
  for (let at = 0; at < edges.length; at += 2) graph.setEdge(String(edges[at]), String(edges[at + 1]), {})
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  const x = new Float64Array(nodes)
  const y = new Float64Array(nodes)
  for (let node = 0; node < nodes; node++) {
    const placed = graph.node(String(node)) as { x: number; y: number }
    x[node] = placed.x
    y[node] = placed.y
  }
  const routes = Array.from({ length: edges.length / 2 }, (_, at) => {
    const { points } = graph.edge(String(edges[2 * at]), String(edges[2 * at + 1])) as { points: Point[] }
    return Float64Array.from(points.flatMap((point) => [point.x, point.y]))
  })
  return { x, y, width, height, routes }
}

function placeInRows(graph: GraphToPlace): PlacedNodes {
  const { nodes, widths } = graph
  const { row, inputs } = rowsOf(graph)
  const rows: number[][] = []
  for (let node = 0; node < nodes; node++) {
    rows[row[node]!] ??= []
    rows[row[node]!]!.push(node)
  }
  const x = new Float64Array(nodes)
  const y = new Float64Array(nodes)
  let [least, most] = [0, 0]
  for (const [at, members] of rows.entries()) {
    const wanted = new Map(members.map((node) => [node, meanOf(inputs[node]!, x)]))
    members.sort((one, other) => wanted.get(one)! - wanted.get(other)! || one - other)
    placeRow(members, wanted, widths, x)
    for (const node of members) {
      y[node] = at * (BOX_HEIGHT + ROW_GAP) + BOX_HEIGHT / 2
      least = Math.min(least, x[node]! - widths[node]! / 2)
      most = Math.max(most, x[node]! + widths[node]! / 2)
    }
  }
  for (let node = 0; node < nodes; node++) x[node]! -= least
  return { x, y, width: most - least, height: rows.length * (BOX_HEIGHT + ROW_GAP) - ROW_GAP }
}

/** The row of each node: the length of the longest path to it from a node without inputs. A cycle is cut where it repeats. */
function rowsOf({ nodes, edges }: GraphToPlace): { row: Uint32Array; inputs: number[][] } {
  const inputs: number[][] = Array.from({ length: nodes }, () => [])
  const outputs: number[][] = Array.from({ length: nodes }, () => [])
  const open = new Uint32Array(nodes)
  for (let at = 0; at < edges.length; at += 2) {
    const [from, to] = [edges[at]!, edges[at + 1]!]
    inputs[to]!.push(from)
    outputs[from]!.push(to)
    open[to]!++
  }
  const row = new Uint32Array(nodes)
  const ready = [...open.keys()].filter((node) => open[node] === 0)
  for (let at = 0; at < ready.length; at++) {
    const node = ready[at]!
    for (const next of outputs[node]!) {
      row[next] = Math.max(row[next]!, row[node]! + 1)
      if (--open[next]! === 0) ready.push(next)
    }
  }
  return { row, inputs }
}

function meanOf(nodes: readonly number[], x: Float64Array): number {
  return nodes.length === 0 ? 0 : nodes.reduce((sum, node) => sum + x[node]!, 0) / nodes.length
}

/** Puts each node at its wanted x, or to the right of its predecessor; then shifts the row to the mean of the wanted x. */
function placeRow(
  members: readonly number[],
  wanted: ReadonlyMap<number, number>,
  widths: Float64Array,
  x: Float64Array,
): void {
  let [end, drift] = [Number.NEGATIVE_INFINITY, 0]
  for (const node of members) {
    const half = widths[node]! / 2
    x[node] = Math.max(wanted.get(node)!, end + half)
    drift += x[node]! - wanted.get(node)!
    end = x[node]! + half + COLUMN_GAP
  }
  for (const node of members) x[node]! -= drift / members.length
}
