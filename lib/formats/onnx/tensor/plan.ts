/**
 * Plans TensorProto and SparseTensorProto messages as segments: new bytes, and references to payloads.
 *
 * Fields are ordered by number, as the Python packages write them.
 */
import { allocateBytes } from '../../../bytes/view_limit.js'
import { DTYPES, type Dtype } from '../../../dtype/dtypes.js'
import { codeAt } from '../../../dtype/packed_codes.js'
import { TileworkError } from '../../../errors.js'
import { eachRawString } from '../../../tensor/raw_strings.js'
import { sortEntries } from '../../../tensor/sort_entries.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor, SparseTensor, StringTensor, Tensor } from '../../../tensor/tensor.js'
import { exactSizeOf } from '../../exact_size.js'
import type { WriteSegment } from '../../format.js'
import { LENGTH, VARINT } from '../protobuf/wire.js'
import { varintBytes, WireWriter } from '../protobuf/wire_writer.js'
import { FORMAT_NAME, fieldNumber, quote } from '../schema.js'
import { storageOf, TENSOR } from './header.js'
import { StrippedTensor } from './stripped.js'

/** A message as segments: bytes in memory, and references to payloads. */
export interface PlannedMessage {
  readonly byteLength: number
  readonly segments: Iterable<WriteSegment>
}

/** Builds a message from nested planned messages. */
export class MessageParts {
  readonly #segments: WriteSegment[]
  #byteLength: number

  constructor(head: Uint8Array) {
    this.#segments = [{ kind: 'bytes', bytes: head }]
    this.#byteLength = head.byteLength
  }

  add(number: number, { byteLength, segments }: PlannedMessage): void {
    const tag = new WireWriter().lengthOf(number, byteLength).finish()
    this.#segments.push({ kind: 'bytes', bytes: tag })
    for (const segment of segments) this.#segments.push(segment)
    this.#byteLength += tag.byteLength + byteLength
  }

  finish(tail: readonly WriteSegment[] = []): PlannedMessage {
    const tailBytes = tail.reduce((sum, segment) => sum + segmentBytes(segment), 0)
    return { byteLength: this.#byteLength + tailBytes, segments: [...this.#segments, ...tail] }
  }
}

/** Length of a segment in the file, in bytes. */
export function segmentBytes(segment: WriteSegment): number {
  if (segment.kind === 'bytes') return segment.bytes.byteLength
  if (segment.kind === 'tensor') return segment.tensor.storage.byteLength
  return segment.kind === 'computed' ? segment.byteLength : segment.end - segment.start
}

/**
 * Plans a TensorProto. The storage of a blocked tensor is written as a row-major array.
 *
 * @param raw - false: numbers are read and stored in the typed field
 * @param external - fields that locate external values, which are then not in the message
 * @throws TileworkError ERR_NO_DATA, and errors of reading strings and numbers
 */
export async function planTensor(
  tensor: DenseTensor | StringTensor,
  name: string,
  raw = true,
  external?: readonly WriteSegment[],
): Promise<PlannedMessage> {
  const isStripped = tensor instanceof StrippedTensor
  if (tensor.kind === 'dense' && (raw || isStripped || external !== undefined)) {
    return planRawTensor(tensor, name, external)
  }
  checkHasData(tensor)
  const head = headOf(tensor.kind === 'dense' ? storedShape(tensor) : tensor.shape, tensor.dtype)
  if (tensor.kind === 'string') head.raw(await stringField(tensor))
  const typed = tensor.kind === 'dense' ? await typedField(tensor) : undefined
  if (typed && typed.number < TENSOR.name) head.bytes(typed.number, typed.entries)
  if (name !== '') head.text(TENSOR.name, name)
  if (typed && typed.number > TENSOR.name) head.bytes(typed.number, typed.entries)
  return new MessageParts(head.finish()).finish(tailOf(tensor, external))
}

/** Plans a TensorProto with values in `raw_data`, or outside the message. As `planTensor`, but reads nothing. */
export function planRawTensor(
  tensor: DenseTensor,
  name: string,
  external?: readonly WriteSegment[],
): PlannedMessage {
  const isStripped = tensor instanceof StrippedTensor
  if (!isStripped) checkHasData(tensor)
  const head = headOf(storedShape(tensor), tensor.dtype)
  if (name !== '') head.text(TENSOR.name, name)
  const values: WriteSegment[] = []
  if (external === undefined && !isStripped) {
    const { byteLength } = tensor.storage
    head.lengthOf(TENSOR.rawData, byteLength)
    if (byteLength > 0) values.push({ kind: 'tensor', tensor })
  }
  return new MessageParts(head.finish()).finish([...values, ...tailOf(tensor, external)])
}

function checkHasData(tensor: DenseTensor | StringTensor): void {
  if (tensor.hasData) return
  throw new TileworkError('ERR_NO_DATA', `${nameOf(tensor)} has no data in its file.`, {
    format: FORMAT_NAME,
  })
}

function tailOf(tensor: Tensor, external: readonly WriteSegment[] = []): readonly WriteSegment[] {
  const [doc, metadata] = [docOf(tensor), metadataOf(tensor)]
  return [
    ...(doc.byteLength > 0 ? [{ kind: 'bytes', bytes: doc } as const] : []),
    ...external,
    ...(metadata.byteLength > 0 ? [{ kind: 'bytes', bytes: metadata } as const] : []),
  ]
}

/** All values as one packed run of the typed field. */
async function typedField(tensor: DenseTensor): Promise<{ number: number; entries: Uint8Array }> {
  const bytes = await tensor.bytes()
  const dtype = tensor.dtype as Exclude<Dtype, 'string'>
  const { number, wireType, entryBytes, entryBits } = storageOf(dtype)
  if (wireType !== VARINT) return { number, entries: bytes }
  const { kind, bits } = DTYPES[dtype]
  const isSigned = kind === 'int' && bits >= 8
  const entries = new WireWriter()
  if (entryBits !== undefined) {
    const { elements } = exactSizeOf(storedShape(tensor))
    for (let at = 0; at < elements; at++) entries.number(codeAt(entryBits, bytes, at))
    return { number, entries: entries.finish() }
  }
  for (let at = 0; at < bytes.byteLength; at += entryBytes) {
    entries.number(entryAt(bytes, at, entryBytes, isSigned))
  }
  return { number, entries: entries.finish() }
}

function entryAt(bytes: Uint8Array, at: number, entryBytes: number, isSigned: boolean): number | bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (entryBytes === 8) return isSigned ? view.getBigInt64(at, true) : view.getBigUint64(at, true)
  if (entryBytes === 4) return isSigned ? view.getInt32(at, true) : view.getUint32(at, true)
  if (entryBytes === 2) return isSigned ? view.getInt16(at, true) : view.getUint16(at, true)
  return isSigned ? view.getInt8(at) : view.getUint8(at)
}

