/** Collects what is wrong with the types and shapes of nodes while a model is inferred. */

import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { quote } from '../../../formats/onnx/schema.js'
import type { Place } from '../../../formats/report.js'
import type { Known, NodeView } from '../infer/node_view.js'
import { type Schema, schemaAt } from '../schemas/schemas.js'
import { extentProblem } from './extents/extents.js'
import { asReadersInfer, hasOpenReference } from './reader_inference.js'
import { typeProblems } from './type_constraints.js'

/** What is wrong with a node or a declared type. */
export interface Problem {
  readonly text: string
  readonly place: Place
}

export class NodeProblems {
  readonly #texts = new Map<Message, Set<string>>()
  readonly #isReader: boolean

  /** @param isReader - whether to know no more than readers do */
  constructor(isReader: boolean) {
    this.#isReader = isReader
  }

  /** See `InferOptions.visit`. */
  visit(node: NodeView, outputs: readonly (Known | undefined)[]): readonly (Known | undefined)[] {
    const schema = schemaAt(node.domain, node.opType, node.opset)
    if (schema && !schema.isDeprecated) this.#compare(node, outputs, schema)
    return this.#isReader ? asReadersInfer(node, schema, outputs) : outputs
  }

  #compare(node: NodeView, outputs: readonly (Known | undefined)[], schema: Schema): void {
    const { message, graph } = node.node
    // A body of a loop is visited until its types are stable: the last visit counts. Functions have many callers.
    const texts = graph ? new Set<string>() : (this.#texts.get(message) ?? new Set<string>())
    for (const text of typeProblems(node, outputs, schema)) texts.add(text)
    // Dimensions of values of other types mean nothing.
    const extents =
      texts.size === 0 && schema.isInferred && !hasOpenReference(node)
        ? extentProblem(node, schema)
        : undefined
    if (extents !== undefined) texts.add(extents)
    if (texts.size > 0) this.#texts.set(message, texts)
    else this.#texts.delete(message)
  }

  *problems(): Generator<Problem> {
    for (const [message, texts] of this.#texts) {
      const path = pathOf(message)
      const place = { path, offset: message.origin?.start ?? 0 }
      const operator = quote(message.text('op_type')).slice(1, -1)
      yield { text: `${path} (${operator}) ${[...texts].join('; it ')}.`, place }
    }
  }
}

/** Path of a node or graph in the file, for example `graph.node[3].attribute[0].g`. */
export function pathOf(message: Message): string {
  const steps: string[] = []
  for (let each: Message | undefined = message; each?.parent; each = each.parent) {
    const { parent } = each
    const field = FIELDS[`${parent.type}.${each.type}`] ?? ''
    const isOne = field === 'graph' || (field === 'graphs' && parent.has('g'))
    steps.unshift(field === 'graphs' && isOne ? 'g' : isOne ? field : `${field}[${parent.indexOf(each)}]`)
  }
  return steps.join('.')
}

/** The field that holds a message on the way from a model to a node. */
const FIELDS: Readonly<Record<string, string>> = {
  'ModelProto.GraphProto': 'graph',
  'ModelProto.FunctionProto': 'functions',
  'GraphProto.NodeProto': 'node',
  'FunctionProto.NodeProto': 'node',
  'NodeProto.AttributeProto': 'attribute',
  'AttributeProto.GraphProto': 'graphs',
}
