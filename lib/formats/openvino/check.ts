/** Reports everything wrong with an IR: the rules of opening, texts, and edges that lead from or to layers that there are not. */
import type { ByteSource } from '../../bytes/source.js'
import { type Finding, TileworkError } from '../../errors.js'
import { sizeOf } from '../../tensor/shape.js'
import { Budget } from '../budget.js'
import type { ReadOptions } from '../format.js'
import { quote } from '../quote.js'
import { Report } from '../report.js'
import { walkIr } from './constants.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { readStrings } from './strings.js'
import type { Edge, GraphScope, Layer } from './walk.js'

/** @throws TileworkError only what the source throws: ERR_IO, ERR_FILE_CHANGED, ERR_CLOSED */
export async function check(source: ByteSource, { level, limits, sibling }: ReadOptions): Promise<Finding[]> {
  const report = new Report(FORMAT_NAME, level, 'collect')
  const budget = new Budget(limits, DEFAULT_LIMITS, source.byteLength)
  const links = new Links(report)
  const visitor = {
    layer: (layer: Layer) => links.addLayer(layer),
    edge: (edge: Edge) => links.addEdge(edge),
  }
  const walked = await walkIr(source, visitor, { budget, report, sibling, needsWeights: true })
  if (!walked) return report.findings()
  links.finish()
  const { constants, weights } = walked
  if (!('source' in weights)) return report.findings()
  for (const { key, type, shape, offset, size, at } of constants) {
    if (type.dtype !== 'string' || offset + size > weights.source.byteLength) continue
    try {
      await readStrings({ source: weights.source, start: offset, end: offset + size }, sizeOf(shape), key)
    } catch (error) {
      if (!(error instanceof TileworkError) || error.code !== 'ERR_OFFSET_RANGE') throw error
      report.broken(error.code, error.message, { path: `constants[${quote(key)}]`, offset: at })
    }
  }
  return report.findings()
}

/** The ids of layers, which are unique within a graph, and the edges between them. */
class Links {
  readonly #report: Report
  /** Ids of the layers by the index of their graph. */
  readonly #ids = new Map<number, Set<string>>()
  readonly #edges: { readonly graph: GraphScope; readonly id: string; readonly at: number }[] = []

  constructor(report: Report) {
    this.#report = report
  }

  addLayer({ graph, id, name, start }: Layer): void {
    const ids = this.#ids.get(graph.index) ?? new Set<string>()
    if (ids.size === 0) this.#ids.set(graph.index, ids)
    if (ids.has(id)) {
      const message = `The layer ${quote(name)} has the id ${quote(id)}, as another one of its graph has.`
      this.#report.deviation('ERR_DUPLICATE', message, {
        path: `${graph.path}layers[${quote(id)}]`,
        offset: start,
      })
    }
    ids.add(id)
  }

  addEdge({ graph, fromLayer, toLayer, start }: Edge): void {
    this.#edges.push({ graph, id: fromLayer.text, at: start }, { graph, id: toLayer, at: start })
  }

  finish(): void {
    for (const { graph, id, at } of this.#edges) {
      if (this.#ids.get(graph.index)?.has(id)) continue
      const message = `An edge names the layer ${quote(id)}, which its graph does not have.`
      this.#report.deviation('ERR_GRAPH', message, { path: `${graph.path}edges`, offset: at })
    }
  }
}
