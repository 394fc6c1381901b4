/** Writes protobuf's wire: fields one behind the other, numbers in their shortest form. */
import { FIXED32, FIXED64, LENGTH, VARINT } from './wire.js'

const TWO_POW_32 = 2 ** 32

export class WireWriter {
  readonly #pieces: Uint8Array[] = []
  #byteLength = 0

  get byteLength(): number {
    return this.#byteLength
  }

  /** A number; negative ones have ten bytes, as protobuf writes them. */
  varint(number: number, value: number | bigint): this {
    return this.#append([...varintBytes(number * 8 + VARINT), ...varintBytes(value)])
  }

  /** A number of a packed run, without a tag. */
  number(value: number | bigint): this {
    return this.#append(varintBytes(value))
  }

  text(number: number, value: string): this {
    return this.bytes(number, Buffer.from(value, 'utf8'))
  }

  bytes(number: number, value: Uint8Array): this {
    return this.lengthOf(number, value.byteLength).raw(value)
  }

  /** Fixed 32 or 64 bits, as they are. */
  fixed(number: number, value: Uint8Array): this {
    return this.#append(varintBytes(number * 8 + (value.byteLength === 4 ? FIXED32 : FIXED64))).raw(value)
  }

  message(number: number, content: WireWriter): this {
    return this.bytes(number, content.finish())
  }

  /** A tag whose value follows. */
  tag(number: number, wireType: number): this {
    return this.#append(varintBytes(number * 8 + wireType))
  }

  /** Tag and length of a value whose bytes follow from elsewhere. */
  lengthOf(number: number, byteLength: number): this {
    return this.#append([...varintBytes(number * 8 + LENGTH), ...varintBytes(byteLength)])
  }

  /** Bytes as they are: whole fields, or the value that was announced. */
  raw(bytes: Uint8Array): this {
    this.#pieces.push(bytes)
    this.#byteLength += bytes.byteLength
    return this
  }

  finish(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#pieces, this.#byteLength))
  }

  #append(bytes: readonly number[]): this {
    return this.raw(Uint8Array.from(bytes))
  }
}

/** Seven bits a byte, lowest first; all but the last have the top bit. */
export function varintBytes(value: number | bigint): number[] {
  if (typeof value === 'bigint' || value < 0) return longVarint(BigInt.asUintN(64, BigInt(value)))
  const bytes: number[] = []
  let rest = value
  while (rest >= TWO_POW_32) {
    bytes.push((rest % 128) | 0x80)
    rest = Math.floor(rest / 128)
  }
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest & 0x7f) | 0x80)
  bytes.push(rest)
  return bytes
}

function longVarint(value: bigint): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 128n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  bytes.push(Number(rest))
  return bytes
}
