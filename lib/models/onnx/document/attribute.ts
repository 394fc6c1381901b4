/** Attributes on top of AttributeProto messages; see the interface `Attribute`. */
import { checkObject, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import type { MessageFile } from '../../../formats/onnx/protobuf/edited_bytes.js'
import {
  checkBytes,
  checkFloat,
  checkInt64,
  checkList,
  checkText,
} from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { ATTRIBUTE_TYPES, LOCATION_EXTERNAL } from '../../../formats/onnx/schema.js'
import { denseFields } from '../../../formats/onnx/tensor/fields.js'
import { tensorOfField } from '../../../formats/onnx/tensor/from_message.js'
import { expectedText } from '../../../nearest_names.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import type {
  Attribute,
  AttributeType,
  AttributeValue,
  Graph,
  Graphs,
  NewAttribute,
  NewAttributeReference,
  NewAttributeValue,
} from './types.js'
import { checkValueType, readValueType, writeValueType } from './value_type.js'

export class ProtoAttribute implements Attribute {
  /** A public field, and the first: `structuredClone` meets its symbol, and no object has a field for that alone. */
  readonly graphsByMessage: Graphs
  readonly message: Message

  constructor(message: Message, graphs: Graphs) {
    this.graphsByMessage = graphs
    this.message = message
  }

  get name(): string {
    return this.message.text('name')
  }

  get type(): AttributeType {
    return ATTRIBUTE_TYPES[Number(this.message.int('type') ?? 0)] ?? 'UNDEFINED'
  }

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

  get text(): string {
    const { value } = this
    if (this.type !== 'STRING') {
      throw new TileworkError('ERR_DTYPE', `Attribute ${valueText(this.name)} is ${this.type}, not STRING.`)
    }
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value as Uint8Array)
    } catch (cause) {
      const message = `Attribute ${valueText(this.name)} is not valid UTF-8; its property value has the bytes.`
      throw new TileworkError('ERR_DTYPE', message, { cause })
    }
  }

  get tensors(): readonly Tensor[] {
    const { message } = this
    return TENSOR_FIELDS.flatMap((name) => message.fieldsOf(name).map((field) => tensorOfField(field)))
  }

  get graphs(): readonly Graph[] {
    return GRAPH_FIELDS.flatMap((name) => this.message.messages(name)).map((message) =>
      this.graphsByMessage.of(message),
    )
  }

  set(attribute: NewAttribute): void {
    const { message } = this
    const checked = checkNewAttribute(message, attribute, this.graphsByMessage)
    const { type } = checked
    for (const field of [...VALUE_FIELDS, 'ref_attr_name']) if (message.has(field)) message.clear(field)
    if ('refName' in checked) message.setText('ref_attr_name', checked.refName)
    else SETTERS[type](message, checked.value as never)
    message.setInt('type', ATTRIBUTE_TYPES.indexOf(type))
  }
}

/**
 * Checks a new value before anything is changed.
 *
 * @param owner - the message that the attribute will be in
 * @throws TileworkError as `Attribute.set`
 */
export function checkNewAttribute(owner: Message, attribute: NewAttribute, graphs: Graphs): NewAttribute {
  checkObject(attribute, 'An attribute is { type, value }')
  const given = readInput('The attribute', () => ({ ...attribute })) as Partial<
    NewAttributeReference & NewAttributeValue
  >
  const type = given.type as NewAttribute['type']
  if (!Object.hasOwn(SETTERS, type)) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `unknown attribute type ${valueText(type)}${expectedText(type, Object.keys(SETTERS))}`,
    )
  }
  if (given.refName !== undefined) {
    checkReference(owner, given.refName, given.value)
    return { type, refName: given.refName }
  }
  CHECKS[type](given.value as never, { owner, graphs })
  return { type, value: given.value } as NewAttribute
}

