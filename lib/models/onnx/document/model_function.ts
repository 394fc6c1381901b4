/** Functions of a model: nodes that define an operator. */
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { ProtoAttribute } from './attribute.js'
import { GRAPHS, PART_UNCLONEABLE } from './graph.js'
import { metadataOf } from './metadata.js'
import { ProtoNode } from './node.js'
import type { Attribute, Node, ValueType } from './types.js'
import { readValueType } from './value_type.js'

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

  get docString(): string {
    return this.message.text('doc_string')
  }

  get metadata(): ReadonlyMap<string, string> {
    return metadataOf(this.message)
  }

  get inputs(): readonly string[] {
    return this.message.texts('input')
  }

  get outputs(): readonly string[] {
    return this.message.texts('output')
  }

  /** Names of attributes without a default. */
  get attributeNames(): readonly string[] {
    return this.message.texts('attribute')
  }

  /** Attributes with default values. */
  get attributes(): readonly Attribute[] {
    return this.message.messages('attribute_proto').map((message) => new ProtoAttribute(message, GRAPHS))
  }

  /** In file order; the same objects each time. */
  get nodes(): readonly Node[] {
    return this.message.messages('node').map((message) => ProtoNode.of(message, GRAPHS))
  }

  /** Versions of operator sets by domain; the empty domain is ONNX itself. */
  get opsetImports(): ReadonlyMap<string, number | bigint> {
    const imports = this.message.messages('opset_import')
    return new Map(imports.map((each) => [each.text('domain'), each.int('version') ?? 0]))
  }

  /** Declared types of intermediate values, by name. */
  get valueTypes(): ReadonlyMap<string, ValueType> {
    const values = this.message.messages('value_info')
    return new Map(values.map((each) => [each.text('name'), readValueType(each.message('type'))]))
  }
}
