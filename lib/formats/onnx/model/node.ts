/** A node: an operator with its inputs, outputs and attributes. Empty names stand for inputs that are left out. */
import { checkText } from '../protobuf/field_input.js'
import type { Message } from '../protobuf/message.js'
import { Attribute, checkNewAttribute, type NewAttribute } from './attribute.js'
import { type CheckedNode, Graph } from './graph.js'
import { metadataOf, setMetadata } from './metadata.js'

const nodes = new WeakMap<Message, Node>()

export class Node {
  /** For code of the library itself. */
  readonly message: Message

  private constructor(message: Message) {
    this.message = message
  }

  /** The node of a NodeProto; the same object each time. */
  static of(message: Message): Node {
    const known = nodes.get(message) ?? new Node(message)
    nodes.set(message, known)
    return known
  }

  get name(): string {
    return this.message.text('name')
  }

  set name(name: string) {
    this.#tell(() => this.message.setText('name', name))
  }

  get opType(): string {
    return this.message.text('op_type')
  }

  set opType(opType: string) {
    this.#tell(() => this.message.setText('op_type', opType))
  }

  /** Empty for the operators of ONNX itself. */
  get domain(): string {
    return this.message.text('domain')
  }

  set domain(domain: string) {
    this.#tell(() => this.message.setText('domain', domain))
  }

  /** Which of several functions of a name it calls. */
  get overload(): string {
    return this.message.text('overload')
  }

  set overload(overload: string) {
    this.#tell(() => this.message.setText('overload', overload))
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  setMetadata(key: string, value: string): void {
    this.#tell(() => setMetadata(this.message, key, value))
  }

  /** The graph that it is in; undefined for a node of a function, and for one that was removed. */
  get graph(): Graph | undefined {
    const { parent } = this.message
    if (parent?.type !== 'GraphProto') return undefined
    const graph = Graph.of(parent)
    return graph.holds(this) ? graph : undefined
  }

  /** Nodes of its graph that make what it uses, each once. */
  get predecessors(): readonly Node[] {
    const { graph } = this
    return [...new Set(this.inputs.flatMap((name) => graph?.producerOf(name) ?? []))]
  }

  /** Nodes that use what it makes, each once; see `Graph.usersOf`. */
  get successors(): readonly Node[] {
    const { graph } = this
    return [...new Set(this.outputs.flatMap((name) => graph?.usersOf(name) ?? []))]
  }

  get inputs(): readonly string[] {
    return this.message.texts('input')
  }

  set inputs(names: readonly string[]) {
    this.#tell(() => this.message.setTexts('input', names))
  }

  get outputs(): readonly string[] {
    return this.message.texts('output')
  }

  set outputs(names: readonly string[]) {
    this.#tell(() => this.message.setTexts('output', names))
  }

  get attributes(): readonly Attribute[] {
    return this.message.messages('attribute').map((message) => new Attribute(message))
  }

  attribute(name: string): Attribute | undefined {
    return this.attributes.find((attribute) => attribute.name === name)
  }

  /** Sets an attribute, which becomes the last one where it was not there. @throws TileworkError as `Attribute.set` */
  setAttribute(name: string, value: NewAttribute): void {
    checkText('The name of an attribute', name)
    const known = this.attribute(name)
    checkNewAttribute(known?.message ?? this.message, value)
    this.#tell(() => {
      const attribute = known ?? new Attribute(this.message.insert('attribute'))
      if (!known) attribute.message.setText('name', name)
      attribute.set(value)
    })
  }

  /** False where there was none of that name. */
  removeAttribute(name: string): boolean {
    const { message } = this
    const field = message.fieldsOf('attribute').find((each) => message.messageOf(each)?.text('name') === name)
    if (field) this.#tell(() => message.remove(field))
    return field !== undefined
  }

  /** For code of the library itself: sets all of a node that has nothing yet. */
  fill({ opType, domain, name, inputs, outputs, attributes }: CheckedNode): void {
    if (inputs.length > 0) this.inputs = inputs
    if (outputs.length > 0) this.outputs = outputs
    if (name !== undefined) this.name = name
    this.opType = opType
    for (const [key, value] of Object.entries(attributes)) this.setAttribute(key, value)
    if (domain !== undefined) this.domain = domain
  }

  /** Makes a change that the graph of this node follows; a node of a function is in none. */
  #tell(change: () => void): void {
    const { parent } = this.message
    if (parent?.type === 'GraphProto') Graph.of(parent).follow(this, change)
    else change()
  }
}
