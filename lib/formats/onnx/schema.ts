/**
 * ONNX as data: the messages with their fields, the field that stores the values of each element type, and the limits of
 * the reader.
 *
 * Source: `onnx/onnx.proto` (proto2) and `onnx-operators.proto` in the repository onnx/onnx at commit f7546912. The
 * comments there define the fields; where they are silent, the behavior of the Python package onnx does.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { dtypesBy } from '../../dtype/dtypes.js'
import type { DefaultLimits } from '../budget.js'
import { FIXED32, FIXED64, LENGTH, VARINT } from './protobuf/wire.js'

export const FORMAT_NAME = 'onnx'

/** Protobuf types of scalar fields that ONNX uses. */
export type ScalarKind = 'int32' | 'int64' | 'uint64' | 'enum' | 'float' | 'double' | 'string' | 'bytes'

export interface FieldInfo {
  readonly number: number
  readonly name: string
  /** A scalar, or the name of a message. */
  readonly kind: ScalarKind | MessageName
  readonly isRepeated: boolean
  /** Whether writers pack the numbers of this repeated field under one tag. Readers accept both forms. */
  readonly isPacked: boolean
  /** Wire type of one value. */
  readonly wireType: number
  /** Name of the oneof, of whose fields only the last one on the wire is set. */
  readonly oneof?: string
}

/**
 * One line a message: `number name kind`, with `*` for repeated, `!` for repeated and packed, `?` for a member of the
 * message's one oneof.
 */
