/**
 * Extracts the part of a model between given values: the nodes that the outputs need, back to the inputs.
 *
 * The new model refers to the same ranges of the file, so only names are read.
 */
import { readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import type { NameTable } from '../../../formats/onnx/name_table.js'
import { checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import {
  FIRST_IR_WITH_FREE_INITIALIZERS,
  FORMAT_NAME,
  INITIALIZER_LISTS,
} from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import { GRAPHS } from '../document/graph.js'
import type { OnnxModel } from '../document/model.js'
import { ProtoNode } from '../document/node.js'
import { hasSubgraphs, NO_NODE, NodeNames, numberOfField } from '../document/node_names.js'
import type { Graph, InitializerField, Node, ValueType } from '../document/types.js'
import { readValueType, writeValueType } from '../document/value_type.js'
import { removeUncalledFunctions } from '../edit/function_edits.js'
import { annotatedNames, removeInitializers } from '../edit/graph_passes.js'
import { inferTypes } from '../infer/infer.js'
import { withBodiesOf } from './open_bodies.js'

/**
 * A model of the nodes between the given inputs and outputs, with the initializers, types and functions
 * that they use. Its inputs and outputs have the given order; an initializer given as an input loses its value. Training
 * graphs are omitted. This model does not change; the new one reads the same file.
 *
 * Values inside If, Loop and Scan can be given, too: an output is what the branch computes where it is taken, or the body in one
 * iteration, whose inputs have to be among the inputs.
 *
 * @param inputs - names of values; empty where the outputs depend on initializers only
 * @param outputs - names of values, at least one
 * @throws TileworkError ERR_ARGUMENT for unknown or repeated names, for an input inside a node of whose output is asked, for an input
 * whose type is not declared and does not follow, where the outputs need a graph input that is not given, and where a needed node also
 * produces one of the inputs
 */
export function extract(model: OnnxModel, inputs: readonly string[], outputs: readonly string[]): OnnxModel {
  checkModel(model, 'extract')
  const [starts, ends] = [namesOf('inputs', inputs), namesOf('outputs', outputs)]
  if (ends.length === 0) throw wrong('extract needs at least one output')
  const outer = new WholeGraph(model.graph)
  const inner = [...starts, ...ends].filter((name) => !outer.has(name))
  if (inner.length === 0) return extractFrom(model, outer, starts, ends)
  const opened = withBodiesOf(model, inner)
  const whole = new WholeGraph(opened.graph)
  for (const name of inner) if (!whole.has(name)) throw unknownValue(whole, name)
  const extracted = extractFrom(opened, whole, starts, ends)
  for (const name of starts) if (inner.includes(name)) checkIsUsed(extracted, outer, name)
  return extracted
}

function extractFrom(
  model: OnnxModel,
  whole: WholeGraph,
  starts: readonly string[],
  ends: readonly string[],
): OnnxModel {
  const part = neededPart(whole, starts, ends)
  const declared = declaredTypes(model.graph, new Set([...starts, ...ends]))
  let inferred: ReadonlyMap<string, ValueType> | undefined
  const typeAt = (name: string): ValueType | undefined => {
    const known = declared.get(name) ?? initializerType(whole, name)
    if (known && !lacksShape(known)) return known
    inferred ??= inferTypes(model)
    // Exporters declare types of values inside without shapes; readers want shapes of inputs and outputs.
    const found = inferred.get(name)
    return known && (!found || lacksShape(found)) ? known : found
  }
  const typedInputs = starts.map((name) => ({ name, type: knownType(name, typeAt(name)) }))
  const typedOutputs = ends.map((name) => ({ name, type: typeAt(name) }))
  const extracted = model.copy()
  extracted.message.clear('training_info')
  cutGraph(extracted, part, { inputs: typedInputs, outputs: typedOutputs })
  removeUncalledFunctions(extracted)
  return extracted
}

/** Names of a graph, of which no message is remembered: most are read once. */
class WholeGraph {
  readonly graph: Graph
  readonly names: NodeNames
  readonly initializers: ReadonlyMap<string, InitializerField>
  readonly #producers: Int32Array

  constructor(graph: Graph) {
    this.graph = graph
    this.names = new NodeNames(this.nodes())
    this.#producers = producersOf(this.names)
    const fields = INITIALIZER_LISTS.flatMap((list) => graph.initializerFields(list))
    // The first of equal names wins.
    this.initializers = new Map(fields.reverse().map((each) => [each.name, each]))
  }

  *nodes(): Generator<Node> {
    for (const field of this.graph.message.eachOf('node')) yield ProtoNode.of(field as Message, GRAPHS)
  }

  has(name: string): boolean {
    const isProduced = this.producerOf(this.names.table.find(name)) !== NO_NODE
    return isProduced || this.graph.inputNames.has(name) || this.initializers.has(name)
  }

  /** The first node with a name among its outputs, or `NO_NODE`. @param name - its number; -1 for none */
  producerOf(name: number): number {
    // Names of the caller are added to the table later.
    return this.#producers[name] ?? NO_NODE
  }
}

function producersOf({ table, made }: NodeNames): Int32Array {
  const producers = new Int32Array(table.length).fill(NO_NODE)
  for (let node = made.length - 1; node >= 0; node--)
    for (let at = made.start(node); at < made.end(node); at++) producers[made.at(at)] = node
  return producers
}

/** Reads the caller's list once: a getter may return another value the next time. */
function namesOf(list: string, given: readonly string[]): readonly string[] {
  const what = `The ${list} of extract`
  const names = readInput(what, () => [...checkTexts(what, given)])
  const seen = new Set<string>()
  for (const name of checkTexts(what, names)) {
    if (seen.has(name)) throw wrong(`${valueText(name)} occurs twice among the ${list}`)
    seen.add(name)
  }
  return names
}

function unknownValue({ graph }: WholeGraph, name: string): TileworkError {
  const known = graph.values().map((value) => value.name)
  const message = `The graph has no value ${valueText(name)}${nearestText(name, known)}`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

/** An input inside a branch or a body changes nothing of an output of the node itself. */
function checkIsUsed({ graph }: OnnxModel, outer: WholeGraph, name: string): void {
  if (graph.usesOf(name).length > 0 || graph.outputNames.has(name)) return
  for (const node of outer.nodes()) {
    if (!hasSubgraphs(node)) continue
    const inside = node.subgraphs.flatMap((each) => [each, ...each.subgraphs()])
    if (!inside.some((each) => each.value(name) !== undefined)) continue
    const title = `the node ${valueText(node.name)} (${node.opType})`
    throw wrong(`The input ${valueText(name)} is inside ${title}; the outputs must be values inside it, too`)
  }
}

interface End {
  readonly name: string
  /** Absent for an output without a declared type. */
  readonly type: ValueType | undefined
}

/** Marks by the index of a node, and by the number of a name in the table. */
interface Part {
  readonly table: NameTable
  /** Nodes that the outputs depend on. */
  readonly nodes: Uint8Array
  /** Names that these use or produce, and the names of inputs and outputs. */
  readonly names: Uint8Array
  /** Names that these produce. */
  readonly produced: Uint8Array
}

function neededPart(whole: WholeGraph, inputs: readonly string[], outputs: readonly string[]): Part {
  const { table, used, made } = whole.names
  const waiting = outputs.map((name) => table.numberOfText(name))
  const cuts = inputs.map((name) => table.numberOfText(name))
  const nodes = new Uint8Array(made.length)
  const [isInput, names, produced] = [0, 1, 2].map(() => new Uint8Array(table.length)) as Marks
  for (const name of cuts) isInput[name] = names[name] = 1
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (names[name] === 1) continue
    names[name] = 1
    const producer = whole.producerOf(name)
    if (producer === NO_NODE) checkIsThere(whole, table.text(name))
    else if (nodes[producer] === 0) {
      nodes[producer] = 1
      for (let at = made.start(producer); at < made.end(producer); at++) {
        const output = made.at(at)
        if (isInput[output] === 1) throw producesInput(whole, producer, table.text(output))
        produced[output] = 1
      }
      for (let at = used.start(producer); at < used.end(producer); at++) waiting.push(used.at(at))
    }
  }
  for (const [name, mark] of produced.entries()) if (mark === 1) names[name] = 1
  return { table, nodes, names, produced }
}

type Marks = [Uint8Array, Uint8Array, Uint8Array]

function checkIsThere({ graph, initializers }: WholeGraph, name: string): void {
  if (initializers.has(name)) return
  const what = graph.inputNames.has(name) ? 'an input of the graph' : 'an undefined value'
  throw wrong(`The outputs need ${valueText(name)}, ${what}, which is not among the inputs`)
}

/** An input that a needed node produces would be defined twice. */
function producesInput(whole: WholeGraph, index: number, output: string): TileworkError {
  const { name, opType } = [...whole.nodes()][index]!
  const message = `The node ${valueText(name)} (${opType}) is needed and produces ${valueText(output)}, which is among the inputs`
  return wrong(message)
}

/** The declared types of some values; inputs win over outputs, outputs over `value_info`. */
function declaredTypes({ message }: Graph, wanted: ReadonlySet<string>): ReadonlyMap<string, ValueType> {
  const found = new Map<string, Message>()
  for (const list of ['value_info', 'output', 'input'])
    for (const field of message.eachOf(list)) {
      const name = (field as Message).text('name')
      if (wanted.has(name)) found.set(name, field as Message)
    }
  const types = [...found].map(
    ([name, value]) => [name, readValueType(value.message('type', false))] as const,
  )
  return new Map(types.filter(([, { kind }]) => kind !== 'none'))
}

function lacksShape(type: ValueType): boolean {
  return (type.kind === 'tensor' || type.kind === 'sparse') && type.shape === undefined
}

function initializerType({ initializers }: WholeGraph, name: string): ValueType | undefined {
  const found = initializers.get(name)
  if (!found) return undefined
  const { kind, dtype, shape } = tensorOfField(found.field)
  return { kind: kind === 'sparse' ? 'sparse' : 'tensor', dtype, shape }
}

function knownType(name: string, type: ValueType | undefined): ValueType {
  if (type) return type
  throw wrong(`The type of ${valueText(name)} is not declared; set it with setType`)
}

/** Removes from a copied graph everything outside of the part. */
function cutGraph(
  model: OnnxModel,
  { table, nodes, names, produced }: Part,
  { inputs, outputs }: { readonly inputs: readonly End[]; readonly outputs: readonly End[] },
): void {
  const { graph } = model
  const { message } = graph
  const inputNames = new Set(inputs.map(({ name }) => name))
  const ends = new Set([...inputNames, ...outputs.map(({ name }) => name)])
  const declared = declarationsOf(message)
  const oldInputs = message.messages('input').map((value) => value.text('name'))
  const isOf = (marks: Uint8Array, name: string): boolean => marks[table.find(name)] === 1
  const isEnd = new Uint8Array(table.length)
  for (const name of ends) isEnd[table.find(name)] = 1
  const typed = new Uint8Array(table.length)
  message.filter('value_info', (field) => {
    const value = field as Message
    const name = numberOfField(table, value, 'name')
    if (isEnd[name] === 1) {
      const text = value.text('name')
      if (!declared.has(text)) declared.set(text, value)
      return false
    }
    if (names[name] === 1) typed[name] = 1
    return names[name] === 1
  })
  message.filter('node', (_, index) => nodes[index] === 1)
  message.filter('quantization_annotation', (field) => isOf(names, (field as Message).text('tensor_name')))
  message.clear('input')
  message.clear('output')
  // Initializers named by a remaining quantization annotation stay.
  const annotated = new Set(annotatedNames(graph))
  removeInitializers(graph, (name) => (inputNames.has(name) || !isOf(names, name)) && !annotated.has(name))
  // Before IR version 4 every initializer is an input as well.
  const isOld = Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS
  const others = isOld ? oldInputs.filter((name) => graph.hasInitializer(name)) : []
  for (const { name, type } of inputs) declare(message, 'input', name, declared.get(name), type)
  for (const name of others) declare(message, 'input', name, declared.get(name))
  for (const { name, type } of outputs) declare(message, 'output', name, declared.get(name), type)
  // An output of the whole model is declared there only; as an intermediate value it needs a value_info.
  for (const [name, value] of declared)
    if (isOf(produced, name) && !ends.has(name) && !isOf(typed, name)) message.adopt('value_info', value)
}

/** Inputs and outputs by name. */
function declarationsOf(graph: Message): Map<string, Message> {
  const lists = ['output', 'input'].flatMap((list) => graph.messages(list))
  return new Map(lists.map((value) => [value.text('name'), value]))
}

/** Declares an input or output with a copy of the declaration in the whole graph. */
function declare(
  graph: Message,
  list: 'input' | 'output',
  name: string,
  declared: Message | undefined,
  type?: ValueType,
): void {
  const value = declared ? graph.adopt(list, declared) : graph.insert(list)
  if (!declared) value.setText('name', name)
  const old = readValueType(value.message('type', false))
  if (!type || (old.kind !== 'none' && (!lacksShape(old) || lacksShape(type)))) return
  value.clear('type')
  writeValueType(value, 'type', type)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`, { format: FORMAT_NAME })
}
