/** Names for new values and nodes that nothing in the model uses, in any graph. */
import type { Graph } from './types.js'

export class FreshNames {
  readonly #taken = new Set<string>([''])
  /** The number to try next, by base. */
  readonly #counts = new Map<string, number>()

  constructor(model: { graphs(): Iterable<Graph> }) {
    for (const graph of model.graphs()) {
      for (const name of [...graph.inputNames, ...graph.outputNames, ...graph.initializerNames]) {
        this.#taken.add(name)
      }
      for (const { name } of graph.valueInfo) this.#taken.add(name)
      for (const node of graph.nodes) {
        // onnxruntime refuses two nodes of one name.
        const [names, inputs, outputs] = node.message.textLists('name', 'input', 'output')
        for (const list of [names.slice(-1), inputs, outputs]) for (const name of list) this.#taken.add(name)
      }
    }
  }

  /** Names of values outside of graphs. */
  reserve(names: Iterable<string>): void {
    for (const name of names) this.#taken.add(name)
  }

  /** `base`, or `base` with a number. */
  take(base: string): string {
    let name = base
    let count = this.#counts.get(base) ?? 1
    for (; this.#taken.has(name); count++) name = `${base}_${count}`
    this.#counts.set(base, count)
    this.#taken.add(name)
    return name
  }
}
