/**
 * Decodes stored bits to JavaScript values: one element, or all elements to a typed array. Decoding is exact, since
 * float32 represents every narrower float. The code is plain rather than fast, because the native casts are tested
 * against it.
 *
 * Storage is little-endian and typed arrays have the byte order of the machine, so this module refuses to load on a
 * big-endian machine. Of the platforms that Node supports, only s390x is big-endian.
 */
import { endianness } from 'node:os'
import { allocateBytes, checkViewLength, unfilledBytes } from '../bytes/view_limit.js'
import { TileworkError } from '../errors.js'
import { DTYPES, type Dtype, fieldsOf, isNarrowFloat, type NarrowFloat } from './dtypes.js'
import { codeAt, packedByteLength } from './packed_codes.js'
import type { TypedArray } from './typed_array.js'

if (endianness() !== 'LE') {
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    'this machine is big-endian; tilework needs a little-endian machine',
  )
}

/** The value of a bit pattern of a float below 32 bits. */
export function decodeFloatCode(dtype: NarrowFloat, code: number): number {
  const { bits, mantissaBits, bias, specials } = fieldsOf(dtype)
  if (specials === 'scale') return code === 0xff ? Number.NaN : 2 ** (code - bias)
  const signBit = 2 ** (bits - 1)
  const sign = code >= signBit ? -1 : 1
  const magnitude = code % signBit
  const exponent = Math.floor(magnitude / 2 ** mantissaBits)
  const mantissa = magnitude % 2 ** mantissaBits
  if (specials === 'ieee' && exponent === 2 ** (bits - 1 - mantissaBits) - 1) {
    return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN
  }
  if (specials === 'fn' && magnitude === signBit - 1) return Number.NaN
  if (specials === 'fnuz' && code === signBit) return Number.NaN
  const significand = exponent === 0 ? mantissa : mantissa + 2 ** mantissaBits
  return sign * significand * 2 ** (Math.max(exponent, 1) - bias - mantissaBits)
}

const tables = new Map<NarrowFloat, Float32Array>()

/** The values of all bit patterns of a type; computed once, at most 256 KiB. */
function tableOf(dtype: NarrowFloat): Float32Array {
  let table = tables.get(dtype)
  if (!table) {
    table = Float32Array.from({ length: 2 ** DTYPES[dtype].bits }, (_, code) => decodeFloatCode(dtype, code))
    tables.set(dtype, table)
  }
  return table
}

/** The bits of element `index` of a sub-byte, 8-bit or 16-bit type. */
function bitsAt(bits: number, bytes: Uint8Array, index: number): number {
  if (bits === 16) return bytes[2 * index]! | (bytes[2 * index + 1]! << 8)
  return bits === 8 ? bytes[index]! : codeAt(bits, bytes, index)
}

/**
 * Element `index` of packed storage.
 *
 * @throws TileworkError ERR_DTYPE for complex and string types, whose elements are not single numbers
 */
export function decodeElement(dtype: Dtype, bytes: Uint8Array, index: number): number | bigint | boolean {
  if (isNarrowFloat(dtype)) return decodeFloatCode(dtype, bitsAt(DTYPES[dtype].bits, bytes, index))
  const { bits, kind } = DTYPES[dtype]
  switch (kind) {
    case 'float': {
      const view = viewOf(bytes)
      return bits === 32 ? view.getFloat32(4 * index, true) : view.getFloat64(8 * index, true)
    }
    case 'int':
      return bits < 8 ? signExtend(bits, codeAt(bits, bytes, index)) : signedAt(bits, viewOf(bytes), index)
    case 'uint':
      return bits < 8 ? codeAt(bits, bytes, index) : unsignedAt(bits, viewOf(bytes), index)
    case 'bool':
      return viewOf(bytes).getUint8(index) !== 0
    case 'complex':
    case 'string':
      throw new TileworkError(
        'ERR_DTYPE',
        `an element of ${dtype} is not a single number; use toTypedArray(), or strings() of a string tensor`,
      )
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength)
}

/** Element `index` of 8 bits or more, in two's complement. */
function signedAt(bits: number, view: DataView, index: number): number | bigint {
  if (bits === 64) return view.getBigInt64(8 * index, true)
  if (bits === 32) return view.getInt32(4 * index, true)
  return bits === 16 ? view.getInt16(2 * index, true) : view.getInt8(index)
}

function unsignedAt(bits: number, view: DataView, index: number): number | bigint {
  if (bits === 64) return view.getBigUint64(8 * index, true)
  if (bits === 32) return view.getUint32(4 * index, true)
  return bits === 16 ? view.getUint16(2 * index, true) : view.getUint8(index)
}

function signExtend(bits: number, code: number): number {
  return code >= 2 ** (bits - 1) ? code - 2 ** bits : code
}

