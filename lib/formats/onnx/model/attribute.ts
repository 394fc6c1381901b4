/** Attributes of nodes: a name, and a value of one of fourteen kinds, or the name of a function's own attribute. */
import { checkObject, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import type { SparseTensor, Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { checkBytes, checkFloat, checkInt64, checkList } from '../protobuf/field_input.js'
import type { Message, MessageFile } from '../protobuf/message.js'
import { LOCATION_EXTERNAL } from '../schema.js'
import { tensorOfField } from '../tensor/message_tensor.js'
import { denseFields } from '../tensor/tensor_fields.js'
import { Graph } from './graph.js'
import { checkValueType, readValueType, type ValueType, writeValueType } from './value_type.js'

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

/** A value to be set, with its type. Strings are written as UTF-8; of graphs a copy is taken. */
export type NewAttribute =
  | { readonly type: 'FLOAT'; readonly value: number }
  | { readonly type: 'INT'; readonly value: number | bigint }
  | { readonly type: 'STRING'; readonly value: string | Uint8Array }
  | { readonly type: 'TENSOR'; readonly value: Tensor }
  | { readonly type: 'FLOATS'; readonly value: readonly number[] }
  | { readonly type: 'INTS'; readonly value: readonly (number | bigint)[] }
  | { readonly type: 'STRINGS'; readonly value: readonly (string | Uint8Array)[] }
  | { readonly type: 'TENSORS'; readonly value: readonly Tensor[] }
  | { readonly type: 'SPARSE_TENSOR'; readonly value: SparseTensor }
  | { readonly type: 'SPARSE_TENSORS'; readonly value: readonly SparseTensor[] }
  | { readonly type: 'GRAPH'; readonly value: Graph }
  | { readonly type: 'GRAPHS'; readonly value: readonly Graph[] }
  | { readonly type: 'TYPE_PROTO'; readonly value: ValueType }
  | { readonly type: 'TYPE_PROTOS'; readonly value: readonly ValueType[] }

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

  /**
   * Takes another value. What the attribute had is gone, its name and doc string stay.
   *
   * @throws TileworkError ERR_ARGUMENT for a kind that there is not, a value that is not of it, and a graph inside itself;
   * ERR_UNSUPPORTED for a graph of another model whose tensors lie in other files
   */
  set(attribute: NewAttribute): void {
    const { message } = this
    const { type, value } = checkNewAttribute(message, attribute)
    for (const field of VALUE_FIELDS) if (message.has(field)) message.clear(field)
    SETTERS[type](message, value as never)
    message.setInt('type', ATTRIBUTE_TYPES.indexOf(type))
  }
}

/**
 * Looks at an attribute before anything is changed.
 *
 * @param place - a message that it is to be inside of
 * @throws TileworkError as `Attribute.set`
 */
export function checkNewAttribute(place: Message, attribute: NewAttribute): NewAttribute {
  checkObject(attribute, 'An attribute is { type, value }')
  const { type, value } = readInput('The attribute', () => ({ ...attribute })) as NewAttribute
  if (!Object.hasOwn(SETTERS, type)) {
    throw new TileworkError('ERR_ARGUMENT', `An attribute cannot be set to ${valueText(type)}.`)
  }
  CHECKS[type](place, value as never)
  return { type, value } as NewAttribute
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
  TENSORS: (message, values) => putTensors(message, 'tensors', values),
  SPARSE_TENSOR: (message, value) => putTensors(message, 'sparse_tensor', [value]),
  SPARSE_TENSORS: (message, values) => putTensors(message, 'sparse_tensors', values),
  GRAPH: (message, value) => message.adopt('g', value.message),
  GRAPHS: (message, values) => {
    for (const { message: graph } of values) message.adopt('graphs', graph)
  },
  TYPE_PROTO: (message, value) => writeValueType(message.insert('tp'), value),
  TYPE_PROTOS: (message, values) => {
    for (const value of values) writeValueType(message.insert('type_protos'), value)
  },
  FLOATS: (message, values) => message.setFloats('floats', values),
  INTS: (message, values) => message.setInts('ints', values),
  STRINGS: (message, values) => message.setBytes('strings', values.map(bytesOf)),
}

function putTensors(message: Message, field: string, tensors: readonly Tensor[]): void {
  for (const tensor of tensors) message.putTensor(field, tensor, tensor.name)
}

const VALUE = 'The value of an attribute'
const VALUES = 'The values of an attribute'

/** Looks at values before anything is changed. */
const CHECKS: { [New in NewAttribute as New['type']]: (place: Message, value: New['value']) => void } = {
  FLOAT: (_, value) => checkFloat(VALUE, value),
  INT: (_, value) => checkInt64(VALUE, value),
  STRING: (_, value) => checkBytes(VALUE, value),
  FLOATS: (_, values) => checkEach(values, (value) => checkFloat(VALUES, value)),
  INTS: (_, values) => checkEach(values, (value) => checkInt64(VALUES, value)),
  STRINGS: (_, values) => checkEach(values, (value) => checkBytes(VALUES, value)),
  TENSOR: (_, value) => checkKind(value, ['dense', 'string']),
  TENSORS: (_, values) => checkEach(values, (value) => checkKind(value, ['dense', 'string'])),
  SPARSE_TENSOR: (_, value) => checkKind(value, ['sparse']),
  SPARSE_TENSORS: (_, values) => checkEach(values, (value) => checkKind(value, ['sparse'])),
  GRAPH: checkGraph,
  GRAPHS: (place, values) => checkEach(values, (value) => checkGraph(place, value)),
  TYPE_PROTO: (_, value) => checkValueType(value),
  TYPE_PROTOS: (_, values) => checkEach(values, checkValueType),
}

function checkEach<T>(values: readonly T[], check: (value: T) => void): void {
  checkList(VALUES, values)
  for (const value of values) check(value)
}

function checkKind(value: Tensor, kinds: readonly Tensor['kind'][]): void {
  if (kinds.includes(checkTensor(value, 'An attribute').kind)) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The attribute takes ${kinds.join(' or ')} tensors, not ${valueText(value)}.`,
  )
}

function checkGraph(message: Message, value: Graph): void {
  if (!(value instanceof Graph)) {
    throw new TileworkError('ERR_ARGUMENT', `The attribute takes a graph, not ${valueText(value)}.`)
  }
  for (let around: Message | undefined = message; around; around = around.parent) {
    if (around !== value.message) continue
    throw new TileworkError('ERR_ARGUMENT', 'A graph cannot be put inside itself.')
  }
  if (fileOf(message) !== fileOf(value.message)) refuseExternal(value.message)
}

/** The file of the model that a message is in; undefined for one that is in none. */
function fileOf(message: Message): MessageFile | undefined {
  let outermost = message
  while (outermost.parent) outermost = outermost.parent
  return outermost.origin?.file
}

function refuseExternal(graph: Message): void {
  for (const { owner, field, path } of denseFields(graph)) {
    if (owner.messageOf(field)?.int('data_location') !== LOCATION_EXTERNAL) continue
    const text = `${path} of the graph lies in a file beside another model; internalize that model first.`
    throw new TileworkError('ERR_UNSUPPORTED', text)
  }
}
