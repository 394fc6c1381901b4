/**
 * The rules of a TensorProto: a known type, a valid shape, and as many values as the shape says, wherever they are stored.
 *
 * Arithmetic is exact. Nothing is read or allocated here.
 */

import type { Dtype } from '../../../dtype/dtypes.js'
import { packedByteLength } from '../../../dtype/packed_codes.js'
import type { ErrorCode } from '../../../errors.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { exactSizeOf } from '../../exact_size.js'
import type { Place, Report } from '../../report.js'
import { VARINT, VARINT_BYTES } from '../protobuf/wire.js'
import { quote } from '../schema.js'
import { type Payload, type Property, storageOf, TENSOR, type TensorHeader } from './header.js'

/** Location of the values of a tensor. */
export type Placement =
  /** Packed elements in one range of the file. */
  | { readonly kind: 'range'; readonly start: number }
  /** Entries of a typed field, which must be decoded. */
  | { readonly kind: 'fields' }
  | { readonly kind: 'strings' }
  /** In another file. */
  | ExternalPlacement
  | { readonly kind: 'none'; readonly reason: string }

export interface ExternalPlacement {
  readonly kind: 'external'
  readonly location: string
  /** Byte offset of the values in that file. */
  readonly start: number
  /** Byte offset of the location in the model. */
  readonly offset: number
  /** The declared SHA-1 of that file. */
  readonly checksum?: Property
}

/** A tensor that can be listed. */
export interface CheckedTensor {
  readonly dtype: Dtype
  readonly shape: readonly number[]
  /** Bytes of the packed elements; 0 for strings. */
  readonly byteLength: number
  readonly placement: Placement
}

/** The report and the location of the tensor; the path is computed only for a finding. */
export interface TensorPlace {
  readonly report: Report
  readonly path: () => string
  readonly offset: number
}

/** Limit of elements: their bytes stay below 2^53 for every type. */
const MAX_ELEMENTS = Math.floor(Number.MAX_SAFE_INTEGER / 16)

/**
 * Checks the header of a tensor.
 *
 * @returns undefined for a tensor that cannot be listed, which is reported
 * @throws TileworkError where the report throws
 */
export function checkTensor(header: TensorHeader, where: TensorPlace): CheckedTensor | undefined {
  const { dtype } = header
  if (dtype === undefined) {
    const what = header.dtypeCode === 0 ? 'no data_type' : `the data_type ${header.dtypeCode}`
    deviation(where, 'data_type', 'ERR_DTYPE', `${nameOf(header)} has ${what}; known are 1 to 26.`)
    return undefined
  }
  const shape = checkDims(header, where)
  if (!shape) return undefined
  const { elements } = exactSizeOf(shape)
  if (elements > MAX_ELEMENTS) {
    const message = `${nameOf(header)} has ${shape.join(' x ')} elements; the limit is ${MAX_ELEMENTS}.`
    broken(where, 'dims', 'ERR_OVERFLOW', message)
    return undefined
  }
  const count = Number(elements)
  const byteLength = dtype === 'string' ? 0 : packedByteLength(dtype, count)
  const placement = place(header, dtype, count, where)
  return placement && { dtype, shape, byteLength, placement }
}

function checkDims(header: TensorHeader, where: TensorPlace): readonly number[] | undefined {
  const { dims } = header
  if (dims.length > MAX_AXES) {
    broken(where, 'dims', 'ERR_RANK', `${nameOf(header)} has too many axes; the limit is ${MAX_AXES}.`)
    return undefined
  }
  for (const [axis, extent] of dims.entries()) {
    if (extent < 0) {
      broken(
        where,
        `dims[${axis}]`,
        'ERR_HEADER',
        `${nameOf(header)} has the extent ${extent}; it must not be negative.`,
      )
      return undefined
    }
    if (typeof extent === 'bigint') {
      broken(
        where,
        `dims[${axis}]`,
        'ERR_OVERFLOW',
        `${nameOf(header)} has the extent ${extent}; the limit is 2^53 - 1.`,
      )
      return undefined
    }
  }
  return dims as readonly number[]
}

