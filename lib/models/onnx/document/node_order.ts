/** Topological order of nodes: each follows the producers of the values that it or its subgraphs use. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { NO_NODE, NodeNames } from './node_names.js'
import type { Node } from './types.js'

/**
 * Indices of the nodes in topological order (Kahn's algorithm). Of the nodes that may come next, the one with the lowest
 * index does, so a sorted list keeps its order.
 *
 * @param names - of these nodes, where they were read before
 * @throws TileworkError ERR_GRAPH for a cycle
 */
export function sortedNodes(nodes: readonly Node[], names = new NodeNames(nodes)): readonly number[] {
  if (isSorted(names, nodes.length)) return [...nodes.keys()]
  const order = sortedBy(names, nodes.length)
  if (order.length === nodes.length) return order
  const sorted = new Set(order)
  const { name, opType } = nodes.find((_, index) => !sorted.has(index))!
  throw new TileworkError('ERR_GRAPH', `The node ${valueText(name)} (${opType}) depends on its own output.`)
}

/** Most graphs are sorted, which takes less time to see than to do: no node has an output that was used before. */
function isSorted({ table, used, made }: NodeNames, count: number): boolean {
  const met = new Uint8Array(table.length)
  for (let node = 0; node < count; node++) {
    for (let at = used.start(node); at < used.end(node); at++) met[used.at(at)] = 1
    for (let at = made.start(node); at < made.end(node); at++) if (met[made.at(at)] === 1) return false
  }
  return true
}

/** The sorted indices; without those of the nodes that depend on their own outputs. */
function sortedBy({ table, used, made }: NodeNames, count: number): readonly number[] {
  const users = used.inverted(table.length)
  const producers = new Int32Array(table.length).fill(NO_NODE)
  for (let node = 0; node < count; node++)
    for (let at = made.start(node); at < made.end(node); at++) producers[made.at(at)] = node
  const missing = new Uint32Array(count)
  for (let node = 0; node < count; node++)
    for (let at = used.start(node); at < used.end(node); at++)
      if (producers[used.at(at)] !== NO_NODE) missing[node]! += 1
  const order: number[] = []
  const ready = new IndexHeap()
  for (let node = 0; node < count; node++) if (missing[node] === 0) ready.push(node)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    order.push(next)
    for (let at = made.start(next); at < made.end(next); at++) {
      const name = made.at(at)
      // The last of several producers counts.
      if (producers[name] !== next) continue
      producers[name] = NO_NODE
      for (let use = users.starts[name]!; use < users.starts[name + 1]!; use++) {
        const user = users.lists[use]!
        missing[user]! -= 1
        if (missing[user] === 0) ready.push(user)
      }
    }
  }
  return order
}

/** The nodes in topological order. @throws TileworkError as `sortedNodes` */
export function orderedNodes(nodes: readonly Node[]): readonly Node[] {
  return sortedNodes(nodes).map((index) => nodes[index]!)
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
