/**
 * Merges two models: outputs of the first become inputs of the second. Messages of both are taken as they are, so values
 * are copied from file to file when the model is saved.
 */

import { TileworkError } from '../../../errors.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS, INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import { OnnxModel } from '../document/model.js'
import type { Dimension, Graph, ValueType } from '../document/types.js'
import { valueTypeText } from '../document/value_type.js'
import { keyOf } from '../edit/function_edits.js'
import { definedNames, removeUnused } from '../edit/graph_passes.js'
import { renameValues } from '../edit/rename_values.js'
import { joinFiles } from './join_files.js'
import { checkMergeOptions, type MergeOptions } from './merge_options.js'
import { addPrefix } from './prefix.js'

/** Lists of a graph that are joined. */
const GRAPH_LISTS = [
  'node',
  'initializer',
  'sparse_initializer',
  'input',
  'output',
  'value_info',
  'quantization_annotation',
] as const

/** Outputs of the first model by the inputs of the second that take them. */
type Connections = ReadonlyMap<string, string>

/**
 * A model that runs the first model and then the second, which takes outputs of the first as inputs. Both models stay as
 * they are; the new one reads their files, so it is valid while both are open. Training graphs are omitted. Of graph
 * metadata with equal keys that of the first model stays.
 *
 * @throws TileworkError ERR_ARGUMENT for unknown options, for names of `ioMap`, `inputs` and `outputs` that the models do
 * not have, for names that both models define, for different IR versions, operator sets and metadata, and for functions of
 * the same key; ERR_GRAPH for an output of another type, rank or fixed extent than the input that takes it
 */
export function mergeModels(first: OnnxModel, second: OnnxModel, options: MergeOptions = {}): OnnxModel {
  checkModel(first, 'mergeModels')
  checkModel(second, 'mergeModels')
  const given = checkMergeOptions(options)
  const { prefix1 = '', prefix2 = '' } = given
  const [merged, added] = [first.copy(), second.copy()]
  merged.message.clear('training_info')
  added.message.clear('training_info')
  addPrefix(merged, prefix1)
  addPrefix(added, prefix2)
  const pairs = (given.ioMap ?? []).map(([output, input]) => [prefix1 + output, prefix2 + input] as const)
  const connections = connect(merged.graph, added.graph, pairs)
  joinImports(merged, added)
  joinMetadata(merged, added)
  joinFunctions(merged, added)
  joinDevices(merged, added)
  describe(merged, added, given)
  const files = joinFiles(first.file, second.file, added.message)
  joinGraphs(merged.graph, added.graph, connections)
  chooseEnds(merged, given, connections, added.graph.outputs.length)
  return new OnnxModel({ message: merged.message, file: { ...merged.file, files } })
}

function connect(first: Graph, second: Graph, pairs: readonly (readonly [string, string])[]): Connections {
  const connections = new Map<string, string>()
  for (const [output, input] of pairs) {
    refuseUnknown('output of the first model', output, first.outputNames)
    refuseUnknown('input of the second model', input, second.inputNames)
    if (connections.has(input)) throw wrong(`The input ${valueText(input)} occurs twice in ioMap`)
    refuseOtherType(first, output, second, input)
    connections.set(input, output)
  }
  const taken = sharedNames(first, second, connections)
  if (taken.length === 0) return connections
  const named = taken.slice(0, MAX_NAMED).map((name) => valueText(name))
  const more = taken.length > named.length ? `, and ${taken.length - named.length} more` : ''
  throw wrong(`Both models have values of the names ${named.join(', ')}${more}; set prefix1 or prefix2`)
}

/** Names that an error lists. */
const MAX_NAMED = 8

/** Names that the main graph of one model defines or declares and the other one uses anywhere, connected inputs aside. */
function sharedNames(first: Graph, second: Graph, connections: Connections): readonly string[] {
  const [inFirst, inSecond] = [allNames(first), allNames(second)]
  const shared = new Set<string>()
  for (const name of mainNames(second)) if (inFirst.has(name) && !connections.has(name)) shared.add(name)
  for (const name of mainNames(first)) if (inSecond.has(name) && !connections.has(name)) shared.add(name)
  return [...shared]
}