function place(header: TensorHeader, dtype: Dtype, count: number, where: TensorPlace): Placement | undefined {
  if (header.hasSegment) {
    const message = `${nameOf(header)} is a segment of a larger tensor, which is kept but not decoded.`
    where.report.note('ERR_UNSUPPORTED', message, placeOf(where, 'segment'))
    noteRaggedRuns(header, where)
    return { kind: 'none', reason: 'it is a segment of a larger tensor' }
  }
  if (header.unknownLocation !== undefined) {
    const message = `${nameOf(header)} has the data_location ${header.unknownLocation}; known are 0 and 1.`
    deviation(where, 'data_location', 'ERR_HEADER', message)
  }
  if (header.isExternal) return placeExternal(header, dtype, count, where)
  noteStrayFields(header, dtype, where)
  if (dtype === 'string') return placeStrings(header, count, where)
  if (header.rawData) return placeRaw(header, header.rawData, packedByteLength(dtype, count), where)
  return placeTyped(header, dtype, count, where)
}

function placeRaw(
  header: TensorHeader,
  { start, end }: Payload,
  needed: number,
  where: TensorPlace,
): Placement | undefined {
  const found = end - start
  if (found < needed) {
    const message = `${nameOf(header)} needs ${needed} bytes and its raw_data has ${found}.`
    broken(where, 'raw_data', 'ERR_TRUNCATED', message)
    return undefined
  }
  if (found > needed) {
    const message = `${nameOf(header)} needs ${needed} bytes and its raw_data has ${found}; the excess is ignored.`
    deviation(where, 'raw_data', 'ERR_GAP', message)
  }
  return { kind: 'range', start }
}

function placeTyped(
  header: TensorHeader,
  dtype: Exclude<Dtype, 'string'>,
  count: number,
  where: TensorPlace,
): Placement | undefined {
  const { field, number, wireType, entries, elements, entryBytes } = storageOf(dtype)
  const payload = header.payloads.get(number)
  const needed = Math.ceil(count / elements) * entries
  if (!payload) return needed === 0 ? { kind: 'fields' } : placeNothing(header, where)
  if (payload.raggedBytes !== undefined) {
    const message = `${nameOf(header)} has a packed run of ${payload.raggedBytes} bytes in its ${field}; it must be a multiple of ${entryBytes}.`
    broken(where, field, 'ERR_HEADER', message)
    return undefined
  }
  const isVarint = wireType === VARINT
  // A varint has 1 to 10 bytes; decoding and `check` count the exact number.
  const max = isVarint ? payload.byteLength : Math.floor(payload.byteLength / entryBytes)
  const min = isVarint ? Math.ceil(payload.byteLength / VARINT_BYTES) : max
  if (max < needed) {
    const message = `${nameOf(header)} needs ${needed} entries and its ${field} has ${payload.byteLength} bytes.`
    broken(where, field, 'ERR_TRUNCATED', message)
    return undefined
  }
  if (min > needed) {
    const message = `${nameOf(header)} needs ${needed} entries and its ${field} has at least ${min}; the excess is ignored.`
    deviation(where, field, 'ERR_GAP', message)
  }
  const isOneRange = !isVarint && payload.runs === 1
  return isOneRange ? { kind: 'range', start: payload.start } : { kind: 'fields' }
}

function placeStrings(header: TensorHeader, count: number, where: TensorPlace): Placement | undefined {
  const found = header.payloads.get(TENSOR.stringData)?.runs ?? 0
  if (found === 0 && count > 0) return placeNothing(header, where)
  if (found < count) {
    broken(
      where,
      'string_data',
      'ERR_TRUNCATED',
      `${nameOf(header)} needs ${count} strings and has ${found}.`,
    )
    return undefined
  }
  if (found > count) {
    const message = `${nameOf(header)} needs ${count} strings and has ${found}; the excess is ignored.`
    deviation(where, 'string_data', 'ERR_GAP', message)
  }
  return { kind: 'strings' }
}

function placeNothing(header: TensorHeader, where: TensorPlace): Placement {
  deviation(where, 'raw_data', 'ERR_NO_DATA', `${nameOf(header)} has elements and no data.`)
  return { kind: 'none', reason: 'the file has none' }
}