// biome-ignore format: a table is read by its lines.
const MESSAGE_LINES = {
  ModelProto: '1 ir_version int64, 2 producer_name string, 3 producer_version string, 4 domain string, 5 model_version int64, 6 doc_string string, 7 graph GraphProto, 8 opset_import* OperatorSetIdProto, 14 metadata_props* StringStringEntryProto, 20 training_info* TrainingInfoProto, 25 functions* FunctionProto, 26 configuration* DeviceConfigurationProto',
  GraphProto: '1 node* NodeProto, 2 name string, 5 initializer* TensorProto, 10 doc_string string, 11 input* ValueInfoProto, 12 output* ValueInfoProto, 13 value_info* ValueInfoProto, 14 quantization_annotation* TensorAnnotation, 15 sparse_initializer* SparseTensorProto, 16 metadata_props* StringStringEntryProto',
  NodeProto: '1 input* string, 2 output* string, 3 name string, 4 op_type string, 5 attribute* AttributeProto, 6 doc_string string, 7 domain string, 8 overload string, 9 metadata_props* StringStringEntryProto, 10 device_configurations* NodeDeviceConfigurationProto',
  AttributeProto: '1 name string, 2 f float, 3 i int64, 4 s bytes, 5 t TensorProto, 6 g GraphProto, 7 floats* float, 8 ints* int64, 9 strings* bytes, 10 tensors* TensorProto, 11 graphs* GraphProto, 13 doc_string string, 14 tp TypeProto, 15 type_protos* TypeProto, 20 type enum, 21 ref_attr_name string, 22 sparse_tensor SparseTensorProto, 23 sparse_tensors* SparseTensorProto',
  ValueInfoProto: '1 name string, 2 type TypeProto, 3 doc_string string, 4 metadata_props* StringStringEntryProto',
  FunctionProto: '1 name string, 4 input* string, 5 output* string, 6 attribute* string, 7 node* NodeProto, 8 doc_string string, 9 opset_import* OperatorSetIdProto, 10 domain string, 11 attribute_proto* AttributeProto, 12 value_info* ValueInfoProto, 13 overload string, 14 metadata_props* StringStringEntryProto',
  OperatorSetIdProto: '1 domain string, 2 version int64',
  StringStringEntryProto: '1 key string, 2 value string',
  TensorAnnotation: '1 tensor_name string, 2 quant_parameter_tensor_names* StringStringEntryProto',
  TrainingInfoProto: '1 initialization GraphProto, 2 algorithm GraphProto, 3 initialization_binding* StringStringEntryProto, 4 update_binding* StringStringEntryProto',
  TensorShapeProto: '1 dim* TensorShapeDimension',
  TensorShapeDimension: '1 dim_value? int64, 2 dim_param? string, 3 denotation string',
  TypeProto: '1 tensor_type? TypeProtoTensor, 4 sequence_type? TypeProtoSequence, 5 map_type? TypeProtoMap, 6 denotation string, 7 opaque_type? TypeProtoOpaque, 8 sparse_tensor_type? TypeProtoTensor, 9 optional_type? TypeProtoSequence',
  TypeProtoTensor: '1 elem_type int32, 2 shape TensorShapeProto',
  TypeProtoSequence: '1 elem_type TypeProto',
  TypeProtoMap: '1 key_type int32, 2 value_type TypeProto',
  TypeProtoOpaque: '1 domain string, 2 name string',
  TensorProto: '1 dims* int64, 2 data_type int32, 3 segment TensorSegment, 4 float_data! float, 5 int32_data! int32, 6 string_data* bytes, 7 int64_data! int64, 8 name string, 9 raw_data bytes, 10 double_data! double, 11 uint64_data! uint64, 12 doc_string string, 13 external_data* StringStringEntryProto, 14 data_location enum, 16 metadata_props* StringStringEntryProto',
  TensorSegment: '1 begin int64, 2 end int64',
  SparseTensorProto: '1 values TensorProto, 2 indices TensorProto, 3 dims* int64',
  SequenceProto: '1 name string, 2 elem_type int32, 3 tensor_values* TensorProto, 4 sparse_tensor_values* SparseTensorProto, 5 sequence_values* SequenceProto, 6 map_values* MapProto, 7 optional_values* OptionalProto',
  MapProto: '1 name string, 2 key_type int32, 3 keys* int64, 4 string_keys* bytes, 5 values SequenceProto',
  OptionalProto: '1 name string, 2 elem_type int32, 3 tensor_value TensorProto, 4 sparse_tensor_value SparseTensorProto, 5 sequence_value SequenceProto, 6 map_value MapProto, 7 optional_value OptionalProto',
  DeviceConfigurationProto: '1 name string, 2 num_devices int32, 3 device* string',
  NodeDeviceConfigurationProto: '1 configuration_id string, 2 sharding_spec* ShardingSpecProto, 3 pipeline_stage int32',
  ShardingSpecProto: '1 tensor_name string, 2 device* int64, 3 index_to_device_group_map* IntIntListEntryProto, 4 sharded_dim* ShardedDimProto',
  IntIntListEntryProto: '1 key int64, 2 value* int64',
  ShardedDimProto: '1 axis int64, 2 simple_sharding* SimpleShardedDimProto',
  SimpleShardedDimProto: '1 dim_value? int64, 2 dim_param? string, 3 num_shards int64',
} as const

/** Name of a message. */
export type MessageName = keyof typeof MESSAGE_LINES

const SCALAR_KINDS: ReadonlySet<string> = new Set<ScalarKind>([
  'int32',
  'int64',
  'uint64',
  'enum',
  'float',
  'double',
  'string',
  'bytes',
])

/** Fields by number, for every message. Field numbers of the format are small, so a list with holes is a table. */
export const MESSAGES = Object.fromEntries(
  Object.entries(MESSAGE_LINES).map(([name, line]) => [name, fieldsOfLine(line)]),
) as unknown as Readonly<Record<MessageName, readonly (FieldInfo | undefined)[]>>

function fieldsOfLine(line: string): (FieldInfo | undefined)[] {
  const fields: (FieldInfo | undefined)[] = []
  for (const text of line.split(', ')) {
    const [number, marked, kind] = text.split(' ') as [string, string, ScalarKind | MessageName]
    const mark = /[*!?]$/.exec(marked)?.[0]
    fields[Number(number)] = {
      number: Number(number),
      name: mark ? marked.slice(0, -1) : marked,
      kind,
      isRepeated: mark === '*' || mark === '!',
      isPacked: mark === '!',
      wireType: wireTypeOf(kind),
      ...(mark === '?' && { oneof: 'value' }),
    }
  }
  return fields
}

