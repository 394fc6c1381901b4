/** Nodes on top of NodeProto messages; see the interface `Node`. */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkText, checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { valueText } from '../../../value_text.js'
import { checkNewAttribute, ProtoAttribute } from './attribute.js'
import { nodeDeviceConfigurations, setNodeDeviceConfigurations } from './device_configuration.js'
import { metadataOf, removeMetadata, setMetadata, setOptionalText } from './metadata.js'
import { hasSubgraphs } from './node_names.js'
import type {
  Attribute,
  Graph,
  Graphs,
  NewAttribute,
  NewNode,
  Node,
  NodeDeviceConfiguration,
} from './types.js'

export class ProtoNode implements Node {
  /** A public field, and the first: `structuredClone` meets its symbol, and no object has a field for that alone. */
  readonly graphsByMessage: Graphs
  readonly message: Message

  private constructor(message: Message, graphs: Graphs) {
    this.graphsByMessage = graphs
    this.message = message
  }

  /** The node of a NodeProto; the same object each time. */
  static of(message: Message, graphs: Graphs): ProtoNode {
    message.view ??= new ProtoNode(message, graphs)
    return message.view as ProtoNode
  }

  get name(): string {
    return this.message.text('name')
  }

  set name(name: string) {
    this.#change(() => this.message.setText('name', name))
  }

  get opType(): string {
    return this.message.text('op_type')
  }

  set opType(opType: string) {
    this.#change(() => this.message.setText('op_type', opType))
  }

  get domain(): string {
    return standardDomain(this.message.text('domain'))
  }

  set domain(domain: string) {
    this.#change(() => this.message.setText('domain', domain))
  }

  get overload(): string {
    return this.message.text('overload')
  }

  set overload(overload: string) {
    this.#change(() => this.message.setText('overload', overload))
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  set docString(text: string) {
    this.#change(() => setOptionalText(this.message, 'doc_string', text))
  }

  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  setMetadata(key: string, value: string): void {
    this.#change(() => setMetadata(this.message, key, value))
  }

  removeMetadata(key: string): boolean {
    let isRemoved = false
    this.#change(() => {
      isRemoved = removeMetadata(this.message, key)
    })
    return isRemoved
  }

  get deviceConfigurations(): readonly NodeDeviceConfiguration[] {
    return nodeDeviceConfigurations(this.message)
  }

  set deviceConfigurations(configurations: readonly NodeDeviceConfiguration[]) {
    this.#change(() => setNodeDeviceConfigurations(this.message, configurations))
  }

  get graph(): Graph | undefined {
    const { parent } = this.message
    if (parent?.type !== 'GraphProto') return undefined
    const graph = this.graphsByMessage.of(parent)
    return graph.contains(this) ? graph : undefined
  }

  get predecessors(): readonly Node[] {
    const { graph } = this
    return [...new Set(this.inputs.flatMap((name) => graph?.producerOf(name) ?? []))]
  }

  get successors(): readonly Node[] {
    const { graph } = this
    return [...new Set(this.outputs.flatMap((name) => graph?.usersOf(name) ?? []))]
  }

  get inputs(): readonly string[] {
    return this.message.texts('input')
  }

  set inputs(names: readonly string[]) {
    this.#change(() => this.message.setTexts('input', names))
  }

  get outputs(): readonly string[] {
    return this.message.texts('output')
  }

  set outputs(names: readonly string[]) {
    const checked = readInput('The outputs of a node', () => [...checkTexts('The outputs of a node', names)])
    for (const gone of this.outputs.slice(checked.length)) if (!checked.includes(gone)) this.#refuseUsed(gone)
    this.#change(() => this.message.setTexts('output', checked))
  }

  /** Refuses to drop an output that something uses. */
  #refuseUsed(name: string): void {
    const { graph } = this
    if (!graph || name === '') return
    const user = graph.usersOf(name).find((node) => node !== this)
    if (!user && !graph.outputNames.has(name)) return
    const who = user ? `the node ${valueText(user.name)} (${user.opType})` : 'the graph as its output'
    const message = `The output ${valueText(name)} is used by ${who}; replace its uses first.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }

  get attributes(): readonly Attribute[] {
    return this.#attributes(true)
  }

  /** Subgraphs are the same objects each time, so they are remembered. */
  attributesOnce(): readonly Attribute[] {
    return this.#attributes(hasSubgraphs(this))
  }

  #attributes(remembers: boolean): readonly Attribute[] {
    return this.message
      .messages('attribute', remembers)
      .map((message) => new ProtoAttribute(message, this.graphsByMessage))
  }

  get subgraphs(): readonly Graph[] {
    return this.attributes.flatMap(({ graphs }) => graphs)
  }

  attribute(name: string): Attribute | undefined {
    return this.attributes.find((attribute) => attribute.name === name)
  }

  setAttribute(name: string, value: NewAttribute): void {
    checkText('The name of an attribute', name)
    const known = this.attribute(name)
    checkNewAttribute(known?.message ?? this.message, value, this.graphsByMessage)
    this.#change(() => {
      const attribute = known ?? new ProtoAttribute(this.message.insert('attribute'), this.graphsByMessage)
      if (!known) attribute.message.setText('name', name)
      attribute.set(value)
    })
  }

  removeAttribute(name: string): boolean {
    const { message } = this
    const found = message.messages('attribute').find((each) => each.text('name') === name)
    if (found) this.#change(() => message.remove('attribute', found))
    return found !== undefined
  }

  /** Fills an empty NodeProto. */
  fill({ opType, domain, name, inputs, outputs, attributes }: CheckedNode): void {
    const { message } = this
    if (inputs.length > 0) message.setTexts('input', inputs)
    if (outputs.length > 0) message.setTexts('output', outputs)
    if (name !== undefined) message.setText('name', name)
    message.setText('op_type', opType)
    for (const [key, value] of Object.entries(attributes)) this.setAttribute(key, value)
    if (domain !== undefined) message.setText('domain', domain)
  }

  /** Applies a change through the graph, whose name index follows; nodes of functions are in no graph. */
  #change(change: () => void): void {
    const { parent } = this.message
    if (parent?.type === 'GraphProto') this.graphsByMessage.of(parent).changeNode(this, change)
    else change()
  }
}

/** The domain of ONNX itself, which may be written as `ai.onnx`, is empty. */
export function standardDomain(domain: string): string {
  return domain === 'ai.onnx' ? '' : domain
}

/** A new node whose optional lists are present. */
export type CheckedNode = NewNode & Required<Pick<NewNode, 'inputs' | 'outputs' | 'attributes'>>

/**
 * Checks a node before anything is changed.
 *
 * @param owner - the message that the node will be in
 * @throws TileworkError ERR_ARGUMENT for an invalid node
 */
export function checkNewNode(owner: Message, node: NewNode, graphs: Graphs): CheckedNode {
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
    checkNewAttribute(owner, value, graphs)
  }
  const known = { opType, inputs, outputs, attributes }
  return { ...known, ...(domain !== undefined && { domain }), ...(name !== undefined && { name }) }
}
