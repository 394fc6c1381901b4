/** Attributes of nodes: a name, and a value of one of fourteen kinds, or the name of a function's own attribute. */
import { TileworkError } from '../errors.js'
import type { Message } from '../formats/onnx/message.js'
import { tensorOfField } from '../formats/onnx/message_tensor.js'
import type { Tensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { Graph } from './graph.js'
import { readValueType, type ValueType } from './value_type.js'

/** In the order of their numbers. */
export const ATTRIBUTE_TYPES = [
  'UNDEFINED',
  'FLOAT',
  'INT',
  'STRING',
  'TENSOR',
  'GRAPH',
  'FLOATS',
  'INTS',
  'STRINGS',
  'TENSORS',
  'GRAPHS',
  'SPARSE_TENSOR',
  'SPARSE_TENSORS',
  'TYPE_PROTO',
  'TYPE_PROTOS',
] as const

/** Name of an attribute's kind. */
export type AttributeType = (typeof ATTRIBUTE_TYPES)[number]

/** The value of an attribute by its type. Strings are bytes and may hold anything; see `Attribute.text`. */
export type AttributeValue =
  | undefined
  | number
  | bigint
  | Uint8Array
  | Tensor
  | Graph
  | ValueType
  | readonly (number | bigint)[]
  | readonly Uint8Array[]
  | readonly Tensor[]
  | readonly Graph[]
  | readonly ValueType[]

/** A value to be set, with its type. Strings are written as UTF-8. */
export type NewAttribute =
  | { readonly type: 'FLOAT'; readonly value: number }
  | { readonly type: 'INT'; readonly value: number | bigint }
  | { readonly type: 'STRING'; readonly value: string | Uint8Array }
  | { readonly type: 'TENSOR'; readonly value: Tensor }
  | { readonly type: 'FLOATS'; readonly value: readonly number[] }
  | { readonly type: 'INTS'; readonly value: readonly (number | bigint)[] }
  | { readonly type: 'STRINGS'; readonly value: readonly (string | Uint8Array)[] }

export class Attribute {
  /** For code of the library itself. */
  readonly message: Message

  constructor(message: Message) {
    this.message = message
  }

  get name(): string {
    return this.message.text('name')
  }

  /** `UNDEFINED` where the file has none, or one that nobody knows. */
  get type(): AttributeType {
    return ATTRIBUTE_TYPES[Number(this.message.int('type') ?? 0)] ?? 'UNDEFINED'
  }

  /** Inside a function: the attribute of the function whose value this one takes; empty for none. */
  get refName(): string {
    return this.message.text('ref_attr_name')
  }

  get docString(): string {
    return this.message.text('doc_string')
  }

  get value(): AttributeValue {
    const { message } = this
    switch (this.type) {
      case 'FLOAT':
        return message.floats('f').at(-1) ?? 0
      case 'INT':
        return message.int('i') ?? 0
      case 'STRING':
        return message.byteValues('s').at(-1) ?? new Uint8Array(0)
      case 'TENSOR':
        return this.tensors[0]
      case 'SPARSE_TENSOR':
        return this.tensors[0]
      case 'GRAPH':
        return this.graphs[0]
      case 'FLOATS':
        return message.floats('floats')
      case 'INTS':
        return message.ints('ints')
      case 'STRINGS':
        return message.byteValues('strings')
      case 'TENSORS':
      case 'SPARSE_TENSORS':
        return this.tensors
      case 'GRAPHS':
        return this.graphs
      case 'TYPE_PROTO':
        return readValueType(message.message('tp'))
      case 'TYPE_PROTOS':
        return message.messages('type_protos').map(readValueType)
      default:
        return undefined
    }
  }

  /** A STRING as text. @throws TileworkError ERR_DTYPE for another type, and for bytes that are no UTF-8 */
  get text(): string {
    const { value } = this
    if (this.type !== 'STRING') {
      throw new TileworkError('ERR_DTYPE', `Attribute ${valueText(this.name)} is ${this.type}, not STRING.`)
    }
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value as Uint8Array)
    } catch (cause) {
      const message = `Attribute ${valueText(this.name)} is not valid UTF-8; its value has the bytes.`
      throw new TileworkError('ERR_DTYPE', message, { cause })
    }
  }

  /** All tensors of the attribute, whatever its type. */
  get tensors(): readonly Tensor[] {
    const { message } = this
    return TENSOR_FIELDS.flatMap((name) =>
      message.fieldsOf(name).map((field) => tensorOfField(message, field)),
    )
  }

  /** All graphs of the attribute, whatever its type. The same objects each time. */
  get graphs(): readonly Graph[] {
    return GRAPH_FIELDS.flatMap((name) => this.message.messages(name)).map((message) => Graph.of(message))
  }

  /** Takes another value. What the attribute had is gone, its name and doc string stay. */
  set({ type, value }: NewAttribute): void {
    const { message } = this
    if (!SETTERS[type]) {
      throw new TileworkError('ERR_UNSUPPORTED', `An attribute cannot be set to ${valueText(type)}.`)
    }
    for (const field of VALUE_FIELDS) if (message.has(field)) message.clear(field)
    SETTERS[type](message, value as never)
    message.setInt('type', ATTRIBUTE_TYPES.indexOf(type))
  }
}

const TENSOR_FIELDS = ['t', 'tensors', 'sparse_tensor', 'sparse_tensors'] as const
const GRAPH_FIELDS = ['g', 'graphs'] as const
const VALUE_FIELDS = [
  ...TENSOR_FIELDS,
  ...GRAPH_FIELDS,
  'f',
  'i',
  's',
  'floats',
  'ints',
  'strings',
  'tp',
  'type_protos',
  'ref_attr_name',
]

type Setters = { [New in NewAttribute as New['type']]: (message: Message, value: New['value']) => void }

const bytesOf = (value: string | Uint8Array): Uint8Array =>
  typeof value === 'string' ? Buffer.from(value, 'utf8') : value

const SETTERS: Setters = {
  FLOAT: (message, value) => message.setFloats('f', [value]),
  INT: (message, value) => message.setInt('i', value),
  STRING: (message, value) => message.setBytes('s', [bytesOf(value)]),
  TENSOR: (message, value) => message.putTensor('t', value, value.name),
  FLOATS: (message, values) => message.setFloats('floats', values),
  INTS: (message, values) => message.setInts('ints', values),
  STRINGS: (message, values) => message.setBytes('strings', values.map(bytesOf)),
}
