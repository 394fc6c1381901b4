/**
 * A byte source that decodes the entries of a typed field (`int32_data` and the like) to packed elements.
 *
 * Decoding happens at the first read, and the result is kept with the tensor: at most eight bytes per byte of the file.
 */
import { checkRange } from '../../../bytes/check_range.js'
import type { ByteSource } from '../../../bytes/source.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import type { Dtype } from '../../../dtype/dtypes.js'
import { packedByteLength, storeCode } from '../../../dtype/packed_codes.js'
import { TileworkError } from '../../../errors.js'
import { FileFault } from '../../file_fault.js'
import { FORMAT_NAME, quote } from '../schema.js'
import { storageOf } from '../tensor/header.js'
import {
  eachField,
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  VARINT_BYTES,
  WireCursor,
  walkSource,
  walkSourceSync,
} from './wire.js'

/** The range of a message. */
export interface MessageRange {
  readonly source: ByteSource
  readonly start: number
  readonly end: number
}

/** Bytes copied at a time. */
const COPY_BYTES = 64 * 1024

export class FieldSource implements ByteSource {
  readonly byteLength: number
  readonly label: string
  /** Absent where the file has no synchronous reads: callers test for the method. */
  readonly readSync?: (start: number, end: number) => Uint8Array
  readonly #message: MessageRange
  readonly #dtype: Exclude<Dtype, 'string'>
  readonly #count: number
  #bytes: Promise<Uint8Array> | undefined
  #held: Uint8Array | undefined

  /**
   * @param message - the TensorProto
   * @param count - elements of the tensor
   */
  constructor(message: MessageRange, dtype: Exclude<Dtype, 'string'>, count: number, name: string) {
    this.#message = message
    this.#dtype = dtype
    this.#count = count
    this.byteLength = packedByteLength(dtype, count)
    this.label = `tensor ${quote(name)}`
    const { source } = message
    if (source.readSync ?? source.readIntoSync) this.readSync = (start, end) => this.#readSync(start, end)
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    checkRange(start, end, this.byteLength, this.label)
    this.#bytes ??= this.#load()
    return (await this.#bytes).subarray(start, end)
  }

  /** Entries beyond the number that the shape needs; negative for missing ones. @throws TileworkError as `read` */
  async surplus(): Promise<number> {
    const decoder = this.#decoder()
    return this.#guard(() => walkSource(decoder.steps, decoder.cursor)).then(() => decoder.surplus())
  }

  async #load(): Promise<Uint8Array> {
    const decoder = this.#decoder()
    await this.#guard(() => walkSource(decoder.steps, decoder.cursor))
    return this.#complete(decoder)
  }

  #readSync(start: number, end: number): Uint8Array {
    checkRange(start, end, this.byteLength, this.label)
    if (!this.#held) {
      const decoder = this.#decoder()
      try {
        walkSourceSync(decoder.steps, decoder.cursor)
      } catch (error) {
        throw changedOr(error)
      }
      this.#held = this.#complete(decoder)
    }
    return this.#held.subarray(start, end)
  }

  #decoder(): EntryDecoder {
    return new EntryDecoder(this.#message, this.#dtype, this.#count)
  }

  async #guard<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action()
    } catch (error) {
      throw changedOr(error)
    }
  }

  #complete(decoder: EntryDecoder): Uint8Array {
    const surplus = decoder.surplus()
    if (surplus >= 0) return decoder.bytes
    const message = `${this.label} lacks ${-surplus} entries in its ${storageOf(this.#dtype).field}, which its shape needs.`
    throw new TileworkError('ERR_TRUNCATED', message, { format: FORMAT_NAME, offset: this.#message.start })
  }
}

/** A fault here means that the file changed: the same walk passed when it was opened. */
function changedOr(error: unknown): unknown {
  if (!(error instanceof FileFault)) return error
  return new TileworkError(error.code, error.message, { format: FORMAT_NAME, offset: error.offset })
}

/** Decodes the entries of one field, packed or not, in any number of runs. */
class EntryDecoder {
  readonly bytes: Uint8Array
  readonly cursor: WireCursor
  readonly steps: Steps<void>
  readonly #storage: ReturnType<typeof storageOf>
  readonly #count: number
  /** Bytes decoded so far, including entries beyond the last element; entries where each is a code of packed storage. */
  #filled = 0

  constructor({ source, start, end }: MessageRange, dtype: Exclude<Dtype, 'string'>, count: number) {
    this.#storage = storageOf(dtype)
    this.#count = count
    this.bytes = allocateBytes(packedByteLength(dtype, count))
    this.cursor = new WireCursor(source)
    this.cursor.position = start
    this.steps = this.#walk(end)
  }

  surplus(): number {
    const { entryBits, entryBytes } = this.#storage
    if (entryBits !== undefined) return this.#filled - this.#count
    return (this.#filled - this.bytes.byteLength) / entryBytes
  }

  *#walk(end: number): Steps<void> {
    const { number, wireType } = this.#storage
    yield* eachField(this.cursor, end, () => {
      if (this.cursor.number !== number) return undefined
      if (this.cursor.wireType === LENGTH) return this.#run(this.cursor.valueStart, this.cursor.position)
      if (this.cursor.wireType !== wireType) return undefined
      if (wireType === VARINT) this.#put()
      else return this.#copy(this.cursor.valueStart, this.cursor.position)
      return undefined
    })
  }

  *#run(start: number, end: number): Steps<void> {
    if (this.#storage.wireType !== VARINT) {
      yield* this.#copy(start, end)
      return
    }
    const { cursor } = this
    cursor.position = start
    while (cursor.position < end) {
      if (!cursor.holds(VARINT_BYTES, end)) yield VARINT_BYTES
      cursor.varint(end)
      this.#put()
    }
  }

  *#copy(start: number, end: number): Steps<void> {
    for (let at = start; at < end; at += COPY_BYTES) {
      const chunk = yield* holdRange(this.cursor, at, Math.min(end, at + COPY_BYTES))
      const room = this.bytes.byteLength - this.#filled
      if (room > 0) this.bytes.set(chunk.byteLength > room ? chunk.subarray(0, room) : chunk, this.#filled)
      this.#filled += chunk.byteLength
    }
  }

  /** Stores the low bytes of the last varint; higher bits are dropped, as in the Python package onnx. */
  #put(): void {
    const { entryBits, entryBytes } = this.#storage
    const at = this.#filled
    this.#filled += entryBytes
    if (entryBits !== undefined) {
      if (at < this.#count) storeCode(entryBits, this.bytes, at, this.cursor.low & (2 ** entryBits - 1))
      return
    }
    if (this.#filled > this.bytes.byteLength) return
    let { low } = this.cursor
    for (let byte = 0; byte < entryBytes; byte++) {
      if (byte === 4) low = this.cursor.high
      this.bytes[at + byte] = low & 0xff
      low >>>= 8
    }
  }
}
