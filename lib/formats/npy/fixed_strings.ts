/**
 * numpy's fixed-length strings: bytes (`S`), or code points of four bytes (`U`). Shorter strings are padded with zeros,
 * which numpy strips on reading, so no string ends in a zero.
 */
import { isUtf8 } from 'node:buffer'
import type { ByteSource } from '../../bytes/source.js'
import { allocateBytes } from '../../bytes/view_limit.js'
import { TileworkError } from '../../errors.js'
import { BaseTensor } from '../../tensor/base_tensor.js'
import { decodeStrings } from '../../tensor/decode_strings.js'
import { eachRawString } from '../../tensor/raw_strings.js'
import type { StringTensor } from '../../tensor/tensor.js'
import type { ItemType } from './descr.js'
import { DESCR_KEY } from './schema.js'

const LAST_CODE_POINT = 0x10ffff

export interface FixedStringsInit {
  readonly source: ByteSource
  readonly start: number
  readonly type: ItemType
  readonly shape: readonly number[]
  /** True where the first axis varies fastest. */
  readonly isFortran: boolean
  readonly name: string
}

export class FixedStringTensor extends BaseTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly hasData = true
  readonly name: string
  readonly shape: readonly number[]
  readonly metadata: ReadonlyMap<string, string>
  readonly #init: FixedStringsInit

  constructor(init: FixedStringsInit) {
    super()
    this.name = init.name
    this.shape = Object.freeze([...init.shape])
    this.metadata = new Map(init.type.descr === undefined ? [] : [[DESCR_KEY, init.type.descr]])
    this.#init = init
  }

  /** Decodes byte items as UTF-8. @throws TileworkError ERR_DTYPE for an item that is not valid text */
  async strings(): Promise<readonly string[]> {
    if (this.#init.type.kind === 'bytes') return decodeStrings(await this.rawStrings(), this.name)
    return this.#items((item, index) => this.#text(item, index))
  }

  /** Text items are converted to UTF-8. */
  async rawStrings(): Promise<readonly Uint8Array[]> {
    if (this.#init.type.kind === 'bytes') return this.#items((item) => item)
    const encoder = new TextEncoder()
    return this.#items((item, index) => encoder.encode(this.#text(item, index)))
  }

  /** See `eachRawString`. */
  async eachRawString(): Promise<Iterable<Uint8Array>> {
    const bytes = await this.#read()
    const encoder = new TextEncoder()
    const isText = this.#init.type.kind === 'text'
    const encode = (item: Uint8Array, index: number) =>
      isText ? encoder.encode(this.#text(item, index)) : item
    return { [Symbol.iterator]: () => this.#each(bytes, encode) }
  }

  async #items<Item>(read: (item: Uint8Array, index: number) => Item): Promise<Item[]> {
    return Array.from(this.#each(await this.#read(), read))
  }

  #read(): Promise<Uint8Array> {
    const { source, start, type } = this.#init
    return source.read(start, start + this.size * type.itemBytes)
  }

  /** The items in row-major order, without trailing zeros. */
  *#each<Item>(bytes: Uint8Array, read: (item: Uint8Array, index: number) => Item): Generator<Item> {
    const { itemBytes, kind } = this.#init.type
    let index = 0
    for (const slot of this.#slots()) {
      const item = bytes.subarray(slot * itemBytes, (slot + 1) * itemBytes)
      yield read(kind === 'text' ? item : cutZeros(item), index++)
    }
  }

  /** Storage positions of the items, in row-major order of their indices. */
  *#slots(): Iterable<number> {
    const { size, shape } = this
    if (!this.#init.isFortran) {
      for (let slot = 0; slot < size; slot++) yield slot
      return
    }
    const strides = fortranStrides(shape)
    for (let index = 0; index < size; index++) {
      let remaining = index
      let slot = 0
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        slot += (remaining % shape[axis]!) * strides[axis]!
        remaining = Math.floor(remaining / shape[axis]!)
      }
      yield slot
    }
  }

  #text(item: Uint8Array, index: number): string {
    const codes = codePointsOf(item, this.#init.type.swapBytes !== 4)
    const bad = codes.find((code) => code > LAST_CODE_POINT)
    if (bad !== undefined) {
      throw new TileworkError(
        'ERR_DTYPE',
        `Item ${index} has the code ${bad}; code points end at ${LAST_CODE_POINT}.`,
      )
    }
    return codes.map((code) => String.fromCodePoint(code)).join('')
  }
}

