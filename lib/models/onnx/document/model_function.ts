/** Functions of a model: nodes that define an operator. */
import { isInstance, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkText, checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message, MessageField } from '../../../formats/onnx/protobuf/message.js'
import { valueText } from '../../../value_text.js'
import { checkNewAttribute, ProtoAttribute } from './attribute.js'
import { checkIndex, GRAPHS, PART_UNCLONEABLE } from './graph.js'
import { metadataOf, removeMetadata, setMetadata, setOptionalText } from './metadata.js'
import { checkNewNode, ProtoNode } from './node.js'
import { setOpsetImport } from './opset_import.js'
import { firstRepeated } from './repeated_names.js'
import type { Attribute, NewAttributeValue, NewNode, Node, ValueType } from './types.js'
import { checkValueType, readValueType } from './value_type.js'

/** Identifies a function, and a call of it. */
export function functionKey(domain: string, name: string, overload: string): string {
  return JSON.stringify([domain, name, overload])
}

/** A function, identified by domain, name and overload. Its nodes can be edited as nodes of a graph. */
export class ModelFunction {
  /** @internal The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = PART_UNCLONEABLE
  /** @internal */
  readonly message: Message

  constructor(message: Message) {
    this.message = message
  }

  get domain(): string {
    return this.message.text('domain')
  }

  get name(): string {
    return this.message.text('name')
  }

  get overload(): string {
    return this.message.text('overload')
  }

  /** Empty where there is none; an empty text removes it. */
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

  /** @returns false where there is no such entry */
  removeMetadata(key: string): boolean {
    return removeMetadata(this.message, key)
  }

  /**
   * Names of the values that a call gives, by position; calls are not changed. Setting them throws ERR_ARGUMENT for an empty or repeated
   * name, the output of a node, and where a node uses a name that goes.
   */
  get inputs(): readonly string[] {
    return this.message.texts('input')
  }

  set inputs(names: readonly string[]) {
    const checked = checkNames('inputs', names)
    const produced = this.#produced()
    const taken = checked.find((name) => produced.has(name))
    if (taken !== undefined) throw wrong(`The function defines ${valueText(taken)} twice`)
    for (const gone of this.inputs) if (!checked.includes(gone)) this.#refuseUsed(gone)
    this.message.setTexts('input', checked)
  }

  /** Names of the values that a call gets, by position. Setting them throws ERR_ARGUMENT for a repeated name and an unknown value. */
  get outputs(): readonly string[] {
    return this.message.texts('output')
  }

  set outputs(names: readonly string[]) {
    const checked = checkNames('outputs', names)
    const produced = this.#produced()
    const unknown = checked.find((name) => !produced.has(name) && !this.inputs.includes(name))
    if (unknown !== undefined) throw wrong(`The function has no value ${valueText(unknown)}`)
    this.message.setTexts('output', checked)
  }

  /** Names of attributes without a default. Setting them throws ERR_ARGUMENT for an empty or repeated name. */
  get attributeNames(): readonly string[] {
    return this.message.texts('attribute')
  }

  set attributeNames(names: readonly string[]) {
    const checked = checkNames('attributeNames', names)
    this.message.setTexts('attribute', checked)
    const isNamed = (field: MessageField): boolean => checked.includes((field as Message).text('name'))
    this.message.filter('attribute_proto', (field) => !isNamed(field))
  }

  /** Attributes with default values. */
  get attributes(): readonly Attribute[] {
    return this.message.messages('attribute_proto').map((message) => new ProtoAttribute(message, GRAPHS))
  }

  /** Sets the default value of an attribute, which calls need not give then. @throws TileworkError as `Node.setAttribute` */
  setAttribute(name: string, value: NewAttributeValue): void {
    if (checkText('The name of an attribute', name) === '') throw wrong('The name of an attribute is empty')
    checkNewAttribute(this.message, value, GRAPHS)
    const known = this.message.messages('attribute_proto').find((each) => each.text('name') === name)
    const message = known ?? this.message.insert('attribute_proto')
    if (!known) message.setText('name', name)
    new ProtoAttribute(message, GRAPHS).set(value)
    const names = this.attributeNames
    if (names.includes(name))
      this.message.setTexts(
        'attribute',
        names.filter((each) => each !== name),
      )
  }

