/**
 * A graph: values that have names, and nodes that make them. Names tie everything together, as in the file, so each edit
 * looks at who uses a name before it changes who makes it.
 */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { checkText, checkTexts } from '../protobuf/field_input.js'
import { Message, type MessageField } from '../protobuf/message.js'
import { tensorOfField } from '../tensor/message_tensor.js'
import { checkNewAttribute, type NewAttribute } from './attribute.js'
import { GraphNames, type Use } from './graph_names.js'
import {
  constantsToInitializers,
  deduplicateInitializers,
  initializersToConstants,
  type Removed,
  removeUnused,
} from './graph_passes.js'
import { metadataOf } from './metadata.js'
import { Node } from './node.js'
import { sortedNodes } from './node_order.js'
import { Value } from './value.js'
import { checkValueType, readValueType, type ValueType, writeValueType } from './value_type.js'

/** A value that the graph declares: an input, an output, or one in between. */
export interface ValueInfo {
  readonly name: string
  readonly type: ValueType
  readonly docString: string
}

/** A node to be added. */
export interface NewNode {
  readonly opType: string
  readonly domain?: string
  readonly name?: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly attributes?: Readonly<Record<string, NewAttribute>>
}

const graphs = new WeakMap<Message, Graph>()

export class Graph {
  /** For code of the library itself. */
  readonly message: Message
  #names: GraphNames | undefined

  private constructor(message: Message) {
    this.message = message
  }

  /** The graph of a GraphProto; the same object each time. */
  static of(message: Message): Graph {
    const known = graphs.get(message) ?? new Graph(message)
    graphs.set(message, known)
    return known
  }

