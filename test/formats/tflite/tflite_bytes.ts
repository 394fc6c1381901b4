/** Builds TFLite files table by table, independently of the reader under test. */

/** A value of a field: a number of some bytes, or what an offset refers to. */
type Field =
  | { readonly bytes: Uint8Array }
  | { readonly text: string }
  | { readonly vector: Uint8Array; readonly count: number }
  | { readonly tables: readonly Fields[] }
  | { readonly table: Fields }

/** By field number. */
export type Fields = Readonly<Record<number, Field>>

export const u8 = (value: number): Field => ({ bytes: Uint8Array.of(value) })
export const i32 = (value: number): Field => ({ bytes: new Uint8Array(Int32Array.of(value).buffer) })
export const u64 = (value: bigint): Field => ({ bytes: new Uint8Array(BigUint64Array.of(value).buffer) })
export const text = (value: string): Field => ({ text: value })
export const i32s = (...values: number[]): Field => ({
  vector: new Uint8Array(Int32Array.from(values).buffer),
  count: values.length,
})
export const data = (bytes: Uint8Array, width = 1): Field => ({ vector: bytes, count: bytes.length / width })
export const tables = (...list: Fields[]): Field => ({ tables: list })
export const table = (fields: Fields): Field => ({ table: fields })

/** Writes front to back: a table, its vtable before it, and what it refers to behind it. */
class Writer {
  readonly bytes: number[] = []

  align(unit: number): void {
    while (this.bytes.length % unit !== 0) this.bytes.push(0)
  }

  setU32(at: number, value: number): void {
    for (let byte = 0; byte < 4; byte++) this.bytes[at + byte] = (value >>> (8 * byte)) & 0xff
  }

  pushU32(value: number): void {
    this.setU32(this.bytes.length, value)
  }

  /** @returns the position of the table */
  table(fields: Fields): number {
    const numbers = Object.keys(fields).map(Number)
    const count = numbers.length === 0 ? 0 : Math.max(...numbers) + 1
    this.align(8)
    const vtable = this.bytes.length
    const vtableBytes = 4 + 2 * count
    this.bytes.push(...Array(vtableBytes).fill(0))
    this.align(8)
    const start = this.bytes.length
    this.pushU32(start - vtable)
    const places = numbers.map((number) => {
      const field = fields[number]!
      const size = 'bytes' in field ? field.bytes.length : 4
      this.align(Math.min(8, size))
      const place = this.bytes.length
      this.#setU16(vtable + 4 + 2 * number, place - start)
      this.bytes.push(...('bytes' in field ? field.bytes : [0, 0, 0, 0]))
      return [place, field] as const
    })
    this.#setU16(vtable, vtableBytes)
    this.#setU16(vtable + 2, this.bytes.length - start)
    for (const [place, field] of places) {
      if (!('bytes' in field)) this.setU32(place, this.#target(field) - place)
    }
    return start
  }

  #target(field: Exclude<Field, { bytes: Uint8Array }>): number {
    if ('table' in field) return this.table(field.table)
    this.align(16)
    this.bytes.push(...Array(12).fill(0))
    const at = this.bytes.length
    if ('tables' in field) {
      this.pushU32(field.tables.length)
      const slots = field.tables.map((_, index) => at + 4 + 4 * index)
      for (const _ of slots) this.pushU32(0)
      for (const [index, slot] of slots.entries()) this.setU32(slot, this.table(field.tables[index]!) - slot)
      return at
    }
    const bytes = 'text' in field ? Buffer.from(field.text) : field.vector
    this.pushU32('text' in field ? bytes.length : field.count)
    this.bytes.push(...bytes, 0)
    return at
  }

  #setU16(at: number, value: number): void {
    this.bytes[at] = value & 0xff
    this.bytes[at + 1] = value >> 8
  }
}

/** A file of the fields of its Model. */
export function tfliteBytes(model: Fields, identifier = 'TFL3'): Uint8Array {
  const writer = new Writer()
  writer.pushU32(0)
  writer.bytes.push(...Buffer.from(identifier, 'latin1'))
  writer.setU32(0, writer.table(model))
  return Uint8Array.from(writer.bytes)
}

/** A dense level of a sparse tensor, or one with its segments and indices as int32. */
export const denseLevel = (size: number): Fields => ({ 1: i32(size) })
export const csrLevel = (segments: number[], indices: number[]): Fields => ({
  ...{ 0: u8(1), 2: u8(1), 3: table({ 0: i32s(...segments) }) },
  ...{ 4: u8(1), 5: table({ 0: i32s(...indices) }) },
})

const floats = (...values: number[]): Uint8Array => new Uint8Array(Float32Array.from(values).buffer)

function strings(...list: string[]): Uint8Array {
  const bytes = list.map((each) => Buffer.from(each))
  const head = [list.length]
  let at = 4 * (list.length + 2)
  for (const each of bytes) {
    head.push(at)
    at += each.length
  }
  return new Uint8Array(Buffer.concat([Buffer.from(Int32Array.from([...head, at]).buffer), ...bytes]))
}

/** A model with a tensor of each kind: floats, quantized integers, strings, a sparse matrix, an activation. */
export function sampleModel(
  changes: { readonly sparsity?: Fields; readonly buffers?: Fields[] } = {},
): Uint8Array {
  const sparsity = changes.sparsity ?? {
    0: i32s(0, 1),
    2: tables(denseLevel(2), csrLevel([0, 2, 3], [0, 2, 1])),
  }
  const buffers = changes.buffers ?? [
    {},
    { 0: data(floats(1, 2, 3, 4, 5, 6)) },
    { 0: data(Uint8Array.of(1, 2, 3, 4)) },
    { 0: data(strings('a', 'ü', '')) },
    { 0: data(floats(7, 8, 9)) },
  ]
  const quantization = {
    2: data(floats(0.5, 0.25), 4),
    3: { vector: new Uint8Array(16), count: 2 },
    6: i32(0),
  }
  const tensors: Fields[] = [
    { 0: i32s(2, 3), 2: i32(1), 3: text('w') },
    { 0: i32s(2, 2), 1: u8(9), 2: i32(2), 3: text('q'), 4: table(quantization) },
    { 0: i32s(3), 1: u8(5), 2: i32(3), 3: text('texts') },
    { 0: i32s(2, 3), 2: i32(4), 3: text('sparse'), 6: table(sparsity) },
    { 0: i32s(1, 3), 3: text('w'), 7: i32s(-1, 3) },
    { 0: i32s(6), 2: i32(1), 3: text('w') },
  ]
  const graph: Fields = { 0: tables(...tensors), 1: i32s(4), 2: i32s(0), 4: text('main') }
  const signature: Fields = {
    ...{ 0: tables({ 0: text('x'), 1: i32(4) }), 1: tables({ 0: text('y'), 1: i32(0) }) },
    2: text('serving_default'),
  }
  return tfliteBytes({
    ...{ 0: i32(3), 2: tables(graph), 3: text('made by hand'), 4: tables(...buffers) },
    ...{ 6: tables({ 0: text('notes'), 1: i32(0) }), 7: tables(signature) },
  })
}