/** All strings as fields, in memory of the length that they need: a chunk for each would take many times as much. */
async function stringField(tensor: StringTensor): Promise<Uint8Array> {
  const strings = await eachRawString(tensor)
  const tagBytes = varintBytes(TENSOR.stringData * 8 + LENGTH)
  let count = 0
  let byteLength = 0
  for (const text of strings) {
    count += 1
    byteLength += tagBytes.length + varintBytes(text.byteLength).length + text.byteLength
  }
  if (count !== tensor.size) {
    const message = `${nameOf(tensor)} returned ${count} strings; its shape has ${tensor.size}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const bytes = allocateBytes(byteLength)
  let at = 0
  for (const text of strings) {
    for (const byte of tagBytes) bytes[at++] = byte
    for (const byte of varintBytes(text.byteLength)) bytes[at++] = byte
    bytes.set(text, at)
    at += text.byteLength
  }
  return bytes
}

function headOf(shape: readonly number[], dtype: Dtype): WireWriter {
  const head = new WireWriter()
  for (const extent of shape) head.varint(TENSOR.dims, extent)
  return head.varint(TENSOR.dataType, DTYPES[dtype].onnx)
}

function docOf({ doc }: Tensor): Uint8Array {
  return doc === undefined ? new Uint8Array(0) : new WireWriter().text(TENSOR.docString, doc).finish()
}

function metadataOf({ metadata }: Tensor): Uint8Array {
  const tail = new WireWriter()
  for (const [key, value] of metadata) {
    const entry = new WireWriter()
      .text(fieldNumber('StringStringEntryProto', 'key'), key)
      .text(fieldNumber('StringStringEntryProto', 'value'), value)
    tail.message(TENSOR.metadata, entry)
  }
  return tail.finish()
}

/** Plans a SparseTensorProto: a list of values with the name, and rows of indices. */
export async function planSparse(tensor: SparseTensor, name: string): Promise<PlannedMessage> {
  const rank = tensor.shape.length
  if (rank === 0)
    throw unsupported(
      `${nameOf(tensor)} is a sparse scalar; a SparseTensorProto needs at least one dimension`,
    )
  const sorted = await sortEntries(tensor)
  const { values, indices } = sorted.storage()
  const message = new MessageParts(new Uint8Array(0))
  message.add(fieldNumber('SparseTensorProto', 'values'), await planTensor(values, name))
  message.add(fieldNumber('SparseTensorProto', 'indices'), await planTensor(indices, ''))
  const dims = new WireWriter()
  for (const extent of sorted.shape) dims.varint(fieldNumber('SparseTensorProto', 'dims'), extent)
  return message.finish([{ kind: 'bytes', bytes: dims.finish() }])
}

export function unsupported(message: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', `${message}.`, { format: FORMAT_NAME })
}

export function nameOf({ name }: { readonly name: string }): string {
  return name === '' ? 'The unnamed tensor' : `Tensor ${quote(name)}`
}
