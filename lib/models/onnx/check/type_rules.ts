/** Compares declared types of values with those that follow from inputs, initializers and operators. */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { quote } from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import { OnnxModel } from '../document/model.js'
import { valueTypeText } from '../document/value_type.js'
import { inferModel, type TypeConflict } from '../infer/infer.js'
import { NodeProblems, pathOf } from './node_problems.js'

/** Larger models are not inferred: objects of all their nodes would take many times the memory and time of the other rules. */
const MAX_NODES = 10_000

/**
 * Reports contradictions, and nodes whose operators do not take the types or shapes of their inputs.
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
    const model = new OnnxModel({ source, files })
    const problems = new NodeProblems()
    const { conflicts } = inferModel(model, { visit: (node, outputs) => problems.visit(node, outputs) })
    problems.report(report)
    for (const conflict of conflicts) reportConflict(conflict, problems, report)
  } catch (error) {
    // What keeps a model from being inferred, a cycle or a broken tensor, is the matter of other rules.
    if (!(error instanceof TileworkError) || error.code === 'ERR_IO') throw error
  }
}

function reportConflict(conflict: TypeConflict, problems: NodeProblems, report: Report): void {
  const { graph, name, declared, inferred } = conflict
  const node = graph.producerOf(name)
  const reason = node ? 'follows from its node' : 'is the type of its initializer'
  const text = `${quote(name)} is declared as ${valueTypeText(declared)}; ${valueTypeText(inferred)} ${reason}.`
  const message = node?.message ?? graph.message
  const place = { path: pathOf(message), offset: message.origin?.start ?? 0 }
  // Where readers infer less, such a model loads; a run gives another shape than the declared one.
  if (node && !problems.isRefused(node, conflict)) report.note('ERR_GRAPH', text, place)
  else report.deviation('ERR_GRAPH', text, place)
}
