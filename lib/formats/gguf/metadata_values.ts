/** Values of the metadata: their bytes in a file, and what they are in JavaScript. */
import { isUtf8 } from 'node:buffer'
import { TileworkError } from '../../errors.js'
import { encodeUtf8 } from '../../utf8.js'
import { valueText } from '../../value_text.js'
import {
  FORMAT_NAME,
  type GgufValueType,
  MAX_ARRAY_DEPTH,
  U32_BYTES,
  U64_BYTES,
  VALUE_TYPES,
} from './schema.js'

/** Numbers of an array, by its element type. */
export type GgufNumbers =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | BigUint64Array
  | BigInt64Array
  | Float32Array
  | Float64Array

/** Elements of an array: a typed array of numbers, or a list of texts, of booleans or of arrays. */
export type GgufArray = GgufNumbers | readonly string[] | readonly boolean[] | readonly GgufValue[]

/** One value of the metadata. */
export type GgufValue =
  | {
      readonly type: Exclude<GgufValueType, 'array'>
      /** A bigint for 64-bit integers. */
      readonly value: number | bigint | boolean | string
    }
  | { readonly type: 'array'; readonly items: GgufValueType; readonly value: GgufArray }

/** The number of a type of values. */
export function numberOfType(type: GgufValueType): number {
  return VALUE_TYPES.findIndex(({ name }) => name === type)
}

const ARRAYS = {
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
  float32: Float32Array,
  float64: Float64Array,
} as const

type NumberType = keyof typeof ARRAYS

function isNumberType(type: GgufValueType): type is NumberType {
  return Object.hasOwn(ARRAYS, type)
}

/** How a file stores values. */
export interface ValueForm {
  readonly isLittleEndian: boolean
  /** Whether lengths have 32 bits. */
  readonly isOld: boolean
}

/** Decodes values whose lengths were checked. */
class ValueReader {
  readonly #bytes: Buffer
  readonly #view: DataView
  readonly #form: ValueForm
  #at = 0