/** Detects a buffer that was transferred to a worker between read and decoding, which leaves its views empty. */
function checkHeld(bytes: Uint8Array, needed: number): void {
  if (bytes.byteLength >= needed) return
  throw new TileworkError(
    'ERR_FILE_CHANGED',
    `${bytes.byteLength} of ${needed} bytes are left; their buffer was transferred or resized after the read`,
  )
}

interface TypedArrayConstructor {
  readonly BYTES_PER_ELEMENT: number
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray
}

/**
 * The typed array whose memory format equals the storage of each type; undefined where elements are decoded one by one.
 * Complex numbers are pairs, real part first.
 */
const STORED_AS: Readonly<Record<Dtype, TypedArrayConstructor | undefined>> = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
  complex64: Float32Array,
  complex128: Float64Array,
  string: undefined,
  float16: undefined,
  bfloat16: undefined,
  float8_e4m3fn: undefined,
  float8_e4m3fnuz: undefined,
  float8_e5m2: undefined,
  float8_e5m2fnuz: undefined,
  float8_e8m0fnu: undefined,
  float6_e2m3fn: undefined,
  float6_e3m2fn: undefined,
  float4_e2m1fn: undefined,
  int4: undefined,
  uint4: undefined,
  int2: undefined,
  uint2: undefined,
}

/** An uninitialized typed array for `count` stored elements; undefined for types that must be decoded. */
export function typedArrayFor(dtype: Dtype, count: number): TypedArray | undefined {
  const stored = STORED_AS[dtype]
  if (!stored) return undefined
  const { buffer, byteLength } = unfilledBytes(packedByteLength(dtype, count))
  return new stored(buffer, 0, byteLength / stored.BYTES_PER_ELEMENT)
}

/**
 * Decodes `count` elements of packed storage. Floats below 32 bits become a Float32Array, bool a Uint8Array, complex types
 * interleaved pairs, int4 and int2 an Int8Array, uint4 and uint2 a Uint8Array, 64-bit integers bigints. The result is a
 * copy, since `bytes` may be a view of a mapped file.
 *
 * @throws TileworkError ERR_DTYPE for strings, ERR_VIEW_TOO_LARGE; ERR_FILE_CHANGED when the buffer of `bytes` was transferred
 */
export function decodeAll(dtype: Dtype, bytes: Uint8Array, count: number): TypedArray {
  checkHeld(bytes, packedByteLength(dtype, count))
  const stored = STORED_AS[dtype]
  if (stored) return copyAs(stored, bytes.subarray(0, packedByteLength(dtype, count)))
  if (isNarrowFloat(dtype)) return decodeFloats(dtype, bytes, count)
  const { bits, kind } = DTYPES[dtype]
  if (kind === 'string') throw new TileworkError('ERR_DTYPE', 'strings have no typed array; use strings()')
  const codes = allocateBytes(count)
  for (let i = 0; i < count; i++) codes[i] = codeAt(bits, bytes, i)
  if (kind === 'uint') return codes
  const values = new Int8Array(codes.buffer)
  for (let i = 0; i < count; i++) values[i] = signExtend(bits, codes[i]!)
  return values
}

function decodeFloats(dtype: NarrowFloat, bytes: Uint8Array, count: number): Float32Array {
  checkViewLength(4 * count)
  const table = tableOf(dtype)
  const values = new Float32Array(allocateBytes(4 * count).buffer)
  const { bits } = DTYPES[dtype]
  for (let i = 0; i < count; i++) values[i] = table[bitsAt(bits, bytes, i)]!
  return values
}

/** A typed array with a copy of `bytes`. */
function copyAs(type: TypedArrayConstructor, bytes: Uint8Array): TypedArray {
  const copy = allocateBytes(bytes.byteLength)
  copy.set(bytes)
  return new type(copy.buffer, 0, copy.byteLength / type.BYTES_PER_ELEMENT)
}

/**
 * The raw bits of `count` elements, one element per entry: 16-bit floats in a Uint16Array, 8-bit floats and sub-byte types in
 * a Uint8Array.
 *
 * @throws TileworkError ERR_DTYPE for other types, whose storage is a typed array already; ERR_FILE_CHANGED when the buffer of
 * `bytes` was transferred
 */
export function decodeCodes(dtype: Dtype, bytes: Uint8Array, count: number): Uint8Array | Uint16Array {
  const { bits } = DTYPES[dtype]
  if (!isNarrowFloat(dtype) && (bits === 0 || bits >= 8)) {
    throw new TileworkError(
      'ERR_DTYPE',
      `bits() does not support ${dtype}; it takes floats of 16 bits or fewer and sub-byte types`,
    )
  }
  checkHeld(bytes, packedByteLength(dtype, count))
  if (bits >= 8) {
    const type = bits === 16 ? Uint16Array : Uint8Array
    return copyAs(type, bytes.subarray(0, packedByteLength(dtype, count))) as Uint8Array | Uint16Array
  }
  const codes = allocateBytes(count)
  for (let i = 0; i < count; i++) codes[i] = codeAt(bits, bytes, i)
  return codes
}
