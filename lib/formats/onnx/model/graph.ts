/**
 * Graphs on top of GraphProto messages; see the interface `Graph`.
 *
 * A message has names only. Look-ups by name go through an index that single-node edits update and other edits discard.
 */
import { isInstance } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { nearestText } from '../../../nearest_names.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { uncloneable } from '../../../uncloneable.js'
import { valueText } from '../../../value_text.js'
import { checkText, checkTexts } from '../protobuf/field_input.js'
import { Message, type MessageField } from '../protobuf/message.js'
import { INITIALIZER_LISTS } from '../schema.js'
import { tensorOfField } from '../tensor/from_message.js'
import { GraphNames } from './graph_names.js'
import {
  constantsToInitializers,
  deduplicateInitializers,
  initializersToConstants,
  removeUnused,
  stripInitializers,
} from './graph_passes.js'
import { metadataOf } from './metadata.js'
import { checkNewNode, ProtoNode } from './node.js'
import { sortedNodes } from './node_order.js'
import type {
  Graph as GraphInterface,
  Graphs,
  InitializerField,
  InitializerList,
  NewNode,
  Node,
  Removed,
  Use,
  Value,
  ValueInfo,
  ValueType,
} from './types.js'
import { GraphValue } from './value.js'
import { checkValueType, readValueType, writeValueType } from './value_type.js'

/** Refuses a clone of a graph, node, value, attribute or function. */
export const PART_UNCLONEABLE = uncloneable(
  'a part of an ONNX model; send the bytes of serialize() of the model instead',
)

const knownGraphs = new WeakMap<Message, ProtoGraph>()

export class ProtoGraph implements GraphInterface {
  /** The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = PART_UNCLONEABLE
  readonly message: Message
  #names: GraphNames | undefined

  private constructor(message: Message) {
    this.message = message
  }

  /** The graph of a GraphProto; the same object each time. */
  static of(message: Message): ProtoGraph {
    const known = knownGraphs.get(message) ?? new ProtoGraph(message)
    knownGraphs.set(message, known)
    return known
  }

  static isGraph(value: unknown): value is ProtoGraph {
    return value instanceof ProtoGraph
  }

  static create(name = ''): ProtoGraph {
    const graph = ProtoGraph.of(new Message('GraphProto'))
    if (name !== '') graph.name = name
    return graph
  }

  get name(): string {
    return this.message.text('name')
  }

