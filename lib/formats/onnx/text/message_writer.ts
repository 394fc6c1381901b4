/** Writes a message of which the fields come in any order, as texts have them: packed fields are joined at the end. */

import { WireWriter } from '../protobuf/wire_writer.js'
import { type FieldInfo, fieldsByName, type MessageName } from '../schema.js'
import { floatBytes } from './numbers.js'

export class MessageWriter {
  readonly type: MessageName
  readonly #wire = new WireWriter()
  readonly #packed = new Map<FieldInfo, WireWriter>()
  /** Names of singular fields, and of the oneof, that are set. */
  readonly #set = new Set<string>()

  constructor(type: MessageName) {
    this.type = type
  }

  field(name: string): FieldInfo | undefined {
    return fieldsByName(this.type).get(name)
  }

  /** @returns false where the field, or another of its oneof, is set already and cannot be repeated */
  claim({ name, isRepeated, oneof }: FieldInfo): boolean {
    if (isRepeated) return true
    const key = oneof ?? name
    if (this.#set.has(key)) return false
    this.#set.add(key)
    return true
  }

  int(info: FieldInfo, value: number | bigint): void {
    if (info.isPacked) this.#run(info).number(value)
    else this.#wire.varint(info.number, value)
  }

  /** @param numeral - decimal digits, `inf`, `infinity` or `nan` with any letters, with a sign or without */
  float(info: FieldInfo, numeral: string): void {
    const bytes = floatBytes(numeral, info.kind === 'double')
    if (info.isPacked) this.#run(info).raw(bytes)
    else this.#wire.fixed(info.number, bytes)
  }

  text(info: FieldInfo, value: string): void {
    this.#wire.text(info.number, value)
  }

  bytes(info: FieldInfo, value: Uint8Array): void {
    this.#wire.bytes(info.number, value)
  }

  message(info: FieldInfo, value: MessageWriter): void {
    this.#wire.message(info.number, value.finish())
  }

  finish(): WireWriter {
    for (const [{ number }, run] of this.#packed) this.#wire.message(number, run)
    this.#packed.clear()
    return this.#wire
  }

  #run(info: FieldInfo): WireWriter {
    const run = this.#packed.get(info) ?? new WireWriter()
    this.#packed.set(info, run)
    return run
  }
}
