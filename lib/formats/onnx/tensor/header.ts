/**
 * Reads headers of TensorProtos: dtype, dims, name, metadata, and the offset and length of each field of values.
 *
 * Payload bytes are never read. plain_runs.ts reads the headers of most initializers in the addon instead.
 */
import type { Dtype } from '../../../dtype/dtypes.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { FileFault } from '../../file_fault.js'
import {
  eachField,
  FIXED32,
  FIXED64,
  heldFields,
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  WireCursor,
} from '../protobuf/wire.js'
import {
  DTYPE_OF_CODE,
  ENUM_SIZES,
  FIELD_STORAGE,
  type FieldStorage,
  fieldNumber,
  LOCATION_EXTERNAL,
  MAX_PROPERTIES,
  MAX_TEXT_BYTES,
  type TypedField,
} from '../schema.js'

/** Field numbers of a TensorProto. */
export const TENSOR = {
  dims: fieldNumber('TensorProto', 'dims'),
  dataType: fieldNumber('TensorProto', 'data_type'),
  segment: fieldNumber('TensorProto', 'segment'),
  stringData: fieldNumber('TensorProto', 'string_data'),
  name: fieldNumber('TensorProto', 'name'),
  rawData: fieldNumber('TensorProto', 'raw_data'),
  docString: fieldNumber('TensorProto', 'doc_string'),
  externalData: fieldNumber('TensorProto', 'external_data'),
  dataLocation: fieldNumber('TensorProto', 'data_location'),
  metadata: fieldNumber('TensorProto', 'metadata_props'),
} as const

/** Number of each typed field and the wire type of its unpacked entries. */
export const TYPED_FIELDS: Readonly<
  Record<TypedField, { readonly number: number; readonly wireType: number }>
> = {
  float_data: { number: fieldNumber('TensorProto', 'float_data'), wireType: FIXED32 },
  int32_data: { number: fieldNumber('TensorProto', 'int32_data'), wireType: VARINT },
  int64_data: { number: fieldNumber('TensorProto', 'int64_data'), wireType: VARINT },
  double_data: { number: fieldNumber('TensorProto', 'double_data'), wireType: FIXED64 },
  uint64_data: { number: fieldNumber('TensorProto', 'uint64_data'), wireType: VARINT },
}

const ENTRY_WIRE_TYPES: ReadonlyMap<number, number> = new Map(
  Object.values(TYPED_FIELDS).map(({ number, wireType }) => [number, wireType]),
)

const LOCATIONS = ENUM_SIZES['TensorProto.data_location']!

/** Bytes per entry of the fields with fixed-size entries. */
const FIXED_BYTES: ReadonlyMap<number, number> = new Map([
  [TYPED_FIELDS.float_data.number, 4],
  [TYPED_FIELDS.double_data.number, 8],
])

/** An entry of `external_data` or `metadata_props`. */
export interface Property {
  readonly key: string
  readonly value: string
  /** Byte offset of the value, or of the entry where it has no value. */
  readonly offset: number
}

/** The occurrences of one field of values. */
export interface Payload {
  /** Occurrences with at least one byte; all occurrences of `string_data`. */
  runs: number
  /** Bytes as written, so varints count 1 to 10 each. */
  byteLength: number
  /** Range of the last occurrence, which is the valid one of `raw_data`. */
  start: number
  end: number
  /** Bytes of the first packed run that is not a multiple of its entry size, which protobuf rejects. */
  raggedBytes?: number
}

/** The header of one tensor. */
export class TensorHeader {
  readonly dims: (number | bigint)[] = []
  dtypeCode = 0
  name = ''
  doc: string | undefined
  hasSegment = false
  location = 0
  /** A `data_location` that ONNX does not define, which readers ignore. */
  unknownLocation: number | undefined
  readonly external: Property[] = []
  readonly metadata: Property[] = []
  /** By field number. */
  readonly payloads = new Map<number, Payload>()

  get dtype(): Dtype | undefined {
    return DTYPE_OF_CODE.get(this.dtypeCode)
  }

  get isExternal(): boolean {
    return this.location === LOCATION_EXTERNAL
  }

