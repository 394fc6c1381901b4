/**
 * Graphs on top of GraphProto messages; see the interface `Graph`.
 *
 * A message has names only. Look-ups by name go through an index that single-node edits update and other edits discard.
 */
import { isInstance, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkText, checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import { Message, type MessageField } from '../../../formats/onnx/protobuf/message.js'
import { INITIALIZER_LISTS } from '../../../formats/onnx/schema.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { nearestText } from '../../../nearest_names.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { uncloneable } from '../../../uncloneable.js'
import { valueText } from '../../../value_text.js'
import { GraphNames, NAMED_FIELDS, type NamedList, renameInitializer } from './graph_names.js'
import { metadataOf, removeMetadata, setMetadata, setOptionalText } from './metadata.js'
import { checkNewNode, ProtoNode } from './node.js'
import { hasSubgraphs, isKnownFlat } from './node_names.js'
import type {
  Graph as GraphInterface,
  Graphs,
  InitializerField,
  InitializerList,
  NewNode,
  Node,
  Use,
  Value,
  ValueInfo,
  ValueType,
} from './types.js'
import { GraphValue } from './value.js'
import { checkValueType, readValueType } from './value_type.js'

/** Refuses a clone of a graph, node, value, attribute or function. */
export const PART_UNCLONEABLE = uncloneable(
  'a part of an ONNX model; send the bytes of serialize() of the model instead',
)

const NO_GRAPHS: readonly ProtoGraph[] = []

/** Lists that declare types of values. */
const TYPED_LISTS = ['input', 'output', 'value_info'] as const

export class ProtoGraph implements GraphInterface {
  /** The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = PART_UNCLONEABLE
  readonly message: Message
  #names: GraphNames | undefined
  /** Names of inputs and outputs as they were at an edit count of the message. */
  readonly #ends: {
    [List in 'input' | 'output']?: { readonly edits: number; readonly names: ReadonlySet<string> }
  } = {}
  /** Initializers as they were at an edit count of the message: reading a name moves between the payloads of the file. */
  #listed: { readonly edits: number; readonly fields: readonly InitializerField[] } | undefined
  /** Direct subgraphs as they were at an edit count of the message. */
  #inside: { readonly edits: number; readonly graphs: readonly ProtoGraph[] } | undefined

  private constructor(message: Message) {
    this.message = message
  }

  /** The graph of a GraphProto; the same object each time. */
  static of(message: Message): ProtoGraph {
    message.view ??= new ProtoGraph(message)
    return message.view as ProtoGraph
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

  set docString(text: string) {
    setOptionalText(this.message, 'doc_string', text)
  }

  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  setMetadata(key: string, value: string): void {
    setMetadata(this.message, key, value)
  }

  removeMetadata(key: string): boolean {
    return removeMetadata(this.message, key)
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
    return this.#endNames('input')
  }

  get outputNames(): ReadonlySet<string> {
    return this.#endNames('output')
  }

  /** As `#inner`, without the index where that is not up to date. */
  #endNames(list: 'input' | 'output'): ReadonlySet<string> {
    const { edits } = this.message
    if (this.#names?.edits === edits) return list === 'input' ? this.#names.inputs : this.#names.outputs
    if (this.#ends[list]?.edits !== edits)
      this.#ends[list] = {
        edits,
        names: new Set(this.message.messages(list).map((each) => each.text('name'))),
      }
    return this.#ends[list].names
  }

  get initializerNames(): readonly string[] {
    return this.#initializers().map(({ name }) => name)
  }

  addInput(name: string, type: ValueType): void {
    if (name === '' || this.#index().isInput(name) || this.producerOf(name)) throw nameTaken(name)
    this.#declare('input', name, type)
  }

  addOutput(name: string, type: ValueType): void {
    if (this.#index().isOutput(name)) throw nameTaken(name)
    if (!this.#defines(name)) throw this.#noValue(name)
    this.#declare('output', name, type)
  }

  removeInput(name: string): void {
    this.#refuseUnlisted('input', name)
    if (!this.hasInitializer(name)) this.#refuseUsed(name)
    this.message.filter('input', (field) => (field as Message).text('name') !== name)
  }

  removeOutput(name: string): void {
    this.#refuseUnlisted('output', name)
    const declared = this.#index().declarations('output', name).at(-1)!
    const isComputed = this.producerOf(name) !== undefined
    this.message.filter('output', (field) => (field as Message).text('name') !== name)
    if (isComputed && this.typeOf(name).kind === 'none') this.message.adopt('value_info', declared)
  }

  reorderInputs(names: readonly string[]): void {
    this.#reorder('input', names)
  }

  reorderOutputs(names: readonly string[]): void {
    this.#reorder('output', names)
  }

  #reorder(list: 'input' | 'output', given: readonly string[]): void {
    const what = `The order of the ${list}s`
    const names = readInput(what, () => [...checkTexts(what, given)])
    const messages = new Map(this.message.messages(list).map((each) => [each.text('name'), each]))
    for (const name of names) this.#refuseUnlisted(list, name)
    if (new Set(names).size < messages.size || names.length > messages.size) {
      const message = `${what} has ${names.length} names; it must have each of the ${messages.size} names once.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    this.message.reorder(
      list,
      names.map((name) => messages.get(name)!),
    )
  }

  #refuseUnlisted(list: 'input' | 'output', name: string): void {
    const names = list === 'input' ? this.inputNames : this.outputNames
    if (!names.has(checkText(`The name of an ${list}`, name))) throw unknown(list, name, names)
  }

  setType(name: string, type: ValueType): void {
    if (!this.#defines(name)) throw this.#noValue(name)
    const known = TYPED_LISTS.flatMap((list) => this.#index().declarations(list, name))
    if (known.length === 0) {
      this.#declare('value_info', name, type)
      return
    }
    // An output is often listed among the other values, too.
    const encoded = checkValueType(type)
    this.#follow(() => {
      for (const message of known) message.setEncoded('type', encoded)
    })
  }

  typeOf(name: string): ValueType {
    return readValueType(this.#index().declared(name)?.message('type', false))
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
      if (hasSubgraphs(node)) for (const graph of node.subgraphs) yield* graph.allNodes()
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
      !this.#index().isOutput(name) &&
      !this.#isUsed(name) &&
      !this.#isDefinedInside(name)
    if (isFree(base)) return base
    let number = 1
    while (!isFree(`${base}_${number}`)) number += 1
    return `${base}_${number}`
  }

  initializer(name: string): Tensor | undefined {
    const found = this.#index().initializer(name)
    return found && tensorOfField(found.field)
  }

  *initializers(): Generator<Tensor> {
    for (const list of INITIALIZER_LISTS)
      for (const field of this.message.fieldsOf(list)) yield tensorOfField(field)
  }

  hasInitializer(name: string): boolean {
    return this.#index().initializer(name) !== undefined
  }

  setInitializer(name: string, tensor: Tensor): void {
    checkText('The name of an initializer', name)
    checkTensor(tensor, 'setInitializer')
    if (name === '' || this.producerOf(name)) throw nameTaken(name)
    const list = tensor.kind === 'sparse' ? 'sparse_initializer' : 'initializer'
    this.#follow((names) => {
      const found = names.initializer(name)
      if (found && found.list !== list) this.message.remove(found.list, found.field)
      const field = this.message.putTensor(list, tensor, name, found?.list === list ? found.field : undefined)
      names.setInitializer(name, { list, field, name })
    })
  }

  removeInitializer(name: string): void {
    const found = this.#index().initializer(name)
    if (!found) throw unknown('initializer', name, this.initializerNames)
    if (!this.#index().isInput(name)) this.#refuseUsed(name)
    // Another one of the same name may be found next.
    const isRepeated = this.#index().repeatsInitializers
    this.#follow((names) => {
      this.message.remove(found.list, found.field)
      names.setInitializer(name, undefined)
    })
    if (isRepeated) this.#names = undefined
  }

  initializerFields(list: InitializerList): readonly InitializerField[] {
    return this.#initializers().filter((each) => each.list === list)
  }

  producerOf(name: string): Node | undefined {
    return this.#index().producerOf(name)
  }

  usersOf(name: string): readonly Node[] {
    if (name === '') return []
    const users = this.#index().usersOf(name)
    const inner = this.#subgraphsThatSee(name).flatMap((graph) => graph.usersOf(name))
    return inner.length === 0 ? users : [...users, ...inner]
  }

  usesOf(name: string): readonly Use[] {
    if (name === '') return []
    const uses = this.#index().usesOf(name)
    const inner = this.#subgraphsThatSee(name).flatMap((graph) => graph.usesOf(name))
    return inner.length === 0 ? uses : [...uses, ...inner]
  }

  value(name: string): Value | undefined {
    return this.#defines(name) ? new GraphValue(this, name) : undefined
  }

  values(): readonly Value[] {
    const names = new Set([...this.inputNames, ...[...this.initializerNames].reverse()])
    for (const node of this.nodes) for (const name of node.outputs) if (name !== '') names.add(name)
    return Array.from(names, (name) => new GraphValue(this, name))
  }

  contains(node: Node): boolean {
    return isInstance(node, ProtoNode) && this.message.holds('node', node.message)
  }

  addNode(node: NewNode, at?: number): Node {
    const checked = checkNewNode(this.message, node, GRAPHS)
    checkIndex(at)
    for (const output of checked.outputs) if (output !== '' && this.#defines(output)) throw nameTaken(output)
    return this.#follow((names) => {
      const added = ProtoNode.of(this.message.insert('node', at), GRAPHS)
      added.fill(checked)
      names.add(added)
      return added
    })
  }

  insertBefore(node: Node, added: NewNode): Node {
    this.#refuseForeign('insertBefore', node)
    return this.addNode(added, this.message.indexOf(node.message))
  }

  insertAfter(node: Node, added: NewNode): Node {
    this.#refuseForeign('insertAfter', node)
    return this.addNode(added, this.message.indexOf(node.message) + 1)
  }

  #refuseForeign(method: string, node: Node): void {
    if (!isInstance(node, ProtoNode)) {
      throw new TileworkError('ERR_ARGUMENT', `${method} takes a node; ${valueText(node)} was given.`)
    }
    if (!this.contains(node))
      throw new TileworkError('ERR_ARGUMENT', `The node ${valueText(node.name)} is not in this graph.`)
  }

  removeNode(node: Node): void {
    this.#refuseForeign('removeNode', node)
    for (const name of node.outputs) if (name !== '') this.#refuseUsed(name, node)
    this.#follow((names) => {
      names.delete(node)
      this.message.remove('node', node.message)
    })
  }

  changeNode(node: Node, change: () => void): void {
    if (!this.contains(node) || this.#names?.edits !== this.message.edits) {
      change()
      return
    }
    this.#follow((names) => {
      names.delete(node)
      change()
      names.add(node)
    })
  }

  /** Applies an edit that the index follows. An edit that throws halfway discards the index, which may no longer match. */
  #follow<T>(edit: (names: GraphNames) => T): T {
    const names = this.#index()
    this.#names = undefined
    const result = edit(names)
    names.edits = this.message.edits
    this.#names = names
    return result
  }

  replaceAllUses(name: string, other: string): void {
    for (const text of [name, other]) checkText('The name of a value', text)
    if (this.#wouldHide(name, other)) {
      const message = `A subgraph uses ${valueText(name)} and defines ${valueText(other)} itself; rename its value first.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    this.#replaceUses(name, other)
  }

  #replaceUses(name: string, other: string): void {
    const inner = this.#subgraphsThatSee(name)
    this.#follow((names) => {
      for (const { message } of names.usersOf(name)) message.replaceText('input', name, other)
      for (const graph of inner) graph.#replaceUses(name, other)
      for (const output of names.declarations('output', name)) output.replaceText('name', name, other)
      names.replaceUses(name, other)
    })
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
    if (names.isUsed(name) || names.isOutput(name)) return true
    return this.#subgraphsThatSee(name).some((graph) => graph.#uses(name))
  }

  rename(name: string, other: string): void {
    if (!this.#defines(name)) throw this.#noValue(name)
    checkText('The name of a value', other)
    if (other === '' || this.#defines(other) || this.#isUsed(other) || this.#isDefinedInside(other))
      throw nameTaken(other)
    const inner = this.#subgraphsThatSee(name)
    this.#follow((names) => {
      for (const { message } of names.usersOf(name)) message.replaceText('input', name, other)
      for (const { message } of names.producersOf(name)) message.replaceText('output', name, other)
      for (const graph of inner) graph.#replaceUses(name, other)
      for (const [list, field] of NAMED_FIELDS)
        for (const message of names.declarations(list, name)) message.replaceText(field, name, other)
      names.rename(name, other)
      const initializer = names.initializer(other)
      if (initializer) names.setInitializer(other, renameInitializer(this.message, initializer, other))
    })
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
    return this.#names
  }

  /** True for an input, an initializer or an output of a node of this graph. */
  #defines(name: string): boolean {
    return this.#index().defines(name)
  }

  /** True where a node of this graph, or of a subgraph that does not hide the name, uses it. */
  #isUsed(name: string): boolean {
    return this.#index().isUsed(name) || this.#subgraphsThatSee(name).some((graph) => graph.#isUsed(name))
  }

  /** True where a subgraph defines the name, which hides a value of this graph there. */
  #isDefinedInside(name: string): boolean {
    return this.#inner().some((graph) => graph.#defines(name) || graph.#isDefinedInside(name))
  }

  /** Direct subgraphs in which the name refers to the value of this graph. */
  #subgraphsThatSee(name: string): readonly ProtoGraph[] {
    const inner = this.#inner()
    return inner.length === 0 ? inner : inner.filter((graph) => !graph.#defines(name))
  }

  /** Direct subgraphs. Passes ask for them that need nothing else of the index, which takes longer to build than they run. */
  #inner(): readonly ProtoGraph[] {
    const { edits } = this.message
    if (this.#names?.edits === edits) {
      const { subgraphs } = this.#names
      return subgraphs.size === 0 ? NO_GRAPHS : graphsOf(subgraphs.values())
    }
    if (isKnownFlat(this.message)) return NO_GRAPHS
    if (this.#inside?.edits !== edits) {
      const found = this.nodes.flatMap((node) => (hasSubgraphs(node) ? [node.subgraphs] : []))
      this.#inside = { edits, graphs: graphsOf(found) }
    }
    return this.#inside.graphs
  }

  #refuseUsed(name: string, except?: Node): void {
    const user = this.usersOf(name).find((node) => node !== except)
    const isOutput = this.#index().isOutput(name)
    if (!user && !isOutput) return
    const who = user ? `the node ${valueText(user.name)} (${user.opType})` : 'the graph as its output'
    throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is used by ${who}; replace its uses first.`)
  }

  #declare(list: NamedList, name: string, type: ValueType): void {
    checkText('The name of a value', name)
    const encoded = checkValueType(type)
    this.#follow((names) => {
      const value = this.message.insert(list)
      value.setText('name', name)
      value.setEncoded('type', encoded)
      names.declare(list, name, value)
    })
  }

  #declared(list: 'input' | 'output' | 'value_info'): ValueInfo[] {
    return this.message.messages(list).map((message) => ({
      name: message.text('name'),
      type: readValueType(message.message('type', false)),
      docString: message.text('doc_string'),
    }))
  }

  #initializers(): readonly InitializerField[] {
    const { message } = this
    const { edits } = message
    if (this.#listed?.edits !== edits) {
      const fields = INITIALIZER_LISTS.flatMap((list) =>
        message.fieldsOf(list).map((field) => ({ list, field, name: initializerName(list, field) })),
      )
      this.#listed = { edits, fields }
    }
    return this.#listed.fields
  }
}

/** The public side of the class: it creates graphs for attributes, and `instanceof` recognizes every graph. */
export interface GraphConstructor extends NewableFunction {
  readonly prototype: GraphInterface
  /** An empty graph, to be set as an attribute. */
  create(name?: string): GraphInterface
}

export type Graph = GraphInterface
/** A graph of a model, or of an attribute of a node: nodes, inputs, outputs and initializers; `Graph.create` makes an empty one. */
export const Graph: GraphConstructor = ProtoGraph

/** The graphs of nodes and attributes; one object for all of them. */
export const GRAPHS: Graphs = {
  uncloneable: PART_UNCLONEABLE,
  of: ProtoGraph.of,
  isGraph: ProtoGraph.isGraph,
}

export function initializerName(list: InitializerList, field: MessageField): string {
  if (field.kind === 'tensor') return field.name
  return (list === 'initializer' ? field : field.message('values'))?.text('name') ?? ''
}

/** @throws TileworkError ERR_ARGUMENT */
export function checkIndex(at: number | undefined): void {
  if (at === undefined || Number.isSafeInteger(at)) return
  throw new TileworkError('ERR_ARGUMENT', `The index of a node is ${valueText(at)}; it must be an integer.`)
}

function graphsOf(graphs: Iterable<readonly GraphInterface[]>): readonly ProtoGraph[] {
  return [...graphs].flat().map(({ message }) => ProtoGraph.of(message))
}

function nameTaken(name: string): TileworkError {
  if (name === '') return new TileworkError('ERR_ARGUMENT', 'The name is empty; a value needs one.')
  return new TileworkError('ERR_ARGUMENT', `The name ${valueText(name)} is taken in the graph.`)
}

function unknown(what: string, name: string, known: Iterable<string>): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `The graph has no ${what} ${valueText(name)}${nearestText(name, known)}`,
  )
}