/** Reports values in fields that readers ignore. */
function noteStrayFields(header: TensorHeader, dtype: Dtype, where: TensorPlace): void {
  const own = dtype === 'string' ? TENSOR.stringData : storageOf(dtype).number
  const isRaw = dtype !== 'string' && header.rawData !== undefined
  const counting = isRaw ? TENSOR.rawData : own
  for (const [number, { byteLength }] of header.payloads) {
    if (number === counting || byteLength === 0) continue
    const message = `${nameOf(header)} has values in field ${number} too, which are ignored; field ${counting} is read.`
    deviation(where, '', 'ERR_HEADER', message)
  }
}

/** Reports packed numbers of a wrong length in fields that are not read: protobuf refuses the message. */
function noteRaggedRuns(header: TensorHeader, where: TensorPlace): void {
  for (const [number, { raggedBytes }] of header.payloads) {
    if (raggedBytes === undefined) continue
    const message = `${nameOf(header)} has a packed run of ${raggedBytes} bytes in field ${number}, which is no multiple of its entries.`
    deviation(where, '', 'ERR_HEADER', message)
  }
}

function placeExternal(
  header: TensorHeader,
  dtype: Dtype,
  count: number,
  where: TensorPlace,
): Placement | undefined {
  if (dtype === 'string') {
    const message = `${nameOf(header)} has dtype string; strings cannot be external.`
    deviation(where, 'external_data', 'ERR_DTYPE', message)
    return { kind: 'none', reason: 'strings cannot be external' }
  }
  for (const [number, { byteLength }] of header.payloads) {
    if (byteLength === 0) continue
    const message = `${nameOf(header)} is external and has values in field ${number} too, which are ignored.`
    deviation(where, '', 'ERR_HEADER', message)
  }
  const location = header.externalValue('location')
  if (!location || location.value === '') {
    broken(where, 'external_data', 'ERR_HEADER', `${nameOf(header)} is external but has no location.`)
    return undefined
  }
  // onnxruntime reads such a location as an address in its own memory.
  if (location.value.startsWith('*/')) {
    const message = `${nameOf(header)} has the location ${quote(location.value)}, which is not a file path.`
    broken(where, 'external_data.location', 'ERR_PATH_ESCAPE', message)
    return undefined
  }
  const start = externalNumber(header, 'offset', where)
  const length = externalNumber(header, 'length', where)
  if (start === 'broken' || length === 'broken') return undefined
  const needed = packedByteLength(dtype, count)
  if (length !== undefined && length < needed) {
    const message = `${nameOf(header)} needs ${needed} bytes and its external length is ${length}.`
    broken(where, 'external_data.length', 'ERR_TRUNCATED', message)
    return undefined
  }
  if (length !== undefined && length > needed) {
    const message = `${nameOf(header)} needs ${needed} bytes and its external length is ${length}.`
    deviation(where, 'external_data.length', 'ERR_GAP', message)
  }
  const checksum = header.externalValue('checksum')
  return {
    kind: 'external',
    location: location.value,
    start: start ?? 0,
    offset: location.offset,
    ...(checksum && { checksum }),
  }
}

/** A decimal integer without sign, space or exponent; undefined where the key is absent. */
function externalNumber(
  header: TensorHeader,
  key: 'offset' | 'length',
  where: TensorPlace,
): number | undefined | 'broken' {
  const property = header.externalValue(key)
  if (!property) return undefined
  const path = `external_data.${key}`
  if (!/^\d+$/.test(property.value)) {
    const message = `${nameOf(header)} has the external ${key} ${quote(property.value)}; it must consist of decimal digits.`
    broken(where, path, 'ERR_HEADER', message)
    return 'broken'
  }
  const value = Number(property.value)
  if (!Number.isSafeInteger(value)) {
    const message = `${nameOf(header)} has the external ${key} ${quote(property.value)}; the limit is 2^53 - 1.`
    broken(where, path, 'ERR_OVERFLOW', message)
    return 'broken'
  }
  return value
}

export function nameOf({ name }: TensorHeader): string {
  return name === '' ? 'An unnamed tensor' : `Tensor ${quote(name)}`
}

function placeOf({ path, offset }: TensorPlace, field: string): Place {
  return { path: [path(), field].filter((part) => part !== '').join('.'), offset }
}

function broken(where: TensorPlace, field: string, code: ErrorCode, message: string): void {
  where.report.broken(code, message, placeOf(where, field))
}

function deviation(where: TensorPlace, field: string, code: ErrorCode, message: string): void {
  where.report.deviation(code, message, placeOf(where, field))
}
