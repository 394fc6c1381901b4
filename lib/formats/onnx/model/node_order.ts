/** Topological order of nodes: each follows the producers of the values that it or its subgraphs use. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { hasSubgraphs } from './graph_names.js'
import type { Node } from './types.js'

/**
 * Indices of the nodes in topological order (Kahn's algorithm). Of the nodes that may come next, the one with the lowest
 * index does, so a sorted list keeps its order.
 *
 * @throws TileworkError ERR_GRAPH for a cycle
 */
export function sortedNodes(nodes: readonly Node[]): number[] {
  if (isSorted(nodes)) return [...nodes.keys()]
  const producers = new Map<string, number>()
  for (const [index, node] of nodes.entries()) for (const name of node.outputs) producers.set(name, index)
  return sortedBy(nodes, producers)
}

type Producers = ReadonlyMap<string, number>

/** Most graphs are sorted, which takes less time to see than to do: no node has an output that was used before. */
function isSorted(nodes: readonly Node[]): boolean {
  const met = new Set<string>()
  return nodes.every((node) => {
    const [inputs, outputs] = node.message.textLists('input', 'output')
    for (const name of inputs) if (name !== '') met.add(name)
    if (hasSubgraphs(node)) for (const name of usedInside(node)) met.add(name)
    return !outputs.some((name) => met.has(name))
  })
}

function sortedBy(nodes: readonly Node[], producers: Producers): number[] {
  const users: (number[] | undefined)[] = nodes.map(() => undefined)
  const missing = nodes.map((node, index) => {
    const needed = new Set<number>()
    for (const name of usedNames(node)) {
      const producer = producers.get(name)
      if (producer === undefined || needed.has(producer)) continue
      needed.add(producer)
      const others = users[producer]
      if (others) others.push(index)
      else users[producer] = [index]
    }
    return needed.size
  })
  const order: number[] = []
  const ready = new IndexHeap()
  for (const [index, count] of missing.entries()) if (count === 0) ready.push(index)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    order.push(next)
    for (const user of users[next] ?? []) {
      missing[user]! -= 1
      if (missing[user] === 0) ready.push(user)
    }
  }
  const stuck = missing.findIndex((count) => count > 0)
  if (stuck < 0) return order
  const { name, opType } = nodes[stuck]!
  throw new TileworkError('ERR_GRAPH', `The node ${valueText(name)} (${opType}) depends on its own output.`)
}

/** The nodes in topological order. @throws TileworkError as `sortedNodes` */
export function orderedNodes(nodes: readonly Node[]): readonly Node[] {
  return sortedNodes(nodes).map((index) => nodes[index]!)
}

/** Names that a node uses: its inputs, and names that its subgraphs take from outside. */
export function* usedNames(node: Node): Generator<string> {
  for (const name of node.inputs) if (name !== '') yield name
  if (hasSubgraphs(node)) yield* usedInside(node)
}

function* usedInside(node: Node): Generator<string> {
  // Also yields names that the subgraph itself defines, which is harmless: no outer node produces the same name.
  for (const graph of node.subgraphs) {
    for (const inner of graph.nodes) yield* usedNames(inner)
    for (const { name } of graph.outputs) yield name
  }
}

/** A binary min-heap of indices. */
class IndexHeap {
  readonly #items: number[] = []

  push(item: number): void {
    const items = this.#items
    let at = items.push(item) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (items[parent]! <= item) break
      items[at] = items[parent]!
      at = parent
    }
    items[at] = item
  }

  pop(): number | undefined {
    const items = this.#items
    const [first] = items
    const last = items.pop()
    if (items.length === 0 || last === undefined) return first
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && items[child + 1]! < items[child]!) child += 1
      if (items[child]! >= last) break
      items[at] = items[child]!
      at = child
    }
    items[at] = last
    return first
  }
}