function mainNames(graph: Graph): ReadonlySet<string> {
  const declared = graph.message.messages('value_info').map((each) => each.text('name'))
  const names = new Set([...definedNames(graph), ...graph.outputNames, ...declared])
  names.delete('')
  return names
}

/** What a subgraph uses is defined in a graph around it, or an outer name of the main graph. */
function allNames(graph: Graph): ReadonlySet<string> {
  const names = new Set([...mainNames(graph), ...graph.outerNames()])
  for (const inside of graph.subgraphs()) for (const name of mainNames(inside)) names.add(name)
  return names
}

function refuseOtherType(first: Graph, output: string, second: Graph, input: string): void {
  const [from, to] = [first.typeOf(output), second.typeOf(input)]
  if (mayBe(from, to)) return
  const text = `The output ${valueText(output)} is ${valueTypeText(from)}, and the input ${valueText(input)} takes ${valueTypeText(to)}.`
  throw new TileworkError('ERR_GRAPH', text)
}

/** Whether a value of the first type may be of the second: what neither declares is no contradiction. */
function mayBe(from: ValueType, to: ValueType): boolean {
  if (from.kind === 'none' || to.kind === 'none') return true
  if (from.kind !== to.kind) return false
  if ('dtype' in from && 'dtype' in to) return from.dtype === to.dtype && mayHaveShape(from.shape, to.shape)
  if ('of' in from && 'of' in to) return mayBe(from.of, to.of)
  return true
}

function mayHaveShape(from: readonly Dimension[] | undefined, to: readonly Dimension[] | undefined): boolean {
  if (!from || !to) return true
  const mayBeSame = (extent: Dimension, at: number): boolean =>
    typeof extent !== 'number' || typeof to[at] !== 'number' || extent === to[at]
  return from.length === to.length && from.every(mayBeSame)
}

function joinImports(merged: OnnxModel, added: OnnxModel): void {
  if (Number(merged.irVersion) !== Number(added.irVersion)) {
    const text = `The models have the IR versions ${merged.irVersion} and ${added.irVersion}; set one as the irVersion of both`
    throw wrong(text)
  }
  const known = merged.opsetImports
  for (const [domain, version] of added.opsetImports) {
    const other = known.get(domain)
    if (other === undefined) merged.setOpsetImport(domain, version)
    else if (Number(other) !== Number(version)) {
      const set = domain === '' ? 'ai.onnx' : domain
      throw wrong(`The models import versions ${other} and ${version} of the operator set ${valueText(set)}`)
    }
  }
}

function joinMetadata(merged: OnnxModel, added: OnnxModel): void {
  const known = merged.metadata
  for (const [key, value] of added.metadata) {
    const other = known.get(key)
    if (other === undefined) merged.setMetadata(key, value)
    else if (other !== value) {
      throw wrong(
        `The models have ${valueText(other)} and ${valueText(value)} as the metadata ${valueText(key)}; remove one`,
      )
    }
  }
  const ofGraph = merged.graph.metadata
  for (const [key, value] of added.graph.metadata) if (!ofGraph.has(key)) merged.graph.setMetadata(key, value)
}

function joinFunctions(merged: OnnxModel, added: OnnxModel): void {
  const keys = new Set(merged.functions.map(({ domain, name, overload }) => keyOf(domain, name, overload)))
  for (const { domain, name, overload, message } of added.functions) {
    if (keys.has(keyOf(domain, name, overload))) {
      const text = `Both models have a function ${valueText(name)} in the domain ${valueText(domain)}; set prefix1 or prefix2`
      throw wrong(text)
    }
    merged.message.adopt('functions', message)
  }
}

