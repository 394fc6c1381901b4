/**
 * Runs passes on the bodies of functions. A body has nodes, inputs and outputs as a graph has, and neither initializers nor types of
 * its inputs, so the passes that need those leave it alone.
 */

import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { Graph } from '../../onnx/document/graph.js'
import type { OnnxModel } from '../../onnx/document/model.js'
import type { ModelFunction } from '../../onnx/document/model_function.js'

/** Lists that a function and a graph have. */
const LISTS = ['node', 'value_info'] as const

/** What bodies of functions and whole models have in common. */
export type Body = Pick<OnnxModel, 'graph' | 'functions' | 'irVersion' | 'opsetImports'>

type Run = (body: Body) => number | Promise<number>

/** A body of a function as a graph of its own, and what puts it back. */
interface FunctionBody {
  readonly body: Body
  readonly takeBack: () => void
}

export function* functionBodies(model: OnnxModel): Generator<FunctionBody> {
  const { functions, irVersion } = model
  for (const each of functions) {
    const graph = graphOf(each)
    const body = { graph, functions, irVersion, opsetImports: each.opsetImports }
    yield { body, takeBack: () => takeBack(each, graph) }
  }
}

/** @returns number of changes in all functions */
export async function runInFunctions(model: OnnxModel, run: Run): Promise<number> {
  let count = 0
  for (const { body, takeBack } of functionBodies(model)) {
    const changes = await run(body)
    if (changes > 0) takeBack()
    count += changes
  }
  return count
}

/** The body as a graph of its own, whose nodes are copies. */
function graphOf(body: ModelFunction): Graph {
  const graph = Graph.create('body')
  const { message } = graph
  for (const name of body.inputs) message.insert('input').setText('name', name)
  for (const name of body.outputs) message.insert('output').setText('name', name)
  copyLists(body.message, message)
  return graph
}

function takeBack(body: ModelFunction, { message }: Graph): void {
  for (const list of LISTS) body.message.clear(list)
  copyLists(message, body.message)
  for (const end of ['input', 'output'] as const) {
    const names = message.messages(end).map((each) => each.text('name'))
    if (names.some((name, at) => name !== body.message.texts(end)[at])) body.message.setTexts(end, names)
  }
}

function copyLists(from: Message, to: Message): void {
  for (const list of LISTS) for (const each of from.messages(list)) to.adopt(list, each)
}
