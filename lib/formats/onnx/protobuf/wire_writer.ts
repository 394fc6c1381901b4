/** Writes the protobuf wire format; varints have their shortest form. */

import { append } from '../../../long_lists.js'
import { encodeUtf8 } from '../../../utf8.js'
import { FIXED32, FIXED64, LENGTH, VARINT } from './wire.js'

const TWO_POW_32 = 2 ** 32

/** Pieces up to this length are joined byte by byte: an array for each would take longer to make. */
const MAX_JOINED_BYTES = 64

/** Bytes that are joined to one chunk: a list of numbers takes eight times the memory of bytes. */
const MAX_LIST_BYTES = 64 * 1024

export class WireWriter {
  readonly #chunks: Uint8Array[] = []
  /** Bytes behind the last chunk. */
  #joined: number[] = []
  #chunkBytes = 0

  get byteLength(): number {
    return this.#chunkBytes + this.#joined.length
  }

  /** A varint field; negative numbers take ten bytes, as in protobuf. */
  varint(number: number, value: number | bigint): this {
    return this.tag(number, VARINT).number(value)
  }

  /** A number of a packed run, without tag. */
  number(value: number | bigint): this {
    if (typeof value === 'number' && value >= 0 && value < 128) this.#joined.push(value)
    else append(this.#joined, varintBytes(value))
    if (this.#joined.length >= MAX_LIST_BYTES) this.#endJoined()
    return this
  }

  /** @throws TileworkError ERR_UNSUPPORTED for a lone surrogate */
  text(number: number, value: string): this {
    return this.bytes(number, encodeUtf8(value, 'A text of the model', 'onnx'))
  }

  bytes(number: number, value: Uint8Array): this {
    return this.lengthOf(number, value.byteLength).raw(value)
  }

  /** A fixed32 or fixed64 field, by the length of `value`. */
  fixed(number: number, value: Uint8Array): this {
    return this.tag(number, value.byteLength === 4 ? FIXED32 : FIXED64).raw(value)
  }

  message(number: number, content: WireWriter): this {
    this.lengthOf(number, content.byteLength)
    for (const chunk of content.#chunks) this.raw(chunk)
    for (const byte of content.#joined) this.#joined.push(byte)
    if (this.#joined.length >= MAX_LIST_BYTES) this.#endJoined()
    return this
  }

  /** A tag; the caller writes the value next. */
  tag(number: number, wireType: number): this {
    return this.number(number * 8 + wireType)
  }

  /** Tag and length of a value whose bytes follow, here or in another segment. */
  lengthOf(number: number, byteLength: number): this {
    return this.tag(number, LENGTH).number(byteLength)
  }

  /** Raw bytes: whole fields, or the value after `lengthOf`. */
  raw(bytes: Uint8Array): this {
    if (bytes.byteLength <= MAX_JOINED_BYTES) {
      for (const byte of bytes) this.#joined.push(byte)
      if (this.#joined.length >= MAX_LIST_BYTES) this.#endJoined()
      return this
    }
    this.#endJoined()
    this.#addChunk(bytes)
    return this
  }

  finish(): Uint8Array {
    if (this.#chunks.length === 0) return new Uint8Array(this.#joined)
    this.#endJoined()
    return new Uint8Array(Buffer.concat(this.#chunks, this.#chunkBytes))
  }

  #endJoined(): void {
    this.#addChunk(new Uint8Array(this.#joined))
    this.#joined = []
  }

  #addChunk(bytes: Uint8Array): void {
    this.#chunks.push(bytes)
    this.#chunkBytes += bytes.byteLength
  }
}

/** Seven bits per byte, least significant first; all bytes but the last have the top bit set. */
export function varintBytes(value: number | bigint): number[] {
  if (typeof value === 'bigint' || value < 0) return longVarint(BigInt.asUintN(64, BigInt(value)))
  const bytes: number[] = []
  let remaining = value
  while (remaining >= TWO_POW_32) {
    bytes.push((remaining % 128) | 0x80)
    remaining = Math.floor(remaining / 128)
  }
  for (; remaining >= 128; remaining = Math.floor(remaining / 128)) bytes.push((remaining & 0x7f) | 0x80)
  bytes.push(remaining)
  return bytes
}

function longVarint(value: bigint): number[] {
  const bytes: number[] = []
  let remaining = value
  for (; remaining >= 128n; remaining >>= 7n) bytes.push(Number(remaining & 0x7fn) | 0x80)
  bytes.push(Number(remaining))
  return bytes
}