  constructor(bytes: Uint8Array, form: ValueForm) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#form = form
  }

  /** The number of elements of an array. */
  length(): number {
    this.#type()
    return this.#size()
  }

  value(type: GgufValueType): GgufValue {
    if (type === 'array') return this.#array()
    if (type === 'string') return { type, value: this.#text() }
    if (type === 'bool') return { type, value: this.#bytes[this.#at++] !== 0 }
    return { type, value: this.#numbers(type, 1)[0]! }
  }

  #array(): GgufValue {
    const items = this.#type()
    const count = this.#size()
    if (isNumberType(items)) return { type: 'array', items, value: this.#numbers(items, count) }
    const list = <T>(read: () => T): T[] => Array.from({ length: count }, read)
    if (items === 'string') return { type: 'array', items, value: list(() => this.#text()) }
    if (items === 'bool') return { type: 'array', items, value: list(() => this.#bytes[this.#at++] !== 0) }
    return { type: 'array', items, value: list(() => this.#array()) }
  }

  #type(): GgufValueType {
    const number = this.#view.getUint32(this.#at, this.#form.isLittleEndian)
    this.#at += U32_BYTES
    return VALUE_TYPES[number]!.name
  }

  #size(): number {
    const { isLittleEndian, isOld } = this.#form
    const size = isOld
      ? this.#view.getUint32(this.#at, isLittleEndian)
      : Number(this.#view.getBigUint64(this.#at, isLittleEndian))
    this.#at += isOld ? U32_BYTES : U64_BYTES
    return size
  }

  #text(): string {
    const length = this.#size()
    const start = this.#at
    this.#at += length
    return this.#bytes.toString('utf8', start, this.#at)
  }

  /** A copy: the bytes in the file have no alignment. */
  #numbers(type: NumberType, count: number): GgufNumbers {
    const numbers = new ARRAYS[type](count)
    const bytes = Buffer.from(numbers.buffer, 0, numbers.byteLength)
    bytes.set(this.#bytes.subarray(this.#at, this.#at + numbers.byteLength))
    this.#at += numbers.byteLength
    if (!this.#form.isLittleEndian) {
      if (numbers.BYTES_PER_ELEMENT === 2) bytes.swap16()
      if (numbers.BYTES_PER_ELEMENT === 4) bytes.swap32()
      if (numbers.BYTES_PER_ELEMENT === 8) bytes.swap64()
    }
    return numbers
  }
}

/** A text of a file; what is not UTF-8 becomes U+FFFD. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** @param bytes - of the value without its type, checked by the walk */
export function decodeValue(bytes: Uint8Array, type: GgufValueType, form: ValueForm): GgufValue {
  return new ValueReader(bytes, form).value(type)
}

/** The number of elements of an array, without decoding them. @param bytes - as for `decodeValue` */
export function arrayLength(bytes: Uint8Array, form: ValueForm): number {
  return new ValueReader(bytes, form).length()
}

/** Place of the first text that is not UTF-8, or bool that is neither 0 nor 1, in checked bytes; undefined without one. */
export function badValue(
  bytes: Uint8Array,
  type: GgufValueType,
  { isLittleEndian, isOld }: ValueForm,
): { readonly at: number; readonly what: 'text' | 'bool' } | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  const size = (): number => {
    const value = isOld ? view.getUint32(at, isLittleEndian) : Number(view.getBigUint64(at, isLittleEndian))
    at += isOld ? U32_BYTES : U64_BYTES
    return value
  }
  const walk = (one: GgufValueType): { at: number; what: 'text' | 'bool' } | undefined => {
    const start = at
    if (one === 'bool') return bytes[at++]! > 1 ? { at: start, what: 'bool' } : undefined
    if (one === 'string') {
      const length = size()
      at += length
      return isUtf8(bytes.subarray(at - length, at)) ? undefined : { at: at - length, what: 'text' }
    }
    if (one !== 'array') {
      at += VALUE_TYPES[numberOfType(one)]!.bytes
      return undefined
    }
    const items = VALUE_TYPES[view.getUint32(at, isLittleEndian)]!.name
    at += U32_BYTES
    const count = size()
    if (isNumberType(items)) {
      at += count * VALUE_TYPES[numberOfType(items)]!.bytes
      return undefined
    }
    for (let item = 0; item < count; item++) {
      const found = walk(items)
      if (found) return found
    }
    return undefined
  }
  return walk(type)
}

/** A value that a caller gives: with its type, or one whose type follows from it. */
export type GgufValueInput = GgufValue | string | boolean | number | bigint | GgufNumbers | readonly string[]

/**
 * The value with its type: text is a string, whole numbers are uint32, int32 or int64, whichever holds them first, other numbers
 * float32, as gguf-py and llama.cpp write them; a bigint is uint64, below 0 int64.
 *
 * @param own - type of the value that the key has, which a number keeps
 * @throws TileworkError ERR_ARGUMENT for what has no type
 */
export function typedValue(input: GgufValueInput, key: string, own?: GgufValueType): GgufValue {
  const isNumber = typeof input === 'number' || typeof input === 'bigint'
  if (isNumber && own !== undefined && isNumberType(own)) return { type: own, value: input }
  if (typeof input === 'string') return { type: 'string', value: input }
  if (typeof input === 'boolean') return { type: 'bool', value: input }
  if (typeof input === 'bigint') return { type: input < 0n ? 'int64' : 'uint64', value: input }
  if (typeof input === 'number') return typedNumber(input)
  if (Array.isArray(input) && input.every((item) => typeof item === 'string')) {
    return { type: 'array', items: 'string', value: input }
  }
  if (ArrayBuffer.isView(input)) {
    const found = Object.entries(ARRAYS).find(([, Numbers]) => input instanceof Numbers)
    if (found) return { type: 'array', items: found[0] as NumberType, value: input as GgufNumbers }
  }
  if (typeof input === 'object' && input !== null && 'type' in input) return input as GgufValue
  throw invalid(
    key,
    input,
    'a text, a boolean, a number, a bigint, a typed array, a list of texts, or { type, value }',
  )
}

function typedNumber(value: number): GgufValue {
  if (!Number.isInteger(value) || Object.is(value, -0)) return { type: 'float32', value }
  if (value >= 0 && value < 2 ** 32) return { type: 'uint32', value }
  if (value >= -(2 ** 31) && value < 2 ** 31) return { type: 'int32', value }
  return Number.isSafeInteger(value) ? { type: 'int64', value: BigInt(value) } : { type: 'float32', value }
}

function invalid(key: string, value: unknown, expected: string): TileworkError {
  const message = `The value of the key ${valueText(key)} is ${valueText(value)}; expected ${expected}.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}

/**
 * The bytes of a value, its type first, as versions 2 and 3 store it.
 *
 * @throws TileworkError ERR_ARGUMENT for a value that its type does not hold, ERR_UNSUPPORTED for text that is not UTF-8
 */
export function encodeValue(value: GgufValue, key: string): Uint8Array {
  const chunks: Uint8Array[] = []
  appendType(chunks, value.type, key)
  appendValue(chunks, value, key, 0)
  return Buffer.concat(chunks)
}

/** A text with its length. @throws TileworkError ERR_UNSUPPORTED for a lone surrogate */
export function encodeText(text: string, what: string): Uint8Array {
  const bytes = encodeUtf8(text, what, FORMAT_NAME)
  return Buffer.concat([u64Bytes(bytes.byteLength), bytes])
}

export function u64Bytes(value: number | bigint): Uint8Array {
  const bytes = Buffer.alloc(U64_BYTES)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}

export function u32Bytes(value: number): Uint8Array {
  const bytes = Buffer.alloc(U32_BYTES)
  bytes.writeUInt32LE(value)
  return bytes
}

function appendType(chunks: Uint8Array[], type: GgufValueType, key: string): void {
  const number = numberOfType(type)
  if (number < 0) throw invalid(key, type, `the type ${VALUE_TYPES.map(({ name }) => name).join(', ')}`)
  chunks.push(u32Bytes(number))
}

function appendValue(chunks: Uint8Array[], given: GgufValue, key: string, depth: number): void {
  const { type, value } = given
  if (type === 'array') {
    if (depth === MAX_ARRAY_DEPTH)
      throw invalid(key, value, `at most ${MAX_ARRAY_DEPTH} arrays in each other`)
    appendArray(chunks, given, key, depth)
  } else if (type === 'string') {
    if (typeof value !== 'string') throw invalid(key, value, 'a text')
    chunks.push(encodeText(value, `The value of the key ${valueText(key)}`))
  } else if (type === 'bool') {
    if (typeof value !== 'boolean') throw invalid(key, value, 'true or false')
    chunks.push(Uint8Array.of(value ? 1 : 0))
  } else chunks.push(numberBytes(type, value, key))
}

function appendArray(
  chunks: Uint8Array[],
  { items, value }: GgufValue & { readonly type: 'array' },
  key: string,
  depth: number,
): void {
  appendType(chunks, items, key)
  const isList = Array.isArray(value)
  const isNumbers = isNumberType(items) && value instanceof ARRAYS[items]
  if (!isList && !isNumbers) throw invalid(key, value, `an array of ${items}`)
  chunks.push(u64Bytes(value.length))
  if (isNumbers) {
    const { buffer, byteOffset, byteLength } = value as GgufNumbers
    chunks.push(new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength) as ArrayBuffer))
    return
  }
  for (const item of value as readonly unknown[]) {
    const one = items === 'array' ? (item as GgufValue) : ({ type: items, value: item } as GgufValue)
    if (items === 'array' && one?.type !== 'array') throw invalid(key, item, 'an array')
    appendValue(chunks, one, key, depth + 1)
  }
}

/** @throws TileworkError ERR_ARGUMENT for a number beyond the type */
function numberBytes(type: NumberType, value: unknown, key: string): Uint8Array {
  const isWide = type === 'uint64' || type === 'int64'
  const isFloat = type === 'float32' || type === 'float64'
  const number = isWide && Number.isSafeInteger(value) ? BigInt(value as number) : value
  const numbers = new ARRAYS[type](1)
  if (typeof number !== (isWide ? 'bigint' : 'number')) throw invalid(key, value, `a number of ${type}`)
  numbers[0] = number as never
  if (!isFloat && numbers[0] !== number) throw invalid(key, value, `a number of ${type}`)
  return new Uint8Array(numbers.buffer)
}
