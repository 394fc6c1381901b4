/** Compares declared types of values with those that follow from inputs, initializers and operators. */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { quote } from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import { OnnxModel } from '../document/model.js'
import { valueTypeText } from '../document/value_type.js'
import { inferModel, type TypeConflict } from '../infer/infer.js'
import { NodeProblems, type Problem, pathOf } from './node_problems.js'

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
    const all = problemsOf(model, false)
    if (all.size === 0) return
    // What readers do not see fails in a run, not before.
    const refused = problemsOf(model, true)
    for (const [key, { text, place }] of new Map([...all, ...refused]))
      if (refused.has(key)) report.deviation('ERR_GRAPH', text, place)
      else report.note('ERR_GRAPH', text, place)
  } catch (error) {
    // What keeps a model from being inferred, a cycle or a broken tensor, is the matter of other rules.
    if (!(error instanceof TileworkError) || error.code === 'ERR_IO') throw error
  }
}

/**
 * By what they are about: the path of a node, or of a graph with the name of a value.
 *
 * @param isReader - whether to know no more than readers do, which do not compute elements either
 */
function problemsOf(model: OnnxModel, isReader: boolean): Map<string, Problem> {
  const nodes = new NodeProblems(isReader)
  const { conflicts } = inferModel(model, {
    visit: (node, outputs) => nodes.visit(node, outputs),
    computesValues: !isReader,
  })
  const problems = new Map<string, Problem>()
  for (const problem of nodes.problems()) problems.set(problem.place.path, problem)
  for (const conflict of conflicts) {
    const problem = conflictProblem(conflict)
    problems.set(`${problem.place.path} ${conflict.name}`, problem)
  }
  return problems
}

function conflictProblem({ graph, name, declared, inferred }: TypeConflict): Problem {
  const node = graph.producerOf(name)
  const reason = node
    ? 'follows from its node'
    : graph.hasInitializer(name)
      ? 'is the type of its initializer'
      : 'is passed to it'
  const text = `${quote(name)} is declared as ${valueTypeText(declared)}; ${valueTypeText(inferred)} ${reason}.`
  const message = node?.message ?? graph.message
  return { text, place: { path: pathOf(message), offset: message.origin?.start ?? 0 } }
}