/** Strides in items per axis; the first axis varies fastest. */
function fortranStrides(shape: readonly number[]): number[] {
  let stride = 1
  return shape.map((extent) => {
    const own = stride
    stride *= extent
    return own
  })
}

function cutZeros(item: Uint8Array): Uint8Array {
  let end = item.length
  while (end > 0 && item[end - 1] === 0) end -= 1
  return item.subarray(0, end)
}

function codePointsOf(item: Uint8Array, isLittleEndian: boolean): number[] {
  const view = new DataView(item.buffer, item.byteOffset, item.byteLength)
  const codes: number[] = []
  for (let at = 0; at < item.byteLength; at += 4) codes.push(view.getUint32(at, isLittleEndian))
  while (codes.at(-1) === 0) codes.pop()
  return codes
}

/** Byte offset of the first invalid code point; -1 where all are valid. */
export function firstBadText(bytes: Uint8Array, isLittleEndian: boolean): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + 4 <= bytes.byteLength; at += 4) {
    if (view.getUint32(at, isLittleEndian) > LAST_CODE_POINT) return at
  }
  return -1
}

/** Strings encoded as a numpy array. */
export interface EncodedStrings {
  readonly descr: string
  readonly bytes: Uint8Array
}

/**
 * Encodes strings in row-major order as items of the longest string's length: as text (`U`) where all are valid UTF-8 and
 * `kept` is not a byte type, otherwise as bytes (`S`).
 *
 * @throws TileworkError ERR_UNSUPPORTED for a string that ends in a zero, which numpy would strip; ERR_ARGUMENT
 */
export async function encodeStrings(
  tensor: StringTensor,
  kept: ItemType | undefined,
): Promise<EncodedStrings> {
  const raw = await eachRawString(tensor)
  let count = 0
  let isText = kept?.kind !== 'bytes'
  let longest = 1
  let longestText = 1
  for (const item of raw) {
    if (item.at(-1) === 0) {
      const message = `String ${count} of tensor "${tensor.name}" ends in a zero; numpy strips it as padding.`
      throw new TileworkError('ERR_UNSUPPORTED', message)
    }
    count += 1
    isText &&= isUtf8(item)
    longest = Math.max(longest, item.length)
    if (isText) longestText = Math.max(longestText, codePoints(item))
  }
  if (count !== tensor.size) {
    const message = `Tensor "${tensor.name}" returned ${count} strings; its shape has ${tensor.size} elements.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const length = Math.max(isText ? longestText : longest, kept === undefined ? 1 : lengthOf(kept))
  return isText
    ? { descr: `<U${length}`, bytes: packText(raw, count, length) }
    : { descr: `|S${length}`, bytes: packBytes(raw, count, length) }
}

/** Characters of an item. */
function lengthOf({ kind, itemBytes }: ItemType): number {
  return kind === 'text' ? itemBytes / 4 : itemBytes
}

/** Number of code points of valid UTF-8. */
function codePoints(utf8: Uint8Array): number {
  let count = 0
  for (const byte of utf8) if (!isContinuation(byte)) count += 1
  return count
}

/** True for every byte of a UTF-8 character except the first. */
function isContinuation(byte: number): boolean {
  return (byte & 0b1100_0000) === 0b1000_0000
}

/** Decodes valid UTF-8 directly into code points of four bytes; a string object per item would take most of the memory. */
function packText(texts: Iterable<Uint8Array>, count: number, length: number): Uint8Array {
  const bytes = allocateBytes(count * length * 4)
  const view = new DataView(bytes.buffer)
  let item = 0
  for (const utf8 of texts) {
    let code = 0
    let at = item++ * length * 4
    for (const [index, byte] of utf8.entries()) {
      code = isContinuation(byte) ? (code << 6) | (byte & 0b0011_1111) : leadingBits(byte)
      const next = utf8[index + 1]
      if (next !== undefined && isContinuation(next)) continue
      view.setUint32(at, code, true)
      at += 4
    }
  }
  return bytes
}

/** The bits of the code point in the first byte; characters of one to four bytes start with 0, 110, 1110 and 11110. */
function leadingBits(byte: number): number {
  if (byte < 0b1000_0000) return byte
  if (byte < 0b1110_0000) return byte & 0b0001_1111
  return byte < 0b1111_0000 ? byte & 0b0000_1111 : byte & 0b0000_0111
}

function packBytes(items: Iterable<Uint8Array>, count: number, length: number): Uint8Array {
  const bytes = allocateBytes(count * length)
  let item = 0
  for (const content of items) bytes.set(content, item++ * length)
  return bytes
}
