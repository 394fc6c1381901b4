/**
 * Passes over a graph and its subgraphs that keep its results: dead code elimination, conversion between `Constant` nodes
 * and initializers, deduplication of initializers.
 */
import { createHash } from 'node:crypto'
import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import type { NameTable } from '../../../formats/onnx/name_table.js'
import { checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import {
  FIRST_IR_WITH_FREE_INITIALIZERS,
  FORMAT_NAME,
  INITIALIZER_LISTS,
} from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { StrippedTensor } from '../../../formats/onnx/tensor/stripped.js'
import { eachRawString } from '../../../tensor/raw_strings.js'
import type { DenseTensor, StringTensor, Tensor } from '../../../tensor/tensor.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { hasSubgraphs, isKnownFlat, nodeNamesOf, numbersOfField } from '../document/node_names.js'
import { sortedNodes } from '../document/node_order.js'
import type { Graph, Node } from '../document/types.js'
import { constantOf } from '../document/value.js'

/** Number of removed objects, in the graph and its subgraphs. */
interface Removed {
  readonly nodes: number
  readonly initializers: number
}

/**
 * Sorts the nodes of one graph so that each follows the producers of its inputs. The order is stable.
 *
 * @returns false where they were sorted
 * @throws TileworkError ERR_GRAPH for a cycle of nodes
 */
export function sortNodes(graph: Graph): boolean {
  const { message, nodes } = graph
  const order = sortedNodes(nodes, nodeNamesOf(graph))
  if (order.every((from, to) => from === to)) return false
  const fields = message.fieldsOf('node')
  message.reorder(
    'node',
    order.map((index) => fields[index]!),
  )
  return true
}

/**
 * Removes nodes and initializers that no output depends on, and types of values that are gone. Inputs and nodes without
 * outputs stay.
 *
 * @throws TileworkError ERR_UNSUPPORTED for a model with training graphs, which use names of this graph
 */
export function removeUnused(graph: Graph): Removed {
  refuseTraining(graph)
  const { message } = graph
  const all = graph.nodes
  const inner = isKnownFlat(message)
    ? []
    : all.flatMap((node) => (hasSubgraphs(node) ? node.subgraphs.map(removeUnused) : []))
  const inputs = new Set(message.messages('input').map((value) => value.text('name')))
  const { names, isNeededName, isNeededNode } = neededParts(graph, all)
  const isNeeded = (number: number): boolean => isNeededName[number] === 1
  const nodes = isNeededNode.includes(0) ? message.filter('node', (_, index) => isNeededNode[index] === 1) : 0
  const initializers = removeInitializers(graph, (name) => !isNeeded(names.find(name)) && !inputs.has(name))
  const typed = numbersOfField(names, message, 'value_info', 'name')
  if (!typed.every(isNeeded)) message.filter('value_info', (_, index) => isNeeded(typed.at(index)))
  return {
    nodes: inner.reduce((sum, each) => sum + each.nodes, nodes),
    initializers: inner.reduce((sum, each) => sum + each.initializers, initializers),
  }
}

/** @returns the number of removed initializers */
export function removeInitializers(graph: Graph, isGone: (name: string) => boolean): number {
  const gone = INITIALIZER_LISTS.map((list) => {
    const fields = graph.initializerFields(list)
    return graph.message.filter(list, (_, index) => !isGone(fields[index]!.name))
  })
  return gone.reduce((sum, count) => sum + count)
}

/** Marks by the number of a name in the table, and by the index of a node. */
interface Needed {
  readonly names: NameTable
  readonly isNeededName: Uint8Array
  readonly isNeededNode: Uint8Array
}

/**
 * What outputs of the graph and nodes without outputs depend on. The purpose of the latter is unknown, so they stay. Of
 * several nodes with the same output, all are needed.
 */
function neededParts(graph: Graph, all: readonly Node[]): Needed {
  const { table, used, made } = nodeNamesOf(graph)
  const ends = graph.message.messages('output').map((value) => value.text('name'))
  const waiting: number[] = []
  const first = [...annotatedNames(graph), ...ends].map((name) => table.numberOfText(name))
  const isNeededName = new Uint8Array(table.length)
  const isNeededNode = new Uint8Array(all.length)
  const producers = made.inverted(table.length)
  const needName = (name: number): void => {
    if (isNeededName[name] === 1) return
    isNeededName[name] = 1
    waiting.push(name)
  }
  const need = (node: number): void => {
    isNeededNode[node] = 1
    for (let at = made.start(node); at < made.end(node); at++) needName(made.at(at))
    for (let at = used.start(node); at < used.end(node); at++) needName(used.at(at))
  }
  for (const name of first) needName(name)
  for (let node = 0; node < all.length; node++) if (made.start(node) === made.end(node)) need(node)
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop())
    for (let at = producers.starts[name]!; at < producers.starts[name + 1]!; at++) {
      const node = producers.lists[at]!
      if (isNeededNode[node] === 0) need(node)
    }
  return { names: table, isNeededName, isNeededNode }
}

