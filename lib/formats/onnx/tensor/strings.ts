/** String tensors: each element is an occurrence of `string_data`, bytes that should be UTF-8 but may be invalid. */
import { isUtf8 } from 'node:buffer'
import { lostBytesError } from '../../../bytes/check_range.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { TileworkError } from '../../../errors.js'
import { BaseTensor } from '../../../tensor/base_tensor.js'
import { decodeStrings } from '../../../tensor/decode_strings.js'
import type { StringTensor } from '../../../tensor/tensor.js'
import type { MessageRange } from '../protobuf/field_source.js'
import { eachField, holdRange, LENGTH, type Steps, WireCursor, walkSource } from '../protobuf/wire.js'
import { FORMAT_NAME, quote } from '../schema.js'
import { TENSOR } from './header.js'

export interface StringFieldInit {
  readonly message: MessageRange
  readonly name: string
  readonly shape: readonly number[]
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
}

export class StringFieldTensor extends BaseTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly name: string
  readonly shape: readonly number[]
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
  readonly #message: MessageRange

  constructor({ message, name, shape, hasData, doc, metadata }: StringFieldInit) {
    super()
    this.#message = message
    this.name = name
    this.shape = Object.freeze([...shape])
    this.hasData = hasData
    if (doc !== undefined) this.doc = doc
    this.metadata = metadata
  }

  /** @throws TileworkError ERR_DTYPE for invalid UTF-8, ERR_NO_DATA, and errors of the source */
  async strings(): Promise<readonly string[]> {
    return decodeStrings(await this.rawStrings(), this.name, FORMAT_NAME)
  }

  /** @throws TileworkError ERR_NO_DATA, and errors of the source */
  async rawStrings(): Promise<readonly Uint8Array[]> {
    if (!this.hasData) {
      throw new TileworkError('ERR_NO_DATA', `Tensor ${quote(this.name)} has no data in its file.`)
    }
    const strings: Uint8Array[] = []
    await this.#each((bytes) => {
      strings.push(bytes.byteLength === 0 ? NO_BYTES : new Uint8Array(bytes))
    })
    return strings
  }

  /** See `eachRawString`. @throws TileworkError as `rawStrings` */
  async eachRawString(): Promise<Iterable<Uint8Array>> {
    if (!this.hasData) return this.rawStrings()
    let count = 0
    let byteLength = 0
    await this.#each((bytes) => {
      count += 1
      byteLength += bytes.byteLength
    })
    const packed = allocateBytes(byteLength)
    const ends = new Float64Array(allocateBytes(8 * count).buffer)
    let index = 0
    let end = 0
    await this.#each((bytes) => {
      // A source may give other bytes the second time.
      if (index >= count || end + bytes.byteLength > byteLength)
        throw lostBytesError(this.#message.source.label)
      packed.set(bytes, end)
      end += bytes.byteLength
      ends[index++] = end
    })
    return {
      *[Symbol.iterator]() {
        for (let at = 0; at < count; at++) yield packed.subarray(at === 0 ? 0 : ends[at - 1], ends[at])
      },
    }
  }

  /** Index of the first string that is invalid UTF-8 or contains a NUL. @throws errors of the source */
  async firstBad(): Promise<number | undefined> {
    let index = 0
    let bad: number | undefined
    await this.#each((bytes) => {
      if (bad === undefined && (!isUtf8(bytes) || bytes.includes(0))) bad = index
      index += 1
    })
    return bad
  }

  /** @param visit - receives bytes that are valid until the next string */
  #each(visit: (bytes: Uint8Array) => void): Promise<void> {
    const { source, start, end } = this.#message
    const cursor = new WireCursor(source)
    cursor.position = start
    return walkSource(eachString(cursor, end, this.size, visit), cursor)
  }
}

/** Shared by all empty strings, which are common in some files. */
const NO_BYTES = new Uint8Array(0)

/** Visits up to `count` strings of the TensorProto that ends at `end`. */
function* eachString(
  cursor: WireCursor,
  end: number,
  count: number,
  visit: (bytes: Uint8Array) => void,
): Steps<void> {
  let index = 0
  function* take(start: number, stringEnd: number): Steps<void> {
    visit(yield* holdRange(cursor, start, stringEnd))
  }
  yield* eachField(cursor, end, () => {
    const isString = cursor.number === TENSOR.stringData && cursor.wireType === LENGTH
    if (!isString || index === count) return undefined
    index += 1
    const { valueStart, position } = cursor
    if (!cursor.holdsRange(valueStart, position)) return take(valueStart, position)
    visit(cursor.held(valueStart, position))
    return undefined
  })
}
