/**
 * Detects the message type of a file, which ONNX does not store. The numbers and wire types of the top-level fields, and
 * the element type, decide. The first match in this order wins:
 *
 * 1. ModelProto: a graph, an opset import or an IR version.
 * 2. TensorProto: a data_type, unpacked dims, and as many values as they say in `raw_data`, in the typed field or in an
 *    external file.
 * 3. SparseTensorProto: values that are a TensorProto.
 * 4. SequenceProto: an elem_type, and only values of that type.
 * 5. OptionalProto: as a sequence, with at most one value; elem_type 0 means none.
 * 6. MapProto: a key_type of integers or strings, keys of that type, and values.
 * 7. ModelProto with unknown fields: a graph, and a version or an opset import.
 * 8. TensorProto without values, with packed dims (no known writer), or with unknown fields.
 * 9. ModelProto that ends inside a field: an upload that was cut. Its reader reports where.
 *
 * A file that matches several of 1 to 6 is ambiguous, which is a finding.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import { packedByteLength } from '../../../dtype/packed_codes.js'
import { FileFault } from '../../file_fault.js'
import { DTYPE_OF_CODE, type FieldInfo, fieldNumber, LOCATION_EXTERNAL, MESSAGES } from '../schema.js'
import { storageOf, TENSOR, TYPED_FIELDS } from '../tensor/header.js'
import { eachField, LENGTH, type Steps, VARINT, VARINT_BYTES, WireCursor, walkSource } from './wire.js'

/** Message types of files. */
export const FILE_MESSAGES = [
  'ModelProto',
  'TensorProto',
  'SparseTensorProto',
  'SequenceProto',
  'OptionalProto',
  'MapProto',
] as const

/** Name of a message type of a file. */
export type FileMessage = (typeof FILE_MESSAGES)[number]

/** Limit of top-level fields to inspect. Each may be a jump in the file; a model has about twenty. */
const MAX_SEEN_FIELDS = 1024

/** Summary of all occurrences of one field. */
interface SeenField {
  readonly wireTypes: Set<number>
  count: number
  /** The last varint, and the product of all varints. */
  value: number
  product: number
  /** Bytes of all values together. */
  byteLength: number
  /** Range of the first value. */
  readonly start: number
  readonly end: number
}

type Seen = ReadonlyMap<number, SeenField>

/** Message types that the content matches, in the order above. */
export async function messagesOf(source: ByteSource): Promise<readonly FileMessage[]> {
  const { seen, cutField, isBroken } = await walkFields(source, 0, source.byteLength)
  if (isBroken) return isCutModel(seen, cutField) ? ['ModelProto'] : []
  if (seen.size === 0) return []
  const fitting: FileMessage[] = []
  for (const message of FILE_MESSAGES) if (await fits(message, seen, source)) fitting.push(message)
  if (fitting.length > 0) return fitting
  if (isNewerModel(seen)) return ['ModelProto']
  return isTensor(seen, true) ? ['TensorProto'] : []
}

class LimitReached extends Error {}

/** The fields of one level; undefined for bytes that are not a message. */
async function readFields(source: ByteSource, start: number, end: number): Promise<Seen | undefined> {
  const { seen, isBroken } = await walkFields(source, start, end)
  return isBroken ? undefined : seen
}

interface WalkedFields {
  /** The complete fields. */
  readonly seen: Seen
  /** Whether the bytes are not a message, or not all of one. */
  readonly isBroken: boolean
  /** The number of the length-delimited field that the end cuts. */
  readonly cutField?: number
}

async function walkFields(source: ByteSource, start: number, end: number): Promise<WalkedFields> {
  const cursor = new WireCursor(source)
  cursor.position = start
  const seen = new Map<number, SeenField>()
  let count = 0
  const steps: Steps<void> = eachField(cursor, end, () => {
    const { number, wireType, valueStart, position } = cursor
    const field = seen.get(number) ?? newField(valueStart, position)
    field.wireTypes.add(wireType)
    field.count += 1
    field.byteLength += position - valueStart
    if (wireType === VARINT) {
      field.value = cursor.int32()
      field.product *= Number(cursor.int64())
    }
    seen.set(number, field)
    count += 1
    if (count >= MAX_SEEN_FIELDS) throw new LimitReached()
    return undefined
  })
  try {
    await walkSource(steps, cursor)
  } catch (error) {
    if (error instanceof FileFault) {
      const isCut = error.code === 'ERR_TRUNCATED' && cursor.wireType === LENGTH
      return { seen, isBroken: true, ...(isCut && { cutField: cursor.number }) }
    }
    if (!(error instanceof LimitReached)) throw error
  }
  return { seen, isBroken: false }
}

function newField(start: number, end: number): SeenField {
  return { wireTypes: new Set(), count: 0, value: 0, product: 1, byteLength: 0, start, end }
}

async function fits(message: FileMessage, seen: Seen, source: ByteSource): Promise<boolean> {
  if (message === 'TensorProto') return isTensor(seen, false)
  if (!isOf(MESSAGES[message], seen)) return false
  switch (message) {
    case 'ModelProto':
      return MODEL_MARKS.some((number) => seen.has(number))
    case 'SparseTensorProto': {
      const values = seen.get(fieldNumber('SparseTensorProto', 'values'))
      const inside = values && (await readFields(source, values.start, values.end))
      return inside !== undefined && isTensor(inside, true)
    }
    case 'SequenceProto':
      return isContainer(seen, source, false)
    case 'OptionalProto':
      return isContainer(seen, source, true)
    case 'MapProto':
      return isMap(seen)
  }
}