  /** A graph without anything, for an attribute. */
  static create(name = ''): Graph {
    const graph = Graph.of(new Message('GraphProto'))
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

  /** In the order of the file. The same objects each time. */
  get nodes(): readonly Node[] {
    return this.message.messages('node').map((message) => Node.of(message))
  }

  get inputs(): readonly ValueInfo[] {
    return this.#values('input')
  }

  get outputs(): readonly ValueInfo[] {
    return this.#values('output')
  }

  /** Types of values in between. */
  get valueInfo(): readonly ValueInfo[] {
    return this.#values('value_info')
  }

  /**
   * Declares an input, behind the others. One of an initializer's name may be given another value when the model runs.
   *
   * @throws TileworkError ERR_ARGUMENT for a name that is empty, an input or made by a node; and for what is no type
   */
  addInput(name: string, type: ValueType): void {
    if (name === '' || this.inputNames.has(name) || this.producerOf(name)) throw this.#taken(name)
    this.#declare('input', name, type)
  }

  /** Declares an output, behind the others. @throws TileworkError ERR_ARGUMENT for a name that no value has, or an output */
  addOutput(name: string, type: ValueType): void {
    if (this.outputNames.has(name)) throw this.#taken(name)
    if (!this.#defines(name)) throw new TileworkError('ERR_ARGUMENT', `There is no value ${valueText(name)}.`)
    this.#declare('output', name, type)
  }

  /** Says what type a value has: where the graph declares it, or else among `valueInfo`. */
  setType(name: string, type: ValueType): void {
    if (!this.#defines(name)) throw new TileworkError('ERR_ARGUMENT', `There is no value ${valueText(name)}.`)
    const known = this.#index().declared.get(name)
    if (!known) {
      this.#declare('value_info', name, type)
      return
    }
    checkValueType(type)
    known.clear('type')
    writeValueType(known.insert('type'), type)
  }

  #declare(list: string, name: string, type: ValueType): void {
    checkText('The name of a value', name)
    checkValueType(type)
    const value = this.message.insert(list)
    value.setText('name', name)
    writeValueType(value.insert('type'), type)
  }

  /** Graphs inside the nodes of this one, and inside those, outermost first. */
  *subgraphs(): Generator<Graph> {
    for (const graph of this.#inside()) {
      yield graph
      yield* graph.subgraphs()
    }
  }

  /** Nodes of this graph and of those inside it: each before those of its graphs. */
  *allNodes(): Generator<Node> {
    for (const node of this.nodes) {
      yield node
      for (const graph of this.#index().enclosing.get(node) ?? []) yield* graph.allNodes()
    }
  }

  /** Names that this graph takes from those around it; of a main graph, names that nobody makes. */
  outerNames(): ReadonlySet<string> {
    const used = this.nodes.flatMap((node) => node.inputs.filter((name) => name !== ''))
    const inside = this.#inside().flatMap((graph) => [...graph.outerNames()])
    return new Set([...used, ...inside, ...this.outputNames].filter((name) => !this.#defines(name)))
  }

  /** A name that no value of this graph and of those inside it has: `base`, or `base` with a number. */
  uniqueName(base: string): string {
    checkText('The base of a name', base)
    const isFree = (name: string): boolean =>
      name !== '' &&
      !this.#defines(name) &&
      !this.outputNames.has(name) &&
      this.usersOf(name).length === 0 &&
      !this.#definesInside(name)
    if (isFree(base)) return base
    let number = 1
    while (!isFree(`${base}_${number}`)) number += 1
    return `${base}_${number}`
  }

  /** True where a graph inside makes a value of that name: there it would hide one of this graph. */
  #definesInside(name: string): boolean {
    return this.#inside().some((graph) => graph.#defines(name) || graph.#definesInside(name))
  }

  /** Names of all initializers, those that are sparse last. */
  get initializerNames(): readonly string[] {
    return this.#initializers().map(({ name }) => name)
  }

  /** The initializer of a name, dense or sparse. @throws TileworkError for one whose rules do not hold */
  initializer(name: string): Tensor | undefined {
    const found = this.#index().initializers.get(name)
    return found && tensorOfField(this.message, found.field)
  }

  /** All initializers, made one after the other. */
  *initializers(): Generator<Tensor> {
    for (const { field } of this.#initializers()) yield tensorOfField(this.message, field)
  }

  /**
   * Puts a tensor in the place of the initializer of that name, or behind the last one. Its own name does not matter. It
   * is read when the model is saved.
   *
   * @throws TileworkError ERR_ARGUMENT for a name that a node makes, and for what is no tensor
   */
  setInitializer(name: string, tensor: Tensor): void {
    checkText('The name of an initializer', name)
    checkTensor(tensor, 'setInitializer')
    if (this.producerOf(name)) throw this.#taken(name)
    const list = tensor.kind === 'sparse' ? 'sparse_initializer' : 'initializer'
    const names = this.#index()
    const found = names.initializers.get(name)
    if (found && found.list !== list) this.message.remove(found.field)
    const field = this.message.putTensor(list, tensor, name, found?.list === list ? found.field : undefined)
    names.initializers.set(name, { list, field, name })
    names.edits = this.message.edits
  }

  /** @throws TileworkError ERR_ARGUMENT where there is none, or where it is used */
  removeInitializer(name: string): void {
    const found = this.#index().initializers.get(name)
    if (!found) throw new TileworkError('ERR_ARGUMENT', `There is no initializer ${valueText(name)}.`)
    if (!this.inputNames.has(name)) this.#refuseUsed(name)
    this.message.remove(found.field)
  }

  /** The node of this graph that makes a value. */
  producerOf(name: string): Node | undefined {
    return this.#index().producerOf(name)
  }

  /** Nodes that use a value: of this graph, then of graphs inside it that have no value of that name. */
  usersOf(name: string): readonly Node[] {
    if (name === '') return []
    return [
      ...this.#index().usersOf(name),
      ...this.#graphsThatSee(name).flatMap((graph) => graph.usersOf(name)),
    ]
  }

  /** As `usersOf`, with the place among the inputs; a node that asks twice is there twice. */
  usesOf(name: string): readonly Use[] {
    if (name === '') return []
    return [
      ...this.#index().usesOf(name),
      ...this.#graphsThatSee(name).flatMap((graph) => graph.usesOf(name)),
    ]
  }

  /** The value of a name; undefined where no input, initializer or node of this graph gives it. */
  value(name: string): Value | undefined {
    return this.#defines(name) ? new Value(this, name) : undefined
  }

  /** All values: inputs, initializers, and outputs of nodes. */
  values(): readonly Value[] {
    const made = this.nodes.flatMap(({ outputs }) => outputs.filter((name) => name !== ''))
    const names = new Set([...this.inputNames, ...this.#index().initializers.keys(), ...made])
    return [...names].map((name) => new Value(this, name))
  }

  get inputNames(): ReadonlySet<string> {
    return this.#index().inputs
  }

  get outputNames(): ReadonlySet<string> {
    return this.#index().outputs
  }

  /** True for a node that is in this graph now. */
  holds(node: Node): boolean {
    return this.#index().holds(node)
  }

  /** True for the name of an initializer, dense or sparse. */
  hasInitializer(name: string): boolean {
    return this.#index().initializers.has(name)
  }

  /** The type that the graph declares for a value; `none` where it declares none. */
  typeOf(name: string): ValueType {
    return readValueType(this.#index().declared.get(name)?.message('type'))
  }

  /**
   * Adds a node.
   *
   * @param at - its place among the nodes; default behind the last one
   * @throws TileworkError ERR_ARGUMENT for an output whose name is taken, and for what is no node
   */
  addNode(node: NewNode, at?: number): Node {
    const checked = checkNewNode(this.message, node)
    if (at !== undefined && !Number.isSafeInteger(at)) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `The place of a node is a whole number; ${valueText(at)} was given.`,
      )
    }
    for (const output of checked.outputs)
      if (output !== '' && this.#defines(output)) throw this.#taken(output)
    const names = this.#index()
    const added = Node.of(this.message.insert('node', at))
    names.add(added)
    names.edits = this.message.edits
    added.fill(checked)
    return added
  }

  /** @throws TileworkError ERR_ARGUMENT for a node of another graph, and for one whose outputs are used */
  removeNode(node: Node): void {
    if (!(node instanceof Node)) {
      throw new TileworkError('ERR_ARGUMENT', `removeNode takes a node; ${valueText(node)} was given.`)
    }
    const field = node.message.parent === this.message ? this.message.fieldOf(node.message) : undefined
    if (!field)
      throw new TileworkError('ERR_ARGUMENT', `The node ${valueText(node.name)} is not of this graph.`)
    for (const name of node.outputs) if (name !== '') this.#refuseUsed(name, node)
    const names = this.#index()
    this.message.remove(field)
    names.delete(node)
    names.edits = this.message.edits
  }

  /**
   * Makes all who use a value use another one: nodes here and in graphs inside, and the outputs of the graph. That a node
   * which makes the other one uses the first is no exception, and nobody has to make the other one yet: `check` says where
   * a graph is left broken.
   *
   * @throws TileworkError ERR_ARGUMENT where a graph inside uses it and has a value of its own under the other name, which
   * would be used instead; nothing is changed then
   */
  replaceAllUses(name: string, other: string): void {
    checkText('The name of a value', other)
    if (this.#wouldHide(name, other)) {
      const message = `A graph inside uses ${valueText(name)} and has a ${valueText(other)} of its own; rename that first.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    this.#replaceUses(name, other)
  }

  #replaceUses(name: string, other: string): void {
    for (const node of this.#index().usersOf(name)) {
      node.inputs = node.inputs.map((each) => (each === name ? other : each))
    }
    for (const graph of this.#graphsThatSee(name)) graph.#replaceUses(name, other)
    if (!this.outputNames.has(name)) return
    for (const output of this.message.messages('output')) {
      if (output.text('name') === name) output.setText('name', other)
    }
  }

  /** True where a graph inside asks for `name` and would find a value of its own under `other`. */
  #wouldHide(name: string, other: string): boolean {
    return this.#graphsThatSee(name).some((graph) =>
      graph.#defines(other) ? graph.#asksFor(name) : graph.#wouldHide(name, other),
    )
  }

  /** True where this graph, or one inside in which the name is not another value, uses it or gives it out. */
  #asksFor(name: string): boolean {
    const names = this.#index()
    if (names.usersOf(name).length > 0 || names.outputs.has(name)) return true
    return this.#graphsThatSee(name).some((graph) => graph.#asksFor(name))
  }

  /**
   * Gives a value another name wherever it stands: where it is made, declared and used.
   *
   * @throws TileworkError ERR_ARGUMENT where the graph has no such value, or it or a graph inside has one of the new name
   */
  rename(name: string, other: string): void {
    if (!this.#defines(name)) throw new TileworkError('ERR_ARGUMENT', `There is no value ${valueText(name)}.`)
    checkText('The name of a value', other)
    const isTaken = this.#defines(other) || this.usersOf(other).length > 0 || this.#definesInside(other)
    if (other === '' || isTaken) throw this.#taken(other)
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

  #renameInitializer({ list, field }: NamedField, other: string): void {
    const { message } = this
    if (field.kind === 'tensor') message.putTensor(list, field.tensor, other, field)
    else if (list === 'initializer') message.messageOf(field)!.setText('name', other)
    else message.putTensor(list, tensorOfField(message, field), other, field)
  }

  /**
   * Brings the nodes into an order in which each stands behind those it uses; those that are in order keep it.
   *
   * @throws TileworkError ERR_GRAPH where nodes wait for each other
   */
  sort(): void {
    const fields = this.message.fieldsOf('node')
    const order = sortedNodes(this.nodes)
    if (order.every((from, to) => from === to)) return
    this.message.reorder(
      'node',
      order.map((index) => fields[index]!),
    )
  }

  /**
   * Removes nodes and initializers that no output depends on, and types of values that are gone. Inputs stay, and nodes
   * without outputs.
   *
   * @throws TileworkError ERR_UNSUPPORTED for a model with graphs of training, which use names of this one
   */
  removeUnused(): Removed {
    return removeUnused(this)
  }

  /**
   * Makes initializers of nodes `Constant`, those of strings aside.
   *
   * @returns how many
   * @throws TileworkError ERR_UNSUPPORTED below IR version 4, where an initializer has to be an input as well
   */
  constantsToInitializers(): number {
    return constantsToInitializers(this)
  }

  /**
   * Makes nodes `Constant` of dense initializers of this graph that are no inputs; they come first.
   *
   * @param names - default: all
   * @returns how many
   */
  initializersToConstants(names?: readonly string[]): number {
    if (names !== undefined) checkTexts('initializersToConstants', names)
    return initializersToConstants(this, names)
  }

  /**
   * Keeps one of dense initializers of this graph that have the same type, shape and bits, so that -0 is not 0, and a NaN
   * only itself. Those that are inputs or outputs of the graph stay. Values are read.
   *
   * @returns how many were removed
   * @throws TileworkError as `removeUnused`, and what reading tensors throws
   */
  deduplicateInitializers(): Promise<number> {
    return deduplicateInitializers(this)
  }

  /** For code of the library itself: initializers of one list by name. */
  initializerFields(list: (typeof INITIALIZER_LISTS)[number]): readonly NamedField[] {
    return this.#initializers().filter((each) => each.list === list)
  }

  /** For code of the library itself: makes a change to one node of this graph, which its names follow. */
  follow(node: Node, change: () => void): void {
    const names = this.#names?.edits === this.message.edits ? this.#names : undefined
    // A change that throws halfway leaves no names behind that are half true.
    this.#names = undefined
    names?.delete(node)
    change()
    if (!names) return
    names.add(node)
    names.edits = this.message.edits
    this.#names = names
  }

  /** Who makes and uses names, as the graph is now. */
  #index(): GraphNames {
    if (this.#names?.edits !== this.message.edits) this.#names = new GraphNames(this, this.#initializers())
    return this.#names!
  }

  /** True for a name that is an input, an initializer or an output of a node here. */
  #defines(name: string): boolean {
    return this.#index().defines(name)
  }

  /** Graphs inside nodes of this one in which the name stands for the value of this one. */
  #graphsThatSee(name: string): readonly Graph[] {
    return this.#inside().filter((graph) => !graph.#defines(name))
  }

  /** Graphs in attributes of nodes of this one. */
  #inside(): readonly Graph[] {
    return [...this.#index().enclosing.values()].flat()
  }

  #refuseUsed(name: string, by?: Node): void {
    const user = this.usersOf(name).find((node) => node !== by)
    const isOutput = this.outputNames.has(name)
    if (!user && !isOutput) return
    const who = user ? `the node ${valueText(user.name)} (${user.opType})` : 'the graph as its output'
    throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is used by ${who}; replace its uses first.`)
  }

  #taken(name: string): TileworkError {
    return new TileworkError('ERR_ARGUMENT', `The name ${valueText(name)} is empty or taken in the graph.`)
  }

  #values(list: 'input' | 'output' | 'value_info'): ValueInfo[] {
    return this.message.messages(list).map((message) => ({
      name: message.text('name'),
      type: readValueType(message.message('type')),
      docString: message.text('doc_string'),
    }))
  }

  #initializers(): NamedField[] {
    const { message } = this
    return INITIALIZER_LISTS.flatMap((list) =>
      message.fieldsOf(list).map((field) => ({ list, field, name: initializerName(message, list, field) })),
    )
  }
}

/** A node with all that may be left out. */
export type CheckedNode = NewNode & Required<Pick<NewNode, 'inputs' | 'outputs' | 'attributes'>>

/** @param place - a message that it is to be inside of. @throws TileworkError ERR_ARGUMENT for what is no node */
export function checkNewNode(place: Message, node: NewNode): CheckedNode {
  checkOptions(node, 'addNode', ['opType', 'domain', 'name', 'inputs', 'outputs', 'attributes'])
  const {
    opType,
    domain,
    name,
    inputs = [],
    outputs = [],
    attributes = {},
  } = readInput('The node', () => ({ ...node }))
  checkText('The operator of a node', opType)
  for (const text of [domain, name]) if (text !== undefined) checkText('The domain or name of a node', text)
  checkTexts('The inputs of a node', inputs)
  checkTexts('The outputs of a node', outputs)
  checkObject(attributes, 'The attributes of a node are { name: value }')
  for (const [key, value] of Object.entries(attributes)) {
    checkText('The name of an attribute', key)
    checkNewAttribute(place, value)
  }
  const known = { opType, inputs, outputs, attributes }
  return { ...known, ...(domain !== undefined && { domain }), ...(name !== undefined && { name }) }
}

const INITIALIZER_LISTS = ['initializer', 'sparse_initializer'] as const

/** An initializer and the field that it is. */
export interface NamedField {
  readonly list: (typeof INITIALIZER_LISTS)[number]
  readonly field: MessageField
  readonly name: string
}

function initializerName(graph: Message, list: string, field: MessageField): string {
  if (field.kind === 'tensor') return field.name
  const message = graph.messageOf(field)
  return (list === 'initializer' ? message : message?.message('values'))?.text('name') ?? ''
}

/** Graphs in the attributes of a node. */
export function subgraphsOf(node: Node): readonly Graph[] {
  return node.attributes.flatMap(({ graphs: inside }) => inside)
}