  set name(name: string) {
    this.message.setText('name', name)
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  get nodes(): readonly Node[] {
    return this.message.messages('node').map((message) => ProtoNode.of(message, GRAPHS))
  }

  get inputs(): readonly ValueInfo[] {
    return this.#declared('input')
  }

  get outputs(): readonly ValueInfo[] {
    return this.#declared('output')
  }

  get valueInfo(): readonly ValueInfo[] {
    return this.#declared('value_info')
  }

  get inputNames(): ReadonlySet<string> {
    return this.#index().inputs
  }

  get outputNames(): ReadonlySet<string> {
    return this.#index().outputs
  }

  get initializerNames(): readonly string[] {
    return this.#initializers().map(({ name }) => name)
  }

  addInput(name: string, type: ValueType): void {
    if (name === '' || this.inputNames.has(name) || this.producerOf(name)) throw nameTaken(name)
    this.#declare('input', name, type)
  }

  addOutput(name: string, type: ValueType): void {
    if (this.outputNames.has(name)) throw nameTaken(name)
    if (!this.#defines(name)) throw this.#noValue(name)
    this.#declare('output', name, type)
  }

  setType(name: string, type: ValueType): void {
    if (!this.#defines(name)) throw this.#noValue(name)
    const known = this.#index().declared.get(name)
    if (!known) {
      this.#declare('value_info', name, type)
      return
    }
    checkValueType(type)
    known.clear('type')
    writeValueType(known.insert('type'), type)
  }

  typeOf(name: string): ValueType {
    return readValueType(this.#index().declared.get(name)?.message('type'))
  }

  *subgraphs(): Generator<ProtoGraph> {
    for (const graph of this.#inner()) {
      yield graph
      yield* graph.subgraphs()
    }
  }

  *allNodes(): Generator<Node> {
    for (const node of this.nodes) {
      yield node
      for (const graph of this.#index().subgraphs.get(node) ?? []) yield* graph.allNodes()
    }
  }

  outerNames(): ReadonlySet<string> {
    const used = this.nodes.flatMap((node) => node.inputs.filter((name) => name !== ''))
    const inner = this.#inner().flatMap((graph) => [...graph.outerNames()])
    return new Set([...used, ...inner, ...this.outputNames].filter((name) => !this.#defines(name)))
  }

  uniqueName(base: string): string {
    checkText('The base of a name', base)
    const isFree = (name: string): boolean =>
      name !== '' &&
      !this.#defines(name) &&
      !this.outputNames.has(name) &&
      this.usersOf(name).length === 0 &&
      !this.#isDefinedInside(name)
    if (isFree(base)) return base
    let number = 1
    while (!isFree(`${base}_${number}`)) number += 1
    return `${base}_${number}`
  }

  initializer(name: string): Tensor | undefined {
    const found = this.#index().initializers.get(name)
    return found && tensorOfField(this.message, found.field)
  }

  *initializers(): Generator<Tensor> {
    for (const { field } of this.#initializers()) yield tensorOfField(this.message, field)
  }

  hasInitializer(name: string): boolean {
    return this.#index().initializers.has(name)
  }

  setInitializer(name: string, tensor: Tensor): void {
    checkText('The name of an initializer', name)
    checkTensor(tensor, 'setInitializer')
    if (this.producerOf(name)) throw nameTaken(name)
    const list = tensor.kind === 'sparse' ? 'sparse_initializer' : 'initializer'
    const names = this.#index()
    const found = names.initializers.get(name)
    if (found && found.list !== list) this.message.remove(found.field)
    const field = this.message.putTensor(list, tensor, name, found?.list === list ? found.field : undefined)
    names.initializers.set(name, { list, field, name })
    names.edits = this.message.edits
  }

  removeInitializer(name: string): void {
    const found = this.#index().initializers.get(name)
    if (!found) throw unknown('initializer', name, this.initializerNames)
    if (!this.inputNames.has(name)) this.#refuseUsed(name)
    this.message.remove(found.field)
  }

  initializerFields(list: InitializerList): readonly InitializerField[] {
    return this.#initializers().filter((each) => each.list === list)
  }

  producerOf(name: string): Node | undefined {
    return this.#index().producerOf(name)
  }

  usersOf(name: string): readonly Node[] {
    if (name === '') return []
    return [
      ...this.#index().usersOf(name),
      ...this.#subgraphsThatSee(name).flatMap((graph) => graph.usersOf(name)),
    ]
  }

  usesOf(name: string): readonly Use[] {
    if (name === '') return []
    return [
      ...this.#index().usesOf(name),
      ...this.#subgraphsThatSee(name).flatMap((graph) => graph.usesOf(name)),
    ]
  }

  value(name: string): Value | undefined {
    return this.#defines(name) ? new GraphValue(this, name) : undefined
  }

  values(): readonly Value[] {
    const produced = this.nodes.flatMap(({ outputs }) => outputs.filter((name) => name !== ''))
    const names = new Set([...this.inputNames, ...this.#index().initializers.keys(), ...produced])
    return [...names].map((name) => new GraphValue(this, name))
  }

  holds(node: Node): boolean {
    return this.#index().holds(node)
  }

  addNode(node: NewNode, at?: number): Node {
    const checked = checkNewNode(this.message, node, GRAPHS)
    if (at !== undefined && !Number.isSafeInteger(at)) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `The index of a node is ${valueText(at)}; it must be an integer.`,
      )
    }
    for (const output of checked.outputs) if (output !== '' && this.#defines(output)) throw nameTaken(output)
    const names = this.#index()
    const added = ProtoNode.of(this.message.insert('node', at), GRAPHS)
    names.add(added)
    names.edits = this.message.edits
    added.fill(checked)
    return added
  }

  removeNode(node: Node): void {
    if (!isInstance(node, ProtoNode)) {
      throw new TileworkError('ERR_ARGUMENT', `removeNode takes a node; ${valueText(node)} was given.`)
    }
    const field = node.message.parent === this.message ? this.message.fieldOf(node.message) : undefined
    if (!field)
      throw new TileworkError('ERR_ARGUMENT', `The node ${valueText(node.name)} is not in this graph.`)
    for (const name of node.outputs) if (name !== '') this.#refuseUsed(name, node)
    const names = this.#index()
    this.message.remove(field)
    names.delete(node)
    names.edits = this.message.edits
  }

  /** Discards the index if `change` throws halfway: it may no longer match the message. */
  changeNode(node: Node, change: () => void): void {
    const names = this.#names?.edits === this.message.edits ? this.#names : undefined
    this.#names = undefined
    names?.delete(node)
    change()
    if (!names) return
    names.add(node)
    names.edits = this.message.edits
    this.#names = names
  }

  replaceAllUses(name: string, other: string): void {
    checkText('The name of a value', other)
    if (this.#wouldHide(name, other)) {
      const message = `A subgraph uses ${valueText(name)} and defines ${valueText(other)} itself; rename its value first.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    this.#replaceUses(name, other)
  }

  #replaceUses(name: string, other: string): void {
    for (const node of this.#index().usersOf(name)) {
      node.inputs = node.inputs.map((each) => (each === name ? other : each))
    }
    for (const graph of this.#subgraphsThatSee(name)) graph.#replaceUses(name, other)
    if (!this.outputNames.has(name)) return
    for (const output of this.message.messages('output')) {
      if (output.text('name') === name) output.setText('name', other)
    }
  }

  /** True where a subgraph uses `name` but would resolve `other` to a value of its own. */
  #wouldHide(name: string, other: string): boolean {
    return this.#subgraphsThatSee(name).some((graph) =>
      graph.#defines(other) ? graph.#uses(name) : graph.#wouldHide(name, other),
    )
  }

  /** True where this graph, or a subgraph that does not hide the name, uses or outputs it. */
  #uses(name: string): boolean {
    const names = this.#index()
    if (names.usersOf(name).length > 0 || names.outputs.has(name)) return true
    return this.#subgraphsThatSee(name).some((graph) => graph.#uses(name))
  }

  rename(name: string, other: string): void {
    if (!this.#defines(name)) throw this.#noValue(name)
    checkText('The name of a value', other)
    const isTaken = this.#defines(other) || this.usersOf(other).length > 0 || this.#isDefinedInside(other)
    if (other === '' || isTaken) throw nameTaken(other)
    this.#replaceUses(name, other)
    const producer = this.producerOf(name)
    if (producer) producer.outputs = producer.outputs.map((each) => (each === name ? other : each))
    for (const list of ['input', 'value_info']) {
      for (const value of this.message.messages(list))
        if (value.text('name') === name) value.setText('name', other)
    }
    for (const annotation of this.message.messages('quantization_annotation')) {
      if (annotation.text('tensor_name') === name) annotation.setText('tensor_name', other)
    }
    const initializer = this.#index().initializers.get(name)
    if (initializer) this.#renameInitializer(initializer, other)
  }

  #renameInitializer({ list, field }: InitializerField, other: string): void {
    const { message } = this
    if (field.kind === 'tensor') message.putTensor(list, field.tensor, other, field)
    else if (list === 'initializer') message.messageOf(field)!.setText('name', other)
    else message.putTensor(list, tensorOfField(message, field), other, field)
  }

  sort(): void {
    const fields = this.message.fieldsOf('node')
    const order = sortedNodes(this.nodes)
    if (order.every((from, to) => from === to)) return
    this.message.reorder(
      'node',
      order.map((index) => fields[index]!),
    )
  }

  removeUnused(): Removed {
    return removeUnused(this)
  }

  constantsToInitializers(): number {
    return constantsToInitializers(this)
  }

  initializersToConstants(names?: readonly string[]): number {
    if (names !== undefined) checkTexts('initializersToConstants', names)
    return initializersToConstants(this, names)
  }

  stripInitializers(): number {
    return stripInitializers(this)
  }

  deduplicateInitializers(): Promise<number> {
    return deduplicateInitializers(this)
  }

  #noValue(name: string): TileworkError {
    return unknown(
      'value',
      name,
      this.values().map((value) => value.name),
    )
  }

  /** The name index, rebuilt if the message was edited by other means. */
  #index(): GraphNames {
    if (this.#names?.edits !== this.message.edits) this.#names = new GraphNames(this, this.#initializers())
    return this.#names!
  }

  /** True for an input, an initializer or an output of a node of this graph. */
  #defines(name: string): boolean {
    return this.#index().defines(name)
  }

  /** True where a subgraph defines the name, which hides a value of this graph there. */
  #isDefinedInside(name: string): boolean {
    return this.#inner().some((graph) => graph.#defines(name) || graph.#isDefinedInside(name))
  }

  /** Direct subgraphs in which the name refers to the value of this graph. */
  #subgraphsThatSee(name: string): readonly ProtoGraph[] {
    return this.#inner().filter((graph) => !graph.#defines(name))
  }

  /** Direct subgraphs. */
  #inner(): readonly ProtoGraph[] {
    return [...this.#index().subgraphs.values()].flat().map(({ message }) => ProtoGraph.of(message))
  }

  #refuseUsed(name: string, except?: Node): void {
    const user = this.usersOf(name).find((node) => node !== except)
    const isOutput = this.outputNames.has(name)
    if (!user && !isOutput) return
    const who = user ? `the node ${valueText(user.name)} (${user.opType})` : 'the graph as its output'
    throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is used by ${who}; replace its uses first.`)
  }

  #declare(list: string, name: string, type: ValueType): void {
    checkText('The name of a value', name)
    checkValueType(type)
    const value = this.message.insert(list)
    value.setText('name', name)
    writeValueType(value.insert('type'), type)
  }

  #declared(list: 'input' | 'output' | 'value_info'): ValueInfo[] {
    return this.message.messages(list).map((message) => ({
      name: message.text('name'),
      type: readValueType(message.message('type')),
      docString: message.text('doc_string'),
    }))
  }

  #initializers(): InitializerField[] {
    const { message } = this
    return INITIALIZER_LISTS.flatMap((list) =>
      message.fieldsOf(list).map((field) => ({ list, field, name: initializerName(message, list, field) })),
    )
  }
}

/** The public side of the class: it creates graphs for attributes, and `instanceof` recognizes every graph. */
export interface GraphConstructor extends NewableFunction {
  readonly prototype: GraphInterface
  /** An empty graph, to be set as an attribute. */
  create(name?: string): GraphInterface
}

export type Graph = GraphInterface
export const Graph: GraphConstructor = ProtoGraph

/** The graphs of nodes and attributes; one object for all of them. */
export const GRAPHS: Graphs = {
  uncloneable: PART_UNCLONEABLE,
  of: ProtoGraph.of,
  isGraph: ProtoGraph.isGraph,
}

function initializerName(graph: Message, list: InitializerList, field: MessageField): string {
  if (field.kind === 'tensor') return field.name
  const message = graph.messageOf(field)
  return (list === 'initializer' ? message : message?.message('values'))?.text('name') ?? ''
}

function nameTaken(name: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `The name ${valueText(name)} is empty or taken in the graph.`)
}

function unknown(what: string, name: string, known: Iterable<string>): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `The graph has no ${what} ${valueText(name)}${nearestText(name, known)}`,
  )
}