/** Values with quantization annotations: equal bits may have different scales. */
export function valuesWithAnnotations({ message }: Graph): string[] {
  return message.messages('quantization_annotation').map((annotation) => annotation.text('tensor_name'))
}

/** Tensors of quantization parameters, which need no node as a user. */
export function annotatedNames({ message }: Graph): string[] {
  return message
    .messages('quantization_annotation')
    .flatMap((annotation) => annotation.messages('quant_parameter_tensor_names'))
    .map((entry) => entry.text('value'))
}

/**
 * Turns `Constant` nodes into initializers, except constants of strings that are not tensors.
 *
 * @returns number of converted nodes
 * @throws TileworkError ERR_UNSUPPORTED below IR version 4, where every initializer is an input as well
 * @param isKept - names of values whose node stays
 */
export function constantsToInitializers(
  graph: Graph,
  isKept: (graph: Graph, name: string) => boolean = () => false,
): number {
  const version = Number(modelOf(graph.message)?.int('ir_version') ?? 0)
  if (version < FIRST_IR_WITH_FREE_INITIALIZERS) {
    const message = `The IR version is ${version}; initializers that are not inputs need ${FIRST_IR_WITH_FREE_INITIALIZERS}.`
    throw new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
  }
  const { message } = graph
  const { operators, hasSubgraphs: isNested } = nodeNamesOf(graph)
  if (!isNested && operators.find('Constant') < 0) return 0
  const inner = graph.nodes.flatMap((node) =>
    hasSubgraphs(node) ? node.subgraphs.map((each) => constantsToInitializers(each, isKept)) : [],
  )
  const taken = new Set([...graph.inputNames, ...graph.initializerNames])
  const constants = graph.nodes.flatMap((node) => {
    const value = node.opType === 'Constant' ? constantOf(node) : undefined
    const name = node.outputs[0]!
    // A name that is defined twice stays a node: two initializers of one name would hide the fault and lose a value.
    if (!value || taken.has(name) || isKept(graph, name)) return []
    taken.add(name)
    return [{ field: node.message, name, value }]
  })
  const gone = new Set<MessageField>(constants.map(({ field }) => field))
  message.filter('node', (field) => !gone.has(field))
  for (const list of ['initializer', 'sparse_initializer'] as const) {
    const isOfList = ({ value }: { value: Tensor }) =>
      (value.kind === 'sparse') === (list === 'sparse_initializer')
    const added = constants.filter(isOfList)
    message.putTensors(
      list,
      added.map(({ value, name }) => ({ tensor: value, name })),
    )
  }
  return inner.reduce((sum, count) => sum + count, constants.length)
}

/**
 * Turns dense initializers of the main graph that are not inputs into `Constant` nodes at its start.
 *
 * @param names - default: all
 * @returns number of converted initializers
 * @throws TileworkError ERR_ARGUMENT for anything but a list of names
 */
