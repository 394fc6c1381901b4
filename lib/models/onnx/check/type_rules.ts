/** Compares declared types of values with those that follow from inputs, initializers and operators. */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { quote } from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import { OnnxModel } from '../document/model.js'
import type { Graph, ValueType } from '../document/types.js'
import { valueTypeText } from '../document/value_type.js'
import { inferModel } from '../infer/infer.js'

/** Larger models are not inferred: objects of all their nodes would take many times the memory and time of the other rules. */
const MAX_NODES = 10_000

/**
 * Reports contradictions. Another element type or kind is an error, because runtimes refuse it; another shape is a warning,
 * which they replace by their own.
 *
 * @param nodes - number of nodes of the model, functions included
 */
export function checkTypes(
  source: ByteSource,
  files: ReadonlyMap<string, ByteSource>,
  nodes: number,
  report: Report,
): void {
  if (nodes > MAX_NODES || !source.readSync) return
  try {
    for (const { graph, name, declared, inferred } of inferModel(new OnnxModel({ source, files }))
      .conflicts) {
      const reason = graph.hasInitializer(name) ? 'is the type of its initializer' : 'follows from its node'
      const text = `${quote(name)} is declared as ${valueTypeText(declared)}; ${valueTypeText(inferred)} ${reason}.`
      const place = placeOf(graph, name)
      if (elementText(declared) === elementText(inferred)) report.note('ERR_GRAPH', text, place)
      else report.deviation('ERR_GRAPH', text, place)
    }
  } catch (error) {
    // What keeps a model from being inferred, a cycle or a broken tensor, is the matter of other rules.
    if (!(error instanceof TileworkError) || error.code === 'ERR_IO') throw error
  }
}

function elementText(type: ValueType): string {
  return 'dtype' in type ? `${type.kind} ${type.dtype}` : valueTypeText(type)
}

function placeOf(graph: Graph, name: string): { path: string; offset: number } {
  const producer = graph.producerOf(name)?.message
  if (!producer) return { path: pathOf(graph), offset: graph.message.origin?.start ?? 0 }
  return {
    path: `${pathOf(graph)}.node[${graph.message.indexOf(producer)}]`,
    offset: producer.origin?.start ?? 0,
  }
}

/** For example `graph.node[3].attribute[0].g`. */
function pathOf({ message }: Graph): string {
  const attribute = message.parent
  const node = attribute?.parent
  const outer = node?.parent
  if (!attribute || !node || !outer) return 'graph'
  const field = attribute.has('g') ? 'g' : `graphs[${attribute.indexOf(message)}]`
  return `graph.node[${outer.indexOf(node)}].attribute[${node.indexOf(attribute)}].${field}`
}