function joinDevices(merged: OnnxModel, added: OnnxModel): void {
  const known = new Map(merged.deviceConfigurations.map((each) => [each.name, JSON.stringify(each)]))
  const configurations = added.deviceConfigurations
  for (const [at, message] of added.message.messages('configuration').entries()) {
    const configuration = configurations[at]!
    const other = known.get(configuration.name)
    if (other === undefined) merged.message.adopt('configuration', message)
    else if (other !== JSON.stringify(configuration)) {
      throw wrong(`Both models have a device configuration ${valueText(configuration.name)}, which differ`)
    }
  }
}

function describe(merged: OnnxModel, added: OnnxModel, given: MergeOptions): void {
  const joined = (one: string, other: string, between: string): string =>
    [one, other].filter((text) => text !== '').join(between)
  const { graph } = merged
  graph.name = given.name ?? joined(graph.name, added.graph.name, '_')
  graph.docString = given.docString ?? joined(graph.docString, added.graph.docString, '\n\n')
  merged.producerName = given.producerName ?? 'tilework'
  merged.producerVersion = given.producerVersion ?? ''
  merged.domain = given.domain ?? ''
  merged.modelVersion = given.modelVersion ?? 1
}

/** Appends the second graph, whose connected inputs are outputs of the first. */
function joinGraphs(first: Graph, second: Graph, connections: Connections): void {
  const { message } = second
  const isFree = (list: string, field: string): void => {
    message.filter(list, (each) => !connections.has((each as Message).text(field)))
  }
  isFree('input', 'name')
  isFree('value_info', 'name')
  isFree('quantization_annotation', 'tensor_name')
  for (const list of INITIALIZER_LISTS) {
    const fields = second.initializerFields(list)
    message.filter(list, (_, index) => !connections.has(fields[index]!.name))
  }
  renameValues(
    second,
    (name) => connections.get(name) ?? name,
    (name) => name,
  )
  for (const list of GRAPH_LISTS)
    for (const field of message.fieldsOf(list)) adopt(first.message, list, field)
}

function adopt(graph: Message, list: (typeof GRAPH_LISTS)[number], field: MessageField): void {
  if (field.kind === 'message') graph.adopt(list, field)
  else graph.putTensor(list, field.tensor, field.name)
}

/** @param addedOutputs - number of outputs of the second model, which are the last ones */
function chooseEnds(
  { graph, irVersion }: OnnxModel,
  { inputs, outputs }: MergeOptions,
  connections: Connections,
  addedOutputs: number,
): void {
  const { message } = graph
  const connected = new Set(connections.values())
  const all = message.messages('output')
  const own = all.length - addedOutputs
  const isDefault = (name: string, at: number): boolean => at >= own || !connected.has(name)
  const defaults = all.map((each) => each.text('name')).filter(isDefault)
  setOutputs(graph, outputs ?? [...new Set(defaults)])
  if (outputs) removeUnused(graph)
  if (!inputs) return
  for (const name of inputs) refuseUnknown('input of the models', name, graph.inputNames)
  // Before IR version 4 every initializer is an input as well.
  const isOld = Number(irVersion) < FIRST_IR_WITH_FREE_INITIALIZERS
  const kept = new Set(inputs)
  const others = [...graph.inputNames].filter((name) => !kept.has(name))
  const needed = others.filter((name) => isOld && graph.hasInitializer(name))
  for (const name of others) if (!needed.includes(name)) graph.removeInput(name)
  graph.reorderInputs([...inputs, ...needed])
}

/** Makes these outputs the outputs of the graph; the others stay as declared values. */
function setOutputs(graph: Graph, names: readonly string[]): void {
  const { message } = graph
  for (const name of names) refuseUnknown('output of the models', name, graph.outputNames)
  const declared = new Map(message.messages('output').map((each) => [each.text('name'), each]))
  if (new Set(names).size < names.length) throw wrong('A name occurs twice among the outputs')
  for (const name of graph.outputNames) if (!names.includes(name)) graph.removeOutput(name)
  message.reorder(
    'output',
    names.map((name) => declared.get(name)!),
  )
}

function refuseUnknown(what: string, name: string, known: ReadonlySet<string>): void {
  if (known.has(name)) return
  throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is no ${what}${nearestText(name, known)}`)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`)
}
