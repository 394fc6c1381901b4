/** The order of nodes: each behind those whose values it uses, itself or in a graph inside it. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { subgraphsOf } from './graph.js'
import type { Node } from './node.js'

/**
 * Indices of nodes in an order in which each stands behind those it uses. Of those that may come next the first of the
 * list does, so that a sorted list stays as it is.
 *
 * @throws TileworkError ERR_GRAPH where nodes wait for each other
 */
export function sortedNodes(nodes: readonly Node[]): number[] {
  const producers = new Map(
    nodes.flatMap((node, index) => node.outputs.map((name) => [name, index] as const)),
  )
  const users: number[][] = nodes.map(() => [])
  const waits = nodes.map((node, index) => {
    const needed = new Set([...usedNames(node)].flatMap((name) => producers.get(name) ?? []))
    for (const producer of needed) users[producer]!.push(index)
    return needed.size
  })
  const order: number[] = []
  const ready = new IndexHeap()
  for (const [index, count] of waits.entries()) if (count === 0) ready.push(index)
  for (let next = ready.pop(); next !== undefined; next = ready.pop()) {
    order.push(next)
    for (const user of users[next]!) {
      waits[user]! -= 1
      if (waits[user] === 0) ready.push(user)
    }
  }
  const stuck = waits.findIndex((count) => count > 0)
  if (stuck < 0) return order
  const { name, opType } = nodes[stuck]!
  throw new TileworkError('ERR_GRAPH', `The node ${valueText(name)} (${opType}) waits for its own output.`)
}

/** Names that a node uses: its inputs, and what graphs inside it take from outside. */
export function* usedNames(node: Node): Generator<string> {
  for (const name of node.inputs) if (name !== '') yield name
  // A name that the graph inside makes itself may be yielded too: no node outside makes one of the same name.
  for (const graph of subgraphsOf(node)) {
    for (const inner of graph.nodes) yield* usedNames(inner)
    for (const { name } of graph.outputs) yield name
  }
}

/** Indices, smallest first. */
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