function wireTypeOf(kind: ScalarKind | MessageName): number {
  if (isMessageKind(kind) || kind === 'string' || kind === 'bytes') return LENGTH
  if (kind === 'float') return FIXED32
  return kind === 'double' ? FIXED64 : VARINT
}

const INFOS: ReadonlyMap<MessageName, ReadonlyMap<string, FieldInfo>> = new Map(
  Object.entries(MESSAGES).map(([message, fields]) => [
    message as MessageName,
    new Map(fields.flatMap((field) => (field ? [[field.name, field] as const] : []))),
  ]),
)

/** Fields of a message by name. */
export function fieldsByName(message: MessageName): ReadonlyMap<string, FieldInfo> {
  return INFOS.get(message)!
}

/** The name of a field in camel case, as protobuf's JSON and its JavaScript objects have it. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** True for the name of a message, false for a scalar. */
export function isMessageKind(kind: ScalarKind | MessageName): kind is MessageName {
  return !SCALAR_KINDS.has(kind)
}

/**
 * The number of a field.
 *
 * @throws RangeError for an unknown field name, which is a bug in this library
 */
export function fieldNumber(message: MessageName, name: string): number {
  return fieldInfo(message, name).number
}

/** @throws RangeError as `fieldNumber` */
export function fieldInfo(message: MessageName, name: string): FieldInfo {
  const field = INFOS.get(message)!.get(name)
  if (field) return field
  throw new RangeError(`${message} has no field ${name}`)
}

/** `AttributeProto.AttributeType`: the index is the number in the file. */
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

/** Name of an attribute's type. */
export type AttributeTypeName = (typeof ATTRIBUTE_TYPES)[number]

/** Names of the values of each enum field, by number. */
export const ENUM_NAMES: Readonly<Record<string, readonly string[]>> = {
  'AttributeProto.type': ATTRIBUTE_TYPES,
  'TensorProto.data_location': ['DEFAULT', 'EXTERNAL'],
}

/** Number of known values of each enum field; protobuf keeps other numbers as unknown fields. */
export const ENUM_SIZES: Readonly<Record<string, number>> = {
  'AttributeProto.type': ENUM_NAMES['AttributeProto.type']!.length,
  'TensorProto.data_location': ENUM_NAMES['TensorProto.data_location']!.length,
}

/** Fields of GraphProto that hold initializers; of equal names the first list wins. */
export const INITIALIZER_LISTS = ['initializer', 'sparse_initializer'] as const

/** Fields of a TensorProto that carry its values. */
export type TypedField = 'float_data' | 'int32_data' | 'int64_data' | 'double_data' | 'uint64_data'

/** How the values of an element type are stored outside `raw_data`. */
export interface FieldStorage {
  readonly field: TypedField
  /** Number of entries that hold `elements` elements. */
  readonly entries: number
  readonly elements: number
  /** Bytes of a packed entry: the low bytes of the number. */
  readonly entryBytes: number
  /** Low bits of an entry that are a code of packed storage, where an entry is less than a byte of it. */
  readonly entryBits?: number
}

const ONE_BYTE = { field: 'int32_data', entries: 1, elements: 1, entryBytes: 1 } as const
/** A code of 6 bits, whose bytes are packed elsewhere. */
const ONE_CODE = { field: 'int32_data', entries: 1, elements: 1, entryBytes: 1, entryBits: 6 } as const
const TWO_BYTES = { field: 'int32_data', entries: 1, elements: 1, entryBytes: 2 } as const