const MODEL_MARKS = ['graph', 'opset_import', 'ir_version'].map((name) => fieldNumber('ModelProto', name))

function isNewerModel(seen: Seen): boolean {
  const [graph, ...versions] = MODEL_MARKS
  return (
    isOf(MESSAGES.ModelProto, seen, true) && seen.has(graph!) && versions.some((number) => seen.has(number))
  )
}

/** Writers start with the IR version; more than this no version of ONNX will reach soon. */
const MAX_IR_VERSION = 255

function isCutModel(seen: Seen, cutField: number | undefined): boolean {
  const version = seen.get(fieldNumber('ModelProto', 'ir_version'))?.value ?? 0
  const field = cutField === undefined ? undefined : MESSAGES.ModelProto[cutField]
  return (
    version >= 1 &&
    version <= MAX_IR_VERSION &&
    field !== undefined &&
    canBe(field, LENGTH) &&
    isOf(MESSAGES.ModelProto, seen)
  )
}

/**
 * True where every field belongs to the message and has an allowed wire type.
 *
 * @param takesUnknown - accepts unknown field numbers too
 */
function isOf(fields: readonly (FieldInfo | undefined)[], seen: Seen, takesUnknown = false): boolean {
  return [...seen].every(([number, { wireTypes }]) => {
    const field = fields[number]
    if (!field) return takesUnknown
    return [...wireTypes].every((wireType) => canBe(field, wireType))
  })
}

/** True for the wire type of the field, and for packed numbers of a repeated field. */
export function canBe(field: FieldInfo, wireType: number): boolean {
  return wireType === field.wireType || (wireType === LENGTH && field.isRepeated)
}

const VALUE_FIELDS: readonly number[] = [
  TENSOR.rawData,
  TENSOR.stringData,
  ...Object.values(TYPED_FIELDS).map(({ number }) => number),
]

/** @param isLoose - accepts rule 8 of the file head */
function isTensor(seen: Seen, isLoose: boolean): boolean {
  const dtype = DTYPE_OF_CODE.get(seen.get(TENSOR.dataType)?.value ?? 0)
  if (dtype === undefined || !isOf(MESSAGES.TensorProto, seen, isLoose)) return false
  const own = dtype === 'string' ? TENSOR.stringData : storageOf(dtype).number
  const isOwn = (number: number): boolean => number === own || number === TENSOR.rawData
  if (VALUE_FIELDS.some((number) => seen.has(number) && !isOwn(number))) return false
  return isLoose || hasValues(seen, dtype)
}

/** True for as many values as the dims say, judged by the lengths of the top-level fields. */
function hasValues(seen: Seen, dtype: Dtype): boolean {
  const dims = seen.get(TENSOR.dims)
  if (dims?.wireTypes.has(LENGTH)) return false
  const elements = dims?.product ?? 1
  if (elements === 0 || seen.get(TENSOR.dataLocation)?.value === LOCATION_EXTERNAL) return true
  if (dtype === 'string') return seen.get(TENSOR.stringData)?.count === elements
  const raw = seen.get(TENSOR.rawData)
  if (raw) return raw.byteLength >= packedByteLength(dtype, elements)
  const storage = storageOf(dtype)
  const needed = Math.ceil(elements / storage.elements) * storage.entries
  const found = seen.get(storage.number)?.byteLength ?? 0
  if (storage.wireType !== VARINT) return found === needed * storage.entryBytes
  return needed <= found && found <= VARINT_BYTES * needed
}

/** Number of the field with the values, by elem_type. */
const VALUES_OF_ELEM_TYPE: readonly number[] = [0, 3, 4, 5, 6, 7]
const ELEM_TYPE_FIELD = 2

async function isContainer(seen: Seen, source: ByteSource, isOptional: boolean): Promise<boolean> {
  const elemType = seen.get(ELEM_TYPE_FIELD)
  const valuesAt = elemType && VALUES_OF_ELEM_TYPE[elemType.value]
  if (valuesAt === undefined || (valuesAt === 0 && !isOptional)) return false
  const filled = VALUES_OF_ELEM_TYPE.filter((number) => number > 0 && seen.has(number))
  if (filled.some((number) => number !== valuesAt)) return false
  const values = seen.get(valuesAt)
  if (!values) return true
  if (isOptional && values.count > 1) return false
  if (valuesAt !== VALUES_OF_ELEM_TYPE[1]) return true
  const inside = await readFields(source, values.start, values.end)
  return inside !== undefined && isTensor(inside, true)
}

function isMap(seen: Seen): boolean {
  const keyType = DTYPE_OF_CODE.get(seen.get(ELEM_TYPE_FIELD)?.value ?? 0)
  if (keyType === undefined) return false
  const isText = keyType === 'string'
  if (!isText && !['int', 'uint'].includes(DTYPES[keyType].kind)) return false
  const [keys, texts, values] = MAP_FIELDS.map((number) => seen.has(number))
  return values === true && (isText ? texts! && !keys : keys! && !texts)
}

const MAP_FIELDS = ['keys', 'string_keys', 'values'].map((name) => fieldNumber('MapProto', name))
