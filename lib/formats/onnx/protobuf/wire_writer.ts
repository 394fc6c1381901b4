/** Writes the protobuf wire format; varints have their shortest form. */
import { encodeUtf8 } from '../../../utf8.js'
import { FIXED32, FIXED64, LENGTH, VARINT } from './wire.js'

const TWO_POW_32 = 2 ** 32

export class WireWriter {
  readonly #chunks: Uint8Array[] = []
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  /** A varint field; negative numbers take ten bytes, as in protobuf. */
  varint(number: number, value: number | bigint): this {
    return this.#append([...varintBytes(number * 8 + VARINT), ...varintBytes(value)])
  }

  /** A number of a packed run, without tag. */
  number(value: number | bigint): this {
    return this.#append(varintBytes(value))
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
    return this.#append(varintBytes(number * 8 + (value.byteLength === 4 ? FIXED32 : FIXED64))).raw(value)
  }

  message(number: number, content: WireWriter): this {
    return this.bytes(number, content.finish())
  }

  /** A tag; the caller writes the value next. */
  tag(number: number, wireType: number): this {
    return this.#append(varintBytes(number * 8 + wireType))
  }

  /** Tag and length of a value whose bytes follow, here or in another segment. */
  lengthOf(number: number, byteLength: number): this {
    return this.#append([...varintBytes(number * 8 + LENGTH), ...varintBytes(byteLength)])
  }

  /** Raw bytes: whole fields, or the value after `lengthOf`. */
  raw(bytes: Uint8Array): this {
    this.#chunks.push(bytes)
    this.#byteLength += bytes.byteLength
    return this
  }

  finish(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#chunks, this.#byteLength))
  }

  #append(bytes: readonly number[]): this {
    return this.raw(Uint8Array.from(bytes))
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
