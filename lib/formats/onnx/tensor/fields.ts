/** Finds every tensor field of a model: in initializers, attributes, subgraphs, functions and training graphs. */
import { Message, type MessageField } from '../protobuf/message.js'
import { fieldInfo, type MessageName } from '../schema.js'

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
  for (const list of TENSOR_FIELDS[message.type] ?? []) {
    const { kind, isRepeated } = fieldInfo(message.type, list)
    let index = 0
    for (const field of occurrencesOf(message, list, remembers)) {
      const fieldPath = `${path}${list}${isRepeated ? `[${index++}]` : ''}`
      if (kind === 'TensorProto' || kind === 'SparseTensorProto')
        yield { owner: message, field, path: fieldPath }
      else if (field instanceof Message) yield* tensorFields(field, `${fieldPath}.`, remembers)
    }
  }
}

/** As `tensorFields`, with the values and indices of a sparse tensor instead of the tensor itself. */
export function* denseFields(message: Message, remembers = true): Generator<TensorField> {
  for (const found of tensorFields(message, '', remembers)) {
    const { field, path } = found
    const isMessage = field instanceof Message
    if (isMessage ? field.type !== 'SparseTensorProto' : field.tensor.kind !== 'sparse') yield found
    else if (isMessage) {
      for (const part of ['values', 'indices'])
        for (const each of occurrencesOf(field, part, remembers))
          yield { owner: field, field: each, path: `${path}.${part}` }
    }
  }
}

function occurrencesOf(message: Message, list: string, remembers: boolean): Iterable<MessageField> {
  return remembers ? message.fieldsOf(list) : message.eachOf(list)
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