export function initializersToConstants(model: OnnxModel, names?: readonly string[]): number {
  checkModel(model, 'initializersToConstants')
  if (names !== undefined) checkTexts('initializersToConstants', names)
  const { graph } = model
  const { message } = graph
  const wanted = names && new Set(names)
  const taken = new Set([...graph.inputNames, ...graph.nodes.flatMap(({ outputs }) => outputs)])
  const chosen = graph
    .initializerFields('initializer')
    .filter(({ name }) => wanted?.has(name) ?? true)
    .filter(({ name }) => name !== '' && !taken.has(name) && taken.add(name) !== undefined)
    .map(({ name, field }) => ({ name, field, value: tensorOfField(field) }))
    .filter(({ value }) => value.hasData)
  const gone = new Set(chosen.map(({ field }) => field))
  message.filter('initializer', (field) => !gone.has(field))
  message.insertAll('node', chosen.length, 0)
  const { nodes } = graph
  for (const [at, { name, value }] of chosen.entries()) {
    const node = nodes[at]!
    node.outputs = [name]
    node.opType = 'Constant'
    node.setAttribute('value', { type: 'TENSOR', value })
  }
  return chosen.length
}

/**
 * Keeps one of several initializers with equal dtype, shape and bits (so -0 differs from 0), or equal strings. Sparse ones,
 * and those that are inputs or outputs of the graph, stay. Reads the values.
 *
 * @returns number of removed initializers
 * @throws TileworkError as `removeUnused`, and errors of reading tensors
 */
export async function deduplicateInitializers(graph: Graph): Promise<number> {
  refuseTraining(graph)
  const fixed = namesToKeep(graph)
  const hidden = namesInside(graph)
  const { message } = graph
  const kept = new Map<string, string>()
  const renamed = new Map<string, string>()
  const removed = new Set<MessageField>()
  for (const group of await groupsToCompare(graph)) {
    for (const { name, field, tensor } of group) {
      if (fixed.has(name)) continue
      const key = `${keyOf(tensor)} ${await digestOf(tensor)}`
      const first = kept.get(key)
      // A subgraph that defines the name would hide the kept initializer from its users there.
      if (first === undefined) {
        if (!hidden.has(name)) kept.set(key, name)
      } else {
        renamed.set(name, first)
        removed.add(field)
      }
    }
  }
  renameUses(graph, renamed)
  message.filter('initializer', (field) => !removed.has(field))
  return removed.size
}

interface Candidate {
  readonly name: string
  readonly field: MessageField
  readonly tensor: DenseTensor | StringTensor
}

/** Groups of two or more initializers with equal dtype, shape and layout; no others are read. */
async function groupsToCompare(graph: Graph): Promise<readonly Candidate[][]> {
  const groups = new Map<string, Candidate[]>()
  for (const { name, field } of graph.initializerFields('initializer')) {
    const tensor = tensorOfField(field)
    if (tensor.kind === 'sparse' || !tensor.hasData) continue
    const key = keyOf(tensor)
    const group = groups.get(key)
    if (group) group.push({ name, field, tensor })
    else groups.set(key, [{ name, field, tensor }])
  }
  return [...groups.values()].filter(({ length }) => length > 1)
}

function keyOf(tensor: DenseTensor | StringTensor): string {
  const { dtype, shape } = tensor
  return `${dtype} ${shape} ${tensor.kind === 'dense' ? tensor.storage.layout : ''}`
}

/** Bytes hashed at a time. */
const WINDOW_BYTES = 1024 * 1024

async function digestOf(tensor: DenseTensor | StringTensor): Promise<string> {
  const hash = createHash('sha256')
  if (tensor.kind === 'string') {
    // With lengths, so that ["ab", "c"] differs from ["a", "bc"].
    for (const text of await eachRawString(tensor)) hash.update(`${text.byteLength} `).update(text)
    return hash.digest('hex')
  }
  const { byteLength } = tensor.storage
  const window = new Uint8Array(Math.min(WINDOW_BYTES, byteLength))
  for (let start = 0; start < byteLength; start += WINDOW_BYTES) {
    const bytes = window.subarray(0, Math.min(WINDOW_BYTES, byteLength - start))
    await tensor.copyTo(bytes, { start })
    hash.update(bytes)
  }
  return hash.digest('hex')
}