  get rawData(): Payload | undefined {
    return this.payloads.get(TENSOR.rawData)
  }

  /** The value of a key of `external_data`; the last of equal keys, as in the Python package onnx. */
  externalValue(key: string): Property | undefined {
    return this.external.findLast((property) => property.key === key)
  }
}

/**
 * Reads the TensorProto from the cursor's position to `end`.
 *
 * @param keep - receives the bytes of each header field; `parseHeader` reads them again
 * @throws FileFault
 */
export function* walkTensor(
  cursor: WireCursor,
  end: number,
  keep?: (field: Uint8Array) => void,
): Steps<TensorHeader> {
  const header = new TensorHeader()
  // Almost every header is in the window; a generator that could wait would cost more than the reading itself.
  heldFields(cursor, end, () => {
    if (isPayload(cursor)) notePayload(cursor, header)
    else if (!isTextField(cursor)) headerField(cursor, header, keep)
    else if (!cursor.holdsRange(cursor.start, cursor.position)) return false
    else takeText(cursor, header, keep)
    return true
  })
  yield* eachField(cursor, end, () => {
    if (isPayload(cursor)) notePayload(cursor, header)
    else if (isTextField(cursor)) return textField(cursor, header, keep)
    else headerField(cursor, header, keep)
    return undefined
  })
  return header
}

function isTextField({ number, wireType }: WireCursor): boolean {
  return wireType === LENGTH && LENGTH_FIELDS.has(number)
}

/** The name in kept header bytes, which the cursor holds from its position to `end`. */
export function nameOfHeader(cursor: WireCursor, end: number): string {
  let [from, to] = [end, end]
  while (cursor.position < end) {
    cursor.field(end)
    if (cursor.number === TENSOR.name && cursor.wireType === LENGTH)
      [from, to] = [cursor.valueStart, cursor.position]
  }
  return cursor.heldText(from, to)
}

/** Parses the header bytes that `walkTensor` passed to `keep`. */
export function parseHeader(kept: Uint8Array): TensorHeader {
  const cursor = WireCursor.over(kept)
  const steps = walkTensor(cursor, kept.byteLength)
  const step = steps.next()
  // The bytes are in memory, so the walk ends in one step.
  return step.value as TensorHeader
}

function isPayload({ number, wireType }: WireCursor): boolean {
  if (number === TENSOR.rawData || number === TENSOR.stringData) return wireType === LENGTH
  const entry = ENTRY_WIRE_TYPES.get(number)
  return entry !== undefined && (wireType === LENGTH || wireType === entry)
}

function notePayload(cursor: WireCursor, header: TensorHeader): void {
  const { number, valueStart, position } = cursor
  const byteLength = position - valueStart
  // An empty packed run holds no entry; an empty string is an entry, and empty raw_data is a present field.
  const isRun = byteLength > 0 || number === TENSOR.stringData || number === TENSOR.rawData
  if (!isRun) return
  const payload = header.payloads.get(number)
  if (payload) {
    payload.runs += 1
    payload.byteLength += byteLength
    payload.start = valueStart
    payload.end = position
  } else header.payloads.set(number, { runs: 1, byteLength, start: valueStart, end: position })
  const entryBytes = FIXED_BYTES.get(number)
  if (entryBytes === undefined || byteLength % entryBytes === 0) return
  header.payloads.get(number)!.raggedBytes ??= byteLength
}

/** Reads a number of the header. Unknown fields and known fields of another wire type are ignored. */
function headerField(
  cursor: WireCursor,
  header: TensorHeader,
  keep: ((field: Uint8Array) => void) | undefined,
): void {
  const { number, wireType, start, position } = cursor
  if (wireType !== VARINT) return
  if (number === TENSOR.dims) addDim(header.dims, cursor.int64())
  else if (number === TENSOR.dataType) header.dtypeCode = cursor.int32()
  else if (number === TENSOR.dataLocation) {
    const location = cursor.int32()
    // As in proto2, an unknown number of an enum is an unknown field.
    if (location >= 0 && location < LOCATIONS) header.location = location
    else header.unknownLocation = location
  } else return
  keep?.(cursor.held(start, position))
}

