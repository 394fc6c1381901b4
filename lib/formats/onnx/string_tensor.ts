/** Tensors of strings: each an occurrence of `string_data`, bytes that should be UTF-8 and may be anything. */
import { TileworkError } from '../../errors.js'
import { sizeExactOf, sizeOf } from '../../tensor/shape.js'
import type { StringTensor } from '../../tensor/tensor.js'
import type { MessageRange } from './field_source.js'
import { FORMAT_NAME, quote } from './schema.js'
import { TENSOR } from './tensor_header.js'
import { eachField, holdRange, LENGTH, type Steps, WireCursor, walkSource } from './wire.js'

export interface StringFieldInit {
  readonly message: MessageRange
  readonly name: string
  readonly shape: readonly number[]
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
}

export class StringFieldTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly name: string
  readonly shape: readonly number[]
  readonly hasData: boolean
  readonly doc?: string
  readonly metadata: ReadonlyMap<string, string>
  readonly #message: MessageRange

  constructor({ message, name, shape, hasData, doc, metadata }: StringFieldInit) {
    this.#message = message
    this.name = name
    this.shape = Object.freeze([...shape])
    this.hasData = hasData
    if (doc !== undefined) this.doc = doc
    this.metadata = metadata
  }

  get size(): number {
    return sizeOf(this.shape)
  }

  get sizeExact(): bigint {
    return sizeExactOf(this.shape)
  }

  /** @throws TileworkError ERR_DTYPE for a string that is no UTF-8, ERR_NO_DATA; and what the source throws */
  async strings(): Promise<readonly string[]> {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return (await this.rawStrings()).map((bytes, index) => {
      try {
        return decoder.decode(bytes)
      } catch (cause) {
        const message = `String ${index} of tensor ${quote(this.name)} is not valid UTF-8; rawStrings() gives its bytes.`
        throw new TileworkError('ERR_DTYPE', message, { format: FORMAT_NAME, cause })
      }
    })
  }

  /** @throws TileworkError ERR_NO_DATA; and what the source throws */
  async rawStrings(): Promise<readonly Uint8Array[]> {
    if (!this.hasData) {
      throw new TileworkError('ERR_NO_DATA', `Tensor ${quote(this.name)} has no data in its file.`)
    }
    const { source, start, end } = this.#message
    const cursor = new WireCursor(source)
    cursor.position = start
    return walkSource(stringsOf(cursor, end, this.size), cursor)
  }
}

/** At most `count` strings of the TensorProto that ends at `end`. */
function* stringsOf(cursor: WireCursor, end: number, count: number): Steps<Uint8Array[]> {
  const strings: Uint8Array[] = []
  function* take(start: number, stringEnd: number): Steps<void> {
    strings.push(new Uint8Array(yield* holdRange(cursor, start, stringEnd)))
  }
  yield* eachField(cursor, end, () => {
    const isString = cursor.number === TENSOR.stringData && cursor.wireType === LENGTH
    return isString && strings.length < count ? take(cursor.valueStart, cursor.position) : undefined
  })
  return strings
}
