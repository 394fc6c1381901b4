/**
 * Extracts the part of a model between given values: the nodes that the outputs need, back to the inputs.
 *
 * The new model refers to the same ranges of the file, so only names are read.
 */
import { readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkTexts } from '../protobuf/field_input.js'
import type { Message } from '../protobuf/message.js'
import { FORMAT_NAME } from '../schema.js'
import { type EditableModel, removeUncalledFunctions } from './function_edits.js'
import { hasSubgraphs } from './node_names.js'
import { annotatedNames, FIRST_IR_WITH_FREE_INITIALIZERS, removeInitializers } from './graph_passes.js'
import type { Graph, Node, ValueType } from './types.js'
import { writeValueType } from './value_type.js'

/** See `OnnxModel.extract`. */
export function extractModel<Model extends EditableModel>(
  model: Model & { copy(): Model; inferTypes(): ReadonlyMap<string, ValueType> },
  givenInputs: readonly string[],
  givenOutputs: readonly string[],
): Model {
  const whole = model.graph
  const inputs = endsOf(whole, 'inputs', givenInputs)
  const outputs = endsOf(whole, 'outputs', givenOutputs)
  if (outputs.length === 0) throw wrong('extract needs at least one output')
  const part = neededPart(whole, new Set(inputs), outputs)
  let inferred: ReadonlyMap<string, ValueType> | undefined
  const typeAt = (name: string): ValueType | undefined => {
    const declared = typeOf(whole, name)
    if (declared) return declared
    inferred ??= model.inferTypes()
    return inferred.get(name)
  }
  const typedInputs = inputs.map((name) => ({ name, type: knownType(name, typeAt(name)) }))
  const typedOutputs = outputs.map((name) => ({ name, type: typeAt(name) }))
  const extracted = model.copy()
  extracted.message.clear('training_info')
  cutGraph(extracted, whole.nodes, part, { inputs: typedInputs, outputs: typedOutputs })
  removeUncalledFunctions(extracted)
  return extracted
}

/** Reads the caller's list once: a getter may return another value the next time. */
function endsOf(graph: Graph, list: string, given: readonly string[]): readonly string[] {
  const what = `The ${list} of extract`
  const names = readInput(what, () => [...checkTexts(what, given)])
  const seen = new Set<string>()
  for (const name of checkTexts(what, names)) {
    if (seen.has(name)) throw wrong(`${valueText(name)} occurs twice among the ${list}`)
    seen.add(name)
    if (!graph.value(name)) {
      const known = graph.values().map((value) => value.name)
      const message = `The graph has no value ${valueText(name)}${nearestText(name, known)}`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
  }
  return names
}

interface End {
  readonly name: string
  /** Absent for an output without a declared type. */
  readonly type: ValueType | undefined
}

interface Part {
  /** Nodes that the outputs depend on. */
  readonly nodes: ReadonlySet<Node>
  /** Names that these use or produce, and the names of inputs and outputs. */
  readonly names: ReadonlySet<string>
  /** Names that these produce. */
  readonly produced: ReadonlySet<string>
}

function neededPart(graph: Graph, inputs: ReadonlySet<string>, outputs: readonly string[]): Part {
  const nodes = new Set<Node>()
  const names = new Set<string>(inputs)
  const produced = new Set<string>()
  const waiting = [...outputs]
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (names.has(name)) continue
    names.add(name)
    const producer = graph.producerOf(name)
    if (!producer) checkIsThere(graph, name)
    else if (!nodes.has(producer)) {
      const [used, made] = producer.message.textLists('input', 'output')
      refuseProduced(producer, made, inputs)
      nodes.add(producer)
      for (const each of made) produced.add(each)
      for (const each of used) if (each !== '') waiting.push(each)
      if (!hasSubgraphs(producer)) continue
      for (const graph of producer.subgraphs) for (const each of graph.outerNames()) waiting.push(each)
    }
  }
  produced.delete('')
  for (const name of produced) names.add(name)
  return { nodes, names, produced }
}

function checkIsThere(graph: Graph, name: string): void {
  if (graph.hasInitializer(name)) return
  const what = graph.inputNames.has(name) ? 'an input of the graph' : 'an undefined value'
  throw wrong(`The outputs need ${valueText(name)}, ${what}, which is not among the inputs`)
}

/** An input that a needed node produces would be defined twice. */
function refuseProduced(
  { name, opType }: Node,
  outputs: readonly string[],
  inputs: ReadonlySet<string>,
): void {
  const cut = outputs.find((output) => inputs.has(output))
  if (cut === undefined) return
  const message = `The node ${valueText(name)} (${opType}) is needed and produces ${valueText(cut)}, which is among the inputs`
  throw wrong(message)
}

/** The declared type of a value, or the type of its initializer. */
function typeOf(graph: Graph, name: string): ValueType | undefined {
  const declared = graph.typeOf(name)
  if (declared.kind !== 'none') return declared
  const tensor = graph.initializer(name)
  if (!tensor) return undefined
  return { kind: tensor.kind === 'sparse' ? 'sparse' : 'tensor', dtype: tensor.dtype, shape: tensor.shape }
}

function knownType(name: string, type: ValueType | undefined): ValueType {
  if (type) return type
  throw wrong(`The type of ${valueText(name)} is not declared; set it with setType`)
}

/**
 * Removes from a copied graph everything outside of the part.
 *
 * @param all - the nodes of the whole graph, in the order of the copy
 */
function cutGraph(
  model: EditableModel,
  all: readonly Node[],
  { nodes, names, produced }: Part,
  { inputs, outputs }: { readonly inputs: readonly End[]; readonly outputs: readonly End[] },
): void {
  const { graph } = model
  const { message } = graph
  const inputNames = new Set(inputs.map(({ name }) => name))
  const ends = new Set([...inputNames, ...outputs.map(({ name }) => name)])
  const declared = declarationsOf(message)
  const oldInputs = message.messages('input').map((value) => value.text('name'))
  const typed = new Set<string>()
  message.filter('value_info', (field) => {
    const name = (field as Message).text('name')
    if (ends.has(name) && !declared.has(name)) declared.set(name, field as Message)
    if (!names.has(name) || ends.has(name)) return false
    typed.add(name)
    return true
  })
  message.filter('node', (_, index) => nodes.has(all[index]!))
  message.filter('quantization_annotation', (field) => names.has((field as Message).text('tensor_name')))
  message.clear('input')
  message.clear('output')
  // Initializers named by a remaining quantization annotation stay.
  const annotated = new Set(annotatedNames(graph))
  removeInitializers(graph, (name) => (inputNames.has(name) || !names.has(name)) && !annotated.has(name))
  // Before IR version 4 every initializer is an input as well.
  const isOld = Number(model.irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS
  const others = isOld ? oldInputs.filter((name) => graph.hasInitializer(name)) : []
  for (const { name, type } of inputs) declare(message, 'input', name, declared.get(name), type)
  for (const name of others) declare(message, 'input', name, declared.get(name))
  for (const { name, type } of outputs) declare(message, 'output', name, declared.get(name), type)
  // An output of the whole model is declared there only; as an intermediate value it needs a value_info.
  for (const [name, value] of declared)
    if (produced.has(name) && !ends.has(name) && !typed.has(name)) message.adopt('value_info', value)
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
  if (type && !value.has('type')) writeValueType(value, 'type', type)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`, { format: FORMAT_NAME })
}