const LENGTH_FIELDS: ReadonlySet<number> = new Set([
  TENSOR.dims,
  TENSOR.segment,
  TENSOR.name,
  TENSOR.docString,
  TENSOR.externalData,
  TENSOR.metadata,
])

/** Reads a length-delimited field that the window may not hold. */
function* textField(
  cursor: WireCursor,
  header: TensorHeader,
  keep: ((field: Uint8Array) => void) | undefined,
): Steps<void> {
  const { number, start, valueStart, position: end } = cursor
  if (end - valueStart > MAX_TEXT_BYTES) {
    const message = `A name or property of a tensor has ${end - valueStart} bytes; the limit is ${MAX_TEXT_BYTES}.`
    throw new FileFault('ERR_LIMIT', message, start)
  }
  const field = yield* holdRange(cursor, start, end)
  keep?.(field)
  takeValue(header, number, field.subarray(valueStart - start), valueStart)
}

/** As `textField`, for a field in the window, which is smaller than the limit of texts. */
function takeText(
  cursor: WireCursor,
  header: TensorHeader,
  keep: ((field: Uint8Array) => void) | undefined,
): void {
  const { number, start, valueStart, position: end } = cursor
  keep?.(cursor.held(start, end))
  if (number === TENSOR.name) header.name = cursor.heldText(valueStart, end)
  else takeValue(header, number, cursor.held(valueStart, end), valueStart)
}

function takeValue(header: TensorHeader, number: number, value: Uint8Array, valueStart: number): void {
  if (number === TENSOR.name) header.name = textOf(value)
  else if (number === TENSOR.docString) header.doc = textOf(value)
  else if (number === TENSOR.segment) header.hasSegment = true
  else if (number === TENSOR.externalData) addProperty(header.external, value, valueStart)
  else if (number === TENSOR.metadata) addProperty(header.metadata, value, valueStart)
  else addPackedDims(header.dims, value, valueStart)
}

function addProperty(properties: Property[], value: Uint8Array, valueStart: number): void {
  if (properties.length === MAX_PROPERTIES) {
    throw new FileFault('ERR_LIMIT', `A tensor has more than ${MAX_PROPERTIES} properties.`, valueStart)
  }
  properties.push(propertyOf(value, valueStart))
}

/** Decodes UTF-8; invalid bytes become U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Parses a StringStringEntryProto. */
export function propertyOf(bytes: Uint8Array, offset: number): Property {
  const cursor = WireCursor.over(bytes, offset)
  const end = offset + bytes.byteLength
  let [key, value, at] = ['', '', offset]
  const steps = eachField(cursor, end, () => {
    if (cursor.wireType !== LENGTH) return undefined
    const text = textOf(cursor.held(cursor.valueStart, cursor.position))
    if (cursor.number === 1) key = text
    if (cursor.number === 2) [value, at] = [text, cursor.valueStart]
    return undefined
  })
  steps.next()
  return { key, value, offset: at }
}

function addPackedDims(dims: (number | bigint)[], bytes: Uint8Array, offset: number): void {
  const cursor = WireCursor.over(bytes, offset)
  while (cursor.position < offset + bytes.byteLength) {
    cursor.varint(offset + bytes.byteLength)
    addDim(dims, cursor.int64())
  }
}

/** Adds an extent, up to one above the rank limit: that many are refused, and each packed extent costs only one byte of file. */
export function addDim(dims: (number | bigint)[], extent: number | bigint): void {
  if (dims.length <= MAX_AXES) dims.push(extent)
}

/** Storage of an element type, with the number and wire type of its field. */
export interface TypedStorage extends FieldStorage {
  readonly number: number
  readonly wireType: number
}

/** Precomputed because every tensor of a file needs it. */
const STORAGE = Object.fromEntries(
  Object.entries(FIELD_STORAGE).map(([dtype, storage]) => [
    dtype,
    { ...storage, ...TYPED_FIELDS[storage.field] },
  ]),
) as Record<Exclude<Dtype, 'string'>, TypedStorage>

/** Storage of an element type outside `raw_data`. */
export function storageOf(dtype: Exclude<Dtype, 'string'>): TypedStorage {
  return STORAGE[dtype]
}