  /** @returns false where the function has no such attribute, with or without a default */
  removeAttribute(name: string): boolean {
    checkText('The name of an attribute', name)
    const names = this.attributeNames.filter((each) => each !== name)
    const isListed = names.length < this.attributeNames.length
    if (isListed) this.message.setTexts('attribute', names)
    return (
      this.message.filter('attribute_proto', (each) => (each as Message).text('name') !== name) > 0 ||
      isListed
    )
  }

  /** In file order; the same objects each time. */
  get nodes(): readonly Node[] {
    return this.message.messages('node').map((message) => ProtoNode.of(message, GRAPHS))
  }

  /**
   * Adds a node.
   *
   * @param at - index among the nodes; default: appended
   * @throws TileworkError ERR_ARGUMENT for an invalid node and for an output name that is taken
   */
  addNode(node: NewNode, at?: number): Node {
    const checked = checkNewNode(this.message, node, GRAPHS)
    checkIndex(at)
    const defined = new Set([...this.inputs, ...this.#produced()])
    const taken = checked.outputs.find((name) => name !== '' && defined.has(name))
    if (taken !== undefined) throw wrong(`The function defines ${valueText(taken)} twice`)
    const added = ProtoNode.of(this.message.insert('node', at), GRAPHS)
    added.fill(checked)
    return added
  }

  /** Adds a node in front of one of the function. @throws TileworkError as `addNode`, and ERR_ARGUMENT for another node */
  insertBefore(node: Node, added: NewNode): Node {
    return this.addNode(added, this.#indexOf(node))
  }

  /** Adds a node behind one of the function. @throws TileworkError as `insertBefore` */
  insertAfter(node: Node, added: NewNode): Node {
    return this.addNode(added, this.#indexOf(node) + 1)
  }

  /** @throws TileworkError ERR_ARGUMENT for a node that is not of the function, and for one whose outputs are used */
  removeNode(node: Node): void {
    this.#indexOf(node)
    for (const name of node.outputs) if (name !== '') this.#refuseUsed(name, node)
    this.message.remove('node', node.message)
  }

  #indexOf(node: Node): number {
    if (isInstance(node, ProtoNode) && this.message.holds('node', node.message))
      return this.message.indexOf(node.message)
    throw wrong(`${valueText(node)} is not a node of the function ${valueText(this.name)}`)
  }

  #produced(): ReadonlySet<string> {
    return new Set(this.nodes.flatMap(({ outputs }) => outputs).filter((name) => name !== ''))
  }

  #refuseUsed(name: string, except?: Node): void {
    const isUsed = (node: Node): boolean =>
      node.inputs.includes(name) || node.subgraphs.some((graph) => graph.outerNames().has(name))
    const user = this.nodes.find((node) => node !== except && isUsed(node))
    if (!user && !this.outputs.includes(name)) return
    const who = user ? `the node ${valueText(user.name)} (${user.opType})` : 'the function as its output'
    throw wrong(`${valueText(name)} is used by ${who}; replace its uses first`)
  }

  /** Versions of operator sets by domain; the empty domain is ONNX itself. */
  get opsetImports(): ReadonlyMap<string, number | bigint> {
    const imports = this.message.messages('opset_import')
    return new Map(imports.map((each) => [each.text('domain'), each.int('version') ?? 0]))
  }

  /** Sets the version of an operator set and converts no node; the empty domain is ONNX itself. */
  setOpsetImport(domain: string, version: number | bigint): void {
    setOpsetImport(this.message, domain, version)
  }

  /** Declared types of intermediate values, by name. */
  get valueTypes(): ReadonlyMap<string, ValueType> {
    const values = this.message.messages('value_info')
    return new Map(values.map((each) => [each.text('name'), readValueType(each.message('type'))]))
  }

  /** Declares the type of a value. */
  setType(name: string, type: ValueType): void {
    checkText('The name of a value', name)
    const encoded = checkValueType(type)
    const known = this.message.messages('value_info').find((each) => each.text('name') === name)
    const message = known ?? this.message.insert('value_info')
    if (!known) message.setText('name', name)
    message.setEncoded('type', encoded)
  }
}

function checkNames(list: string, names: readonly string[]): readonly string[] {
  const checked = readInput(`The ${list} of a function`, () => [
    ...checkTexts(`The ${list} of a function`, names),
  ])
  if (checked.includes('')) throw wrong(`The ${list} of a function contain an empty name`)
  const repeated = firstRepeated(checked)
  if (repeated === undefined) return checked
  throw wrong(`The ${list} of a function contain ${valueText(repeated)} twice`)
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`)
}
