/** Collects what is wrong with the types and shapes of nodes while a model is inferred. */

import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { quote } from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import type { Node } from '../document/types.js'
import { dimsOf } from '../infer/dims.js'
import type { TypeConflict } from '../infer/infer.js'
import type { Known, NodeView } from '../infer/node_view.js'
import { type Schema, schemaAt } from '../schemas/schemas.js'
import { isShapeCompared, isTypeCompared } from './declared_shapes.js'
import { extentProblem } from './extents/extents.js'
import { elementText, typeProblems } from './type_constraints.js'

export class NodeProblems {
  readonly #texts = new Map<Message, Set<string>>()
  /** Schemas of nodes that were visited, those of unknown operators undefined. */
  readonly #schemas = new Map<Message, Schema | undefined>()

  /** See `InferOptions.visit`. */
  visit(node: NodeView, outputs: readonly (Known | undefined)[]): void {
    const schema = schemaAt(node.domain, node.opType, node.opset)
    const { message, graph } = node.node
    this.#schemas.set(message, schema)
    if (!schema || schema.isDeprecated) return
    // A body of a loop is visited until its types are stable: the last visit counts. Functions have many callers.
    const texts = graph ? new Set<string>() : (this.#texts.get(message) ?? new Set<string>())
    for (const text of typeProblems(node, outputs, schema)) texts.add(text)
    // Dimensions of values of other types mean nothing.
    const extents = texts.size === 0 && schema.isInferred ? extentProblem(node, schema) : undefined
    if (extents !== undefined) texts.add(extents)
    if (texts.size > 0) this.#texts.set(message, texts)
    else this.#texts.delete(message)
  }

  /** Whether readers refuse a declared type for what they infer from the node. */
  isRefused(node: Node, { name, declared, inferred }: TypeConflict): boolean {
    const producer = { node, schema: this.#schemas.get(node.message) }
    if (elementText(declared) !== elementText(inferred)) return isTypeCompared(producer)
    const dims = inferred.kind === 'tensor' ? dimsOf(inferred.shape) : undefined
    return dims === undefined || isShapeCompared(producer, node.outputs.indexOf(name), dims)
  }

  report(report: Report): void {
    for (const [message, texts] of this.#texts) {
      const path = pathOf(message)
      const place = { path, offset: message.origin?.start ?? 0 }
      const operator = quote(message.text('op_type')).slice(1, -1)
      for (const text of texts) report.deviation('ERR_GRAPH', `${path} (${operator}) ${text}.`, place)
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
