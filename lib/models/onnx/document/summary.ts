/** Summary of a model for `tilework inspect`: versions, inputs, outputs, operators, and where values are stored. */
import { TileworkError } from '../../../errors.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { LOCATION_EXTERNAL, type MessageName } from '../../../formats/onnx/schema.js'
import { denseFields } from '../../../formats/onnx/tensor/fields.js'
import { tensorOfMessage } from '../../../formats/onnx/tensor/from_message.js'
import { checkModel } from './check_model.js'
import { initializerName } from './graph.js'
import type { OnnxModel } from './model.js'
import type { ValueInfo } from './types.js'
import { valueTypeText } from './value_type.js'

/** A number of the file; a string beyond 2^53 - 1, which JSON numbers would round. */
type FileNumber = number | string

/** An input or output of the graph. */
export interface OnnxEnd {
  readonly name: string
  /** For example `float32 [N, 3, 224, 224]`; unknown parts are `?`. */
  readonly type: string
}

/** Count and size of the tensors that are stored in the same way. */
export interface OnnxValues {
  /** The field with the values, `external`, or `none`. */
  readonly storage: string
  /** The file of external values. */
  readonly location?: string
  readonly tensors: number
  /** Bytes of the packed elements; 0 for strings and for tensors that cannot be decoded. */
  readonly byteLength: number
}

/** The `onnx` of `tilework inspect --json`. Fields may be added, never changed. */
export interface OnnxSummary {
  readonly irVersion: FileNumber
  readonly producer: string
  readonly producerVersion: string
  readonly graph: string
  /** Versions by domain; the domain of ONNX itself is `ai.onnx`. */
  readonly opsetImports: Readonly<Record<string, FileNumber>>
  /** Nodes of the graph, its subgraphs, functions and training graphs. */
  readonly nodes: number
  readonly functions: number
  /** Node count by operator, most frequent first. Operators outside of `ai.onnx` are prefixed with their domain. */
  readonly operators: Readonly<Record<string, number>>
  /** Inputs that are not initializers. */
  readonly inputs: readonly OnnxEnd[]
  readonly outputs: readonly OnnxEnd[]
  /** All tensors: initializers and attributes. */
  readonly values: readonly OnnxValues[]
}

const OWN_DOMAIN = 'ai.onnx'

/**
 * Summarizes a model without reading payloads.
 *
 * @throws TileworkError ERR_ARGUMENT unless `model` is an OnnxModel, ERR_GRAPH for a model without a graph, ERR_HEADER and
 * ERR_TRUNCATED for broken messages
 */
export function summarizeOnnx(model: OnnxModel): OnnxSummary {
  checkModel(model, 'summarizeOnnx')
  const { graph } = model
  const { inputs } = graph
  const initializers = initializersAmong(model, new Set(inputs.map(({ name }) => name)))
  const operators = countsOf(nodesIn(model.message))
  return {
    irVersion: exact(model.irVersion),
    producer: model.producerName,
    producerVersion: model.producerVersion,
    graph: graph.name,
    opsetImports: Object.fromEntries(
      [...model.opsetImports].map(([domain, version]) => [domain || OWN_DOMAIN, exact(version)]),
    ),
    nodes: Object.values(operators).reduce((sum, count) => sum + count, 0),
    functions: model.functions.length,
    operators,
    inputs: inputs.filter(({ name }) => !initializers.has(name)).map(endOf),
    outputs: graph.outputs.map(endOf),
    values: valuesOf(model),
  }
}

/** The names that are initializers, of which a model may have a million; none of them stays in memory. */
function initializersAmong(model: OnnxModel, names: ReadonlySet<string>): ReadonlySet<string> {
  const found = new Set<string>()
  if (names.size === 0) return found
  for (const list of ['initializer', 'sparse_initializer'] as const) {
    for (const field of model.graph.message.eachOf(list)) {
      const name = initializerName(list, field)
      if (names.has(name)) found.add(name)
    }
  }
  return found
}

function exact(value: number | bigint): FileNumber {
  return typeof value === 'bigint' ? String(value) : value
}

function endOf({ name, type }: ValueInfo): OnnxEnd {
  return { name, type: valueTypeText(type) }
}

/** Fields that contain nodes, directly or in nested messages. */
const NODE_FIELDS: Partial<Record<MessageName, readonly string[]>> = {
  ModelProto: ['graph', 'functions', 'training_info'],
  GraphProto: ['node'],
  FunctionProto: ['node'],
  NodeProto: ['attribute'],
  AttributeProto: ['g', 'graphs'],
  TrainingInfoProto: ['initialization', 'algorithm'],
}

/** Operator names of all nodes. */
function* nodesIn(message: Message): Generator<string> {
  if (message.type === 'NodeProto') {
    const domain = message.text('domain')
    yield domain === '' || domain === OWN_DOMAIN
      ? message.text('op_type')
      : `${domain}.${message.text('op_type')}`
  }
  for (const name of NODE_FIELDS[message.type] ?? []) {
    for (const field of message.eachOf(name)) if (field.kind === 'message') yield* nodesIn(field)
  }
}

function countsOf(names: Iterable<string>): Record<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  const sorted = [...counts].sort(([one, few], [other, many]) => many - few || (one < other ? -1 : 1))
  return Object.fromEntries(sorted)
}

function valuesOf(model: OnnxModel): OnnxValues[] {
  const groups = new Map<string, OnnxValues>()
  for (const { field: message } of denseFields(model.message, false)) {
    if (message.kind === 'tensor') continue
    const storage = storageOf(message)
    const key = JSON.stringify(storage)
    const known = groups.get(key) ?? { ...storage, tensors: 0, byteLength: 0 }
    const byteLength = known.byteLength + byteLengthOf(message)
    groups.set(key, { ...known, tensors: known.tensors + 1, byteLength })
  }
  return [...groups.values()]
}

const VALUE_FIELDS = [
  'raw_data',
  'float_data',
  'int32_data',
  'string_data',
  'int64_data',
  'double_data',
  'uint64_data',
] as const

function storageOf(message: Message): Pick<OnnxValues, 'storage' | 'location'> {
  if (message.int('data_location') !== LOCATION_EXTERNAL) {
    return { storage: VALUE_FIELDS.find((name) => message.has(name)) ?? 'none' }
  }
  const location = message.messages('external_data').findLast((entry) => entry.text('key') === 'location')
  return { storage: 'external', location: location?.text('value') ?? '' }
}

/** 0 for a broken tensor, which the findings of the file report. */
function byteLengthOf(message: Message): number {
  try {
    const tensor = tensorOfMessage(message)
    return tensor.kind === 'dense' ? tensor.storage.byteLength : 0
  } catch (error) {
    if (error instanceof TileworkError) return 0
    throw error
  }
}