/** Refuses references in a graph of a model: only the body of a function has attributes to refer to. */
function checkReference(owner: Message, refName: string, value: unknown): void {
  if (checkText('The refName of an attribute', refName) === '' || value !== undefined) {
    const message = 'An attribute has a value or the name of an attribute of the function; one of them.'
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  let outermost: Message | undefined = owner
  while (outermost && outermost.type !== 'FunctionProto') {
    if (outermost.type === 'GraphProto' && outermost.parent?.type === 'ModelProto') {
      const message = `The attribute refers to ${valueText(refName)}; only nodes of a function may refer to its attributes.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    outermost = outermost.parent
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
]

/** Whether the file has a value; one that refers to an attribute of the function has none. */
export function hasValue({ message }: Attribute): boolean {
  return VALUE_FIELDS.some((field) => message.has(field))
}

type Setters = { [New in NewAttributeValue as New['type']]: (message: Message, value: New['value']) => void }

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
  TYPE_PROTO: (message, value) => writeValueType(message, 'tp', value),
  TYPE_PROTOS: (message, values) => {
    for (const value of values) writeValueType(message, 'type_protos', value)
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

/** Where a new value will be, which matters for graphs only. */
interface Destination {
  readonly owner: Message
  readonly graphs: Graphs
}

const CHECKS: { [New in NewAttributeValue as New['type']]: (value: New['value'], to: Destination) => void } =
  {
    FLOAT: (value) => checkFloat(VALUE, value),
    INT: (value) => checkInt64(VALUE, value),
    STRING: (value) => checkBytes(VALUE, value),
    FLOATS: (values) => checkEach(values, (value) => checkFloat(VALUES, value)),
    INTS: (values) => checkEach(values, (value) => checkInt64(VALUES, value)),
    STRINGS: (values) => checkEach(values, (value) => checkBytes(VALUES, value)),
    TENSOR: (value) => checkKind(value, ['dense', 'string']),
    TENSORS: (values) => checkEach(values, (value) => checkKind(value, ['dense', 'string'])),
    SPARSE_TENSOR: (value) => checkKind(value, ['sparse']),
    SPARSE_TENSORS: (values) => checkEach(values, (value) => checkKind(value, ['sparse'])),
    GRAPH: checkGraph,
    GRAPHS: (values, to) => checkEach(values, (value) => checkGraph(value, to)),
    TYPE_PROTO: (value) => checkValueType(value),
    TYPE_PROTOS: (values) => checkEach(values, checkValueType),
  }

function checkEach<T>(values: readonly T[], check: (value: T) => void): void {
  checkList(VALUES, values)
  for (const value of values) check(value)
}

function checkKind(value: Tensor, kinds: readonly Tensor['kind'][]): void {
  if (kinds.includes(checkTensor(value, 'An attribute').kind)) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The attribute takes ${kinds.join(' or ')} tensors; ${valueText(value)} was given.`,
  )
}

function checkGraph(value: Graph, { owner, graphs }: Destination): void {
  if (!graphs.isGraph(value)) {
    throw new TileworkError('ERR_ARGUMENT', `The attribute takes a graph; ${valueText(value)} was given.`)
  }
  for (let enclosing: Message | undefined = owner; enclosing; enclosing = enclosing.parent) {
    if (enclosing !== value.message) continue
    throw new TileworkError('ERR_ARGUMENT', 'A graph cannot contain itself.')
  }
  if (fileOf(owner) !== fileOf(value.message)) refuseExternal(value.message)
}

/** The file of the model that contains the message; undefined outside of a model. */
function fileOf(message: Message): MessageFile | undefined {
  let outermost = message
  while (outermost.parent) outermost = outermost.parent
  return outermost.origin?.file
}

function refuseExternal(graph: Message): void {
  for (const { field, path } of denseFields(graph)) {
    if (field.kind === 'tensor' || field.int('data_location') !== LOCATION_EXTERNAL) continue
    const text = `${path} of the graph is external data of another model; internalize that model first.`
    throw new TileworkError('ERR_UNSUPPORTED', text)
  }
}

/** The numbers of an attribute that must be INTS; undefined for one of another type, as damaged files have it. */
export function integersOf(attribute: Attribute): readonly number[] | undefined {
  return attribute.type === 'INTS' ? (attribute.value as readonly (number | bigint)[]).map(Number) : undefined
}