/** Strings are stored in `string_data` only. An entry of a type of 2 or 4 bits holds one packed byte. */
export const FIELD_STORAGE: Readonly<Record<Exclude<Dtype, 'string'>, FieldStorage>> = {
  float32: { field: 'float_data', entries: 1, elements: 1, entryBytes: 4 },
  float64: { field: 'double_data', entries: 1, elements: 1, entryBytes: 8 },
  complex64: { field: 'float_data', entries: 2, elements: 1, entryBytes: 4 },
  complex128: { field: 'double_data', entries: 2, elements: 1, entryBytes: 8 },
  int64: { field: 'int64_data', entries: 1, elements: 1, entryBytes: 8 },
  uint64: { field: 'uint64_data', entries: 1, elements: 1, entryBytes: 8 },
  uint32: { field: 'uint64_data', entries: 1, elements: 1, entryBytes: 4 },
  int32: { field: 'int32_data', entries: 1, elements: 1, entryBytes: 4 },
  int16: TWO_BYTES,
  uint16: TWO_BYTES,
  float16: TWO_BYTES,
  bfloat16: TWO_BYTES,
  int8: ONE_BYTE,
  uint8: ONE_BYTE,
  bool: ONE_BYTE,
  float8_e4m3fn: ONE_BYTE,
  float8_e4m3fnuz: ONE_BYTE,
  float8_e5m2: ONE_BYTE,
  float8_e5m2fnuz: ONE_BYTE,
  float8_e8m0fnu: ONE_BYTE,
  int4: { field: 'int32_data', entries: 1, elements: 2, entryBytes: 1 },
  uint4: { field: 'int32_data', entries: 1, elements: 2, entryBytes: 1 },
  float6_e2m3fn: ONE_CODE,
  float6_e3m2fn: ONE_CODE,
  float4_e2m1fn: { field: 'int32_data', entries: 1, elements: 2, entryBytes: 1 },
  int2: { field: 'int32_data', entries: 1, elements: 4, entryBytes: 1 },
  uint2: { field: 'int32_data', entries: 1, elements: 4, entryBytes: 1 },
}

/** Element types by `data_type`. */
export const DTYPE_OF_CODE: ReadonlyMap<number, Dtype> = dtypesBy('onnx')

/** `data_location` of a tensor whose values are in another file. */
export const LOCATION_EXTERNAL = 1

/** Size limit of protobuf messages, which other readers enforce. */
export const MAX_MESSAGE_BYTES = 2 ** 31 - 1

/** Default limits of reading. */
export const DEFAULT_LIMITS = {
  /** Initializers, or tensors of a bare value. Large language models have about 10,000. */
  tensors: 2 ** 22,
  /** Bytes outside payloads: the size of the largest protobuf message. */
  headerBytes: 2 ** 31,
  /** Relative to the size of all files together, since several tensors may name the same external bytes. */
  totalBytes: { perFileByte: 64 },
  /** Nesting limit of upb, the protobuf runtime of the Python package. */
  depth: 100,
} as const satisfies DefaultLimits

/**
 * Limit of one name, doc string or metadata entry of a listed tensor, in bytes: they are kept in memory. Known writers
 * store a few KiB at most.
 */
export const MAX_TEXT_BYTES = 2 ** 24

/** Limit of external data files, each of which stays open. Old exporters wrote one file per tensor. */
export const MAX_EXTERNAL_FILES = 4096

/** Limit of sparse tensors in a file: each is an object from the start. No known model has a hundred. */
export const MAX_SPARSE_TENSORS = 10_000

/** Limit of `metadata_props` and of `external_data` entries of one tensor: they are parsed each time the tensor is made. */
export const MAX_PROPERTIES = 10_000

/** Limit of functions in a model: the limit of the checker of onnx. */
export const MAX_FUNCTIONS = 10_000

/** Characters of a quoted text. */
const SHOWN_LENGTH = 80

/** A text from a file, quoted and shortened for messages. */
export function quote(text: string): string {
  return text.length <= SHOWN_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, SHOWN_LENGTH))}…`
}

/** In older IR versions every initializer is an input as well. Source: docs/IR.md of ONNX, "Graphs". */
export const FIRST_IR_WITH_FREE_INITIALIZERS = 4

/** Older models have no functions. Source: the field `functions` of onnx.proto. */
export const FIRST_IR_WITH_FUNCTIONS = 8
