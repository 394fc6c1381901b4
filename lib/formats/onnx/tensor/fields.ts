/** Finds every tensor field of a model: in initializers, attributes, subgraphs, functions and training graphs. */
import type { Message, MessageField } from '../protobuf/message.js'
import { fieldNumber, MESSAGES, type MessageName } from '../schema.js'

/** A field that holds a tensor. */
export interface TensorField {
  /** The message with the field. */
  readonly owner: Message
  readonly field: MessageField
  /** For example `graph.node[3].attribute[0].t`. */
  readonly path: string
}

/**
 * Dense and sparse tensor fields of the message and its nested messages, in the order of the schema.
 *
 * @param remembers - whether parsed messages stay in memory, which edits require
 */
export function* tensorFields(message: Message, path = '', remembers = true): Generator<TensorField> {
  if (!message.fields.some(({ number }) => NUMBERS.get(message.type)?.has(number))) return
  for (const list of TENSOR_FIELDS[message.type] ?? []) {
    for (const [index, field] of message.fieldsOf(list).entries()) {
      const { kind, isRepeated } = MESSAGES[message.type][field.number]!
      const fieldPath = `${path}${list}${isRepeated ? `[${index}]` : ''}`
      if (kind === 'TensorProto' || kind === 'SparseTensorProto')
        yield { owner: message, field, path: fieldPath }
      else {
        const inside = message.messageOf(field, remembers)
        if (inside) yield* tensorFields(inside, `${fieldPath}.`, remembers)
      }
    }
  }
}

/** As `tensorFields`, with the values and indices of a sparse tensor instead of the tensor itself. */
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

/** Fields that contain tensors, directly or in nested messages, by message. */
export const TENSOR_FIELDS: Readonly<Partial<Record<MessageName, readonly string[]>>> = {
  ModelProto: ['graph', 'training_info', 'functions'],
  GraphProto: ['node', 'initializer', 'sparse_initializer'],
  NodeProto: ['attribute'],
  AttributeProto: ['t', 'g', 'tensors', 'graphs', 'sparse_tensor', 'sparse_tensors'],
  FunctionProto: ['node', 'attribute_proto'],
  TrainingInfoProto: ['initialization', 'algorithm'],
}

const NUMBERS: ReadonlyMap<MessageName, ReadonlySet<number>> = new Map(
  Object.entries(TENSOR_FIELDS).map(([message, names]) => {
    const name = message as MessageName
    return [name, new Set(names.map((each) => fieldNumber(name, each)))]
  }),
)
