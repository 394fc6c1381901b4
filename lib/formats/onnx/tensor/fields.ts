/** Every place of a model that has a tensor: initializers, attributes, subgraphs, functions, training. */
import type { Message, MessageField } from '../protobuf/message.js'
import { fieldNumber, MESSAGES, type MessageName } from '../schema.js'

/** A field that is a tensor. */
export interface TensorField {
  /** The message that the field is in. */
  readonly owner: Message
  readonly field: MessageField
  /** For example `graph.node[3].attribute[0].t`. */
  readonly path: string
}

/**
 * Fields of the message and of those in it, dense and sparse, in the order of the schema.
 *
 * @param remembers - whether messages stay in memory that are looked into, as an edit needs it
 */
export function* tensorFields(message: Message, path = '', remembers = true): Generator<TensorField> {
  if (!message.fields.some(({ number }) => NUMBERS.get(message.type)?.has(number))) return
  for (const list of WAYS_TO_TENSORS[message.type] ?? []) {
    for (const [index, field] of message.fieldsOf(list).entries()) {
      const { kind, isRepeated } = MESSAGES[message.type][field.number]!
      const place = `${path}${list}${isRepeated ? `[${index}]` : ''}`
      if (kind === 'TensorProto' || kind === 'SparseTensorProto') yield { owner: message, field, path: place }
      else {
        const inside = message.messageOf(field, remembers)
        if (inside) yield* tensorFields(inside, `${place}.`, remembers)
      }
    }
  }
}

/** As `tensorFields`, with values and indices in the place of a sparse tensor that the file has. */
export function* denseFields(message: Message, remembers = true): Generator<TensorField> {
  for (const found of tensorFields(message, '', remembers)) {
    const { owner, field, path } = found
    const isSparse = MESSAGES[owner.type][field.number]!.kind === 'SparseTensorProto'
    const sparse = isSparse ? owner.messageOf(field, remembers) : undefined
    if (!isSparse) yield found
    for (const part of sparse ? (['values', 'indices'] as const) : []) {
      for (const each of sparse!.fieldsOf(part))
        yield { owner: sparse!, field: each, path: `${path}.${part}` }
    }
  }
}

/** Fields that are tensors or lead to some, by message. */
export const WAYS_TO_TENSORS: Readonly<Partial<Record<MessageName, readonly string[]>>> = {
  ModelProto: ['graph', 'training_info', 'functions'],
  GraphProto: ['node', 'initializer', 'sparse_initializer'],
  NodeProto: ['attribute'],
  AttributeProto: ['t', 'g', 'tensors', 'graphs', 'sparse_tensor', 'sparse_tensors'],
  FunctionProto: ['node', 'attribute_proto'],
  TrainingInfoProto: ['initialization', 'algorithm'],
}

const NUMBERS: ReadonlyMap<MessageName, ReadonlySet<number>> = new Map(
  Object.entries(WAYS_TO_TENSORS).map(([message, ways]) => {
    const name = message as MessageName
    return [name, new Set(ways.map((way) => fieldNumber(name, way)))]
  }),
)
