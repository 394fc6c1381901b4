/**
 * ONNX as data: every message of the format with its fields, where the values of each element type live, and the limits
 * of reading.
 *
 * Source: `onnx/onnx.proto` (proto2) and `onnx-operators.proto` in the repository onnx/onnx at commit f7546912; the
 * rules of the fields are its comments, and where these say less, what the Python package onnx does.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { dtypesBy } from '../../dtype/dtypes.js'
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'onnx'

/** How the values of a field are written: a varint of one meaning or another, fixed bytes, or a length and bytes. */
export type ScalarKind = 'int32' | 'int64' | 'uint64' | 'enum' | 'float' | 'double' | 'string' | 'bytes'

export interface FieldInfo {
  readonly number: number
  readonly name: string
  /** A scalar, or the name of a message. */
  readonly kind: ScalarKind | MessageName
  readonly isRepeated: boolean
  /** Whether writers put numbers of a repeated field behind each other under one tag. Readers take both. */
  readonly isPacked: boolean
  /** Fields of which only the last one on the wire is set. */
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
      ...(mark === '?' && { oneof: 'value' }),
    }
  }
  return fields
}

/** True where a field's kind is a message and no scalar. */
export function isMessageKind(kind: ScalarKind | MessageName): kind is MessageName {
  return !SCALAR_KINDS.has(kind)
}

/**
 * The number of a field.
 *
 * @throws RangeError for a name that the message does not have: a slip of the pen in this library
 */
export function fieldNumber(message: MessageName, name: string): number {
  const field = MESSAGES[message].find((each) => each?.name === name)
  if (!field) throw new RangeError(`${message} has no field ${name}`)
  return field.number
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

/** Fields of GraphProto that hold initializers; of equal names the first list wins. */
export const INITIALIZER_LISTS = ['initializer', 'sparse_initializer'] as const

/** Fields of a TensorProto that carry its values. */
export type TypedField = 'float_data' | 'int32_data' | 'int64_data' | 'double_data' | 'uint64_data'

/** Where the values of an element type live when they are not in `raw_data`. */
export interface FieldStorage {
  readonly field: TypedField
  /** Entries of the field that make `elements` elements. */
  readonly entries: number
  readonly elements: number
  /** Bytes that an entry becomes when it is packed; its low bits are kept. */
  readonly entryBytes: number
}

const ONE_BYTE = { field: 'int32_data', entries: 1, elements: 1, entryBytes: 1 } as const
const TWO_BYTES = { field: 'int32_data', entries: 1, elements: 1, entryBytes: 2 } as const

/** Strings live in `string_data` and nowhere else. Sub-byte types have one packed byte an entry. */
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
  float4_e2m1fn: { field: 'int32_data', entries: 1, elements: 2, entryBytes: 1 },
  int2: { field: 'int32_data', entries: 1, elements: 4, entryBytes: 1 },
  uint2: { field: 'int32_data', entries: 1, elements: 4, entryBytes: 1 },
}

/** Element types by `data_type`. */
export const DTYPE_OF_CODE: ReadonlyMap<number, Dtype> = dtypesBy('onnx')

/** `data_location` of a tensor whose values lie in another file. */
export const LOCATION_EXTERNAL = 1

/** Protobuf's messages end here, and other readers with them. */
export const MAX_MESSAGE_BYTES = 2 ** 31 - 1

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /** Initializers, or elements of a bare value. Large language models have some ten thousand. */
  tensors: 2 ** 22,
  /** Bytes outside payloads: as many as one message of protobuf may have. */
  headerBytes: 2 ** 31,
  /** In sizes of all files together: several tensors may name the same external bytes. */
  totalBytes: { perFileByte: 64 },
  /** The depth at which upb stops, the protobuf runtime of the Python package. */
  depth: 100,
} as const satisfies DefaultLimits

/**
 * Bytes of one name, doc string or entry of metadata of a tensor that is listed. They are kept, and parsed when the
 * tensor is made; no writer is known to store more than some kilobytes in one.
 */
export const MAX_TEXT_BYTES = 2 ** 24

/** Most files of external data. Each is an open file; old exporters wrote one a tensor. */
export const MAX_EXTERNAL_FILES = 4096

/** Most sparse tensors of a file: each is an object from the start, and no model is known to have a hundred. */
export const MAX_SPARSE_TENSORS = 10_000

/** Most entries of metadata, or of a place in another file, of one tensor: they are read whenever the tensor is. */
export const MAX_PROPERTIES = 10_000

/** Most functions of a model: those that the checker of onnx takes. */
export const MAX_FUNCTIONS = 10_000

/** Characters of a name in a message. */
const SHOWN_LENGTH = 80

/** A name or text from a file, quoted and short. */
export function quote(text: string): string {
  return text.length <= SHOWN_LENGTH
    ? JSON.stringify(text)
    : `${JSON.stringify(text.slice(0, SHOWN_LENGTH))}…`
}