/** Makes nodes of the graph and its subgraphs use other values. Outputs of a main graph stay. */
export function renameUses(graph: Graph, names: ReadonlyMap<string, string>): void {
  if (names.size === 0) return
  for (const node of graph.nodes) renameInputs(node, names)
  // Outputs of a subgraph are matched by position, so they may be renamed; those of a main graph may not.
  if (graph.message.parent?.type !== 'AttributeProto') return
  for (const output of graph.message.messages('output')) {
    const other = names.get(output.text('name'))
    if (other !== undefined) output.setText('name', other)
  }
}

/** Makes a node, and graphs inside it, use other values. */
export function renameInputs(node: Node, names: ReadonlyMap<string, string>): void {
  const { inputs } = node
  if (inputs.some((name) => names.has(name))) node.inputs = inputs.map((name) => names.get(name) ?? name)
  if (!hasSubgraphs(node)) return
  for (const inside of node.subgraphs) {
    const own = definedNames(inside)
    renameUses(inside, new Map([...names].filter(([name]) => !own.has(name))))
  }
}

/** Names of inputs, initializers and outputs of nodes. */
export function definedNames(graph: Graph): ReadonlySet<string> {
  const outputs = graph.nodes.flatMap((node) => node.outputs)
  return new Set([...graph.inputs.map(({ name }) => name), ...graph.initializerNames, ...outputs])
}

/** Names that subgraphs define: in them such a name is not that of an outer value. */
export function namesInside(graph: Graph): ReadonlySet<string> {
  return new Set([...graph.subgraphs()].flatMap((inside) => [...definedNames(inside)]))
}

/** Names that a caller or an annotation refers to, so that they stay: inputs, outputs, annotated values. */
export function namesToKeep(graph: Graph): ReadonlySet<string> {
  const ends = [...graph.inputs, ...graph.outputs].map(({ name }) => name)
  return new Set([...ends, ...annotatedNames(graph), ...valuesWithAnnotations(graph)])
}

/** Training graphs refer to values of the main graph by name. */
export function refuseTraining({ message }: Graph): void {
  if (modelOf(message)?.has('training_info') !== true) return
  const text = 'The model has training graphs, which may use values of this graph.'
  throw new TileworkError('ERR_UNSUPPORTED', text, { format: FORMAT_NAME })
}

function modelOf(message: Message): Message | undefined {
  let model: Message | undefined = message
  while (model && model.type !== 'ModelProto') model = model.parent
  return model
}

/** Types of shapes, axes, indices and conditions, without which a graph has no shapes. */
const STRUCTURAL: ReadonlySet<Dtype> = new Set(['int32', 'int64', 'bool'])

/**
 * Removes the values of dense initializers and keeps their types and shapes, as in model files for benchmarks; also in
 * subgraphs. Initializers of int32, int64 and bool stay, because they hold shapes, axes and conditions.
 *
 * @returns number of initializers without values
 * @throws TileworkError ERR_ARGUMENT
 */
export function stripWeights(model: OnnxModel): number {
  checkModel(model, 'stripWeights')
  return [model.graph, ...model.graph.subgraphs()].reduce((sum, graph) => sum + stripGraph(graph), 0)
}

function stripGraph(graph: Graph): number {
  const { message } = graph
  let count = 0
  for (const { field, name } of graph.initializerFields('initializer')) {
    const tensor = tensorOfField(field)
    if (tensor.kind !== 'dense' || !tensor.hasData || STRUCTURAL.has(tensor.dtype)) continue
    message.putTensor('initializer', new StrippedTensor(tensor), name, field)
    count++
  }
  return count
}
