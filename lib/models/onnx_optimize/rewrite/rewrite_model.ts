/** Runs rules on a model and on the bodies of its functions. */
import type { OnnxModel } from '../../onnx/document/model.js'
import { type Body, functionBodies } from './functions.js'
import type { RewriteNode } from './rewrite_graph.js'
import { type NodeRule, Rewriter } from './rewriter.js'

/**
 * Applies rules until none applies. The model is written when all have run, so an error changes nothing.
 *
 * @param rulesOf - the rules for the model, or for the body of a function
 * @param note - is called for each node that a rule replaces, before it goes
 * @throws TileworkError ERR_LIMIT for rules without an end; ERR_GRAPH for a cycle of nodes; what rules throw
 */
export function rewriteModel(
  model: OnnxModel,
  rulesOf: (body: Body) => readonly NodeRule[],
  note: (rule: NodeRule, node: RewriteNode) => void,
): void {
  const rewriters = [{ rewriter: new Rewriter(model, true), takeBack: undefined, body: model as Body }]
  const all = [
    ...rewriters,
    ...[...functionBodies(model)].map(({ body, takeBack }) => ({
      rewriter: new Rewriter(body, false),
      takeBack,
      body,
    })),
  ]
  for (const { rewriter, body } of all) rewriter.run(rulesOf(body), note)
  for (const { rewriter, takeBack } of all) if (rewriter.write()) takeBack?.()
}
