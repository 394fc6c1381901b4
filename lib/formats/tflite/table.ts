/**
 * A table of a FlatBuffer: the position of each field is in its vtable. Every position is checked before it is used; nothing
 * follows references on its own, so the depth of the schema bounds that of the reader. Source: FlatBuffers' internals page.
 */
import { FileFault } from '../file_fault.js'
import { MAX_RANGE_BYTES, type Pages } from './pages.js'
import { MAX_TEXT_BYTES } from './schema.js'

/** A list of a table: `count` elements from `at` on. */
export interface Vector {
  readonly at: number
  readonly count: number
}

/** Bytes of the two lengths that start a vtable, and of each field in it. */
const VTABLE_HEAD_BYTES = 4
const VTABLE_FIELD_BYTES = 2
const OFFSET_BYTES = 4

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export class Table {
  readonly at: number
  readonly #pages: Pages
  readonly #vtable: number
  readonly #vtableBytes: number
  readonly #tableBytes: number

  /** @throws FileFault for a table or a vtable outside the file */
  constructor(pages: Pages, at: number) {
    this.#pages = pages
    this.at = at
    this.#vtable = at - pages.i32(at)
    if (this.#vtable < 0 || this.#vtable >= pages.byteLength) {
      throw new FileFault(
        'ERR_OFFSET_RANGE',
        `The table at ${at} has its fields at ${this.#vtable}, outside the file.`,
        at,
      )
    }
    this.#vtableBytes = pages.u16(this.#vtable)
    this.#tableBytes = pages.u16(this.#vtable + 2)
    const isRoomy =
      this.#vtable + this.#vtableBytes <= pages.byteLength && at + this.#tableBytes <= pages.byteLength
    if (
      isRoomy &&
      this.#vtableBytes >= VTABLE_HEAD_BYTES &&
      this.#vtableBytes % 2 === 0 &&
      this.#tableBytes >= OFFSET_BYTES
    )
      return
    throw new FileFault('ERR_HEADER', `The table at ${at} has wrong lengths in its list of fields.`, at)
  }

  u8(field: number, fallback = 0): number {
    const at = this.#find(field, 1)
    return at === undefined ? fallback : this.#pages.u8(at)
  }

  i8(field: number): number {
    return (this.u8(field) << 24) >> 24
  }

  i32(field: number): number {
    const at = this.#find(field, 4)
    return at === undefined ? 0 : this.#pages.i32(at)
  }

  u32(field: number): number {
    return this.i32(field) >>> 0
  }

  u64(field: number): bigint {
    const at = this.#find(field, 8)
    return at === undefined ? 0n : this.#pages.u64(at)
  }

  /** Undefined for a field that is absent. */
  table(field: number): Table | undefined {
    const at = this.#target(field)
    return at === undefined ? undefined : new Table(this.#pages, at)
  }

  /** @param elementBytes - of one element. @throws FileFault for a list that exceeds the file */
  vector(field: number, elementBytes: number): Vector | undefined {
    const at = this.#target(field)
    if (at === undefined) return undefined
    const count = this.#pages.u32(at)
    const start = at + OFFSET_BYTES
    if (count * elementBytes <= this.#pages.byteLength - start) return { at: start, count }
    const message = `The list at ${at} has ${count} elements of ${elementBytes} bytes; the file ends at ${this.#pages.byteLength}.`
    throw new FileFault('ERR_OFFSET_RANGE', message, at)
  }

  /** The table that is element `index` of a list of tables. */
  tableIn({ at }: Vector, index: number): Table {
    return new Table(this.#pages, this.#follow(at + OFFSET_BYTES * index))
  }

  /** Empty where the field is absent. @throws FileFault for bytes that are not UTF-8 */
  text(field: number): string {
    const vector = this.vector(field, 1)
    if (!vector) return ''
    if (vector.count > MAX_TEXT_BYTES) {
      throw new FileFault(
        'ERR_LIMIT',
        `A text has ${vector.count} bytes; the limit is ${MAX_TEXT_BYTES}.`,
        vector.at,
      )
    }
    try {
      return utf8.decode(this.#pages.bytes(vector.at, vector.count))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      throw new FileFault('ERR_HEADER', `The text at ${vector.at} is not valid UTF-8.`, vector.at)
    }
  }

  /** Elements of a short list of 32-bit numbers. @throws FileFault ERR_LIMIT for a longer one */
  i32s(field: number, most = MAX_RANGE_BYTES / 4): number[] | undefined {
    const vector = this.vector(field, 4)
    if (!vector) return undefined
    if (vector.count > most) {
      throw new FileFault(
        'ERR_LIMIT',
        `The list at ${vector.at} has ${vector.count} numbers; the limit is ${most}.`,
        vector.at,
      )
    }
    return Array.from({ length: vector.count }, (_, index) => this.#pages.i32(vector.at + 4 * index))
  }

  /** Where a field of `size` bytes is; undefined where it is absent and has its default. */
  #find(field: number, size: number): number | undefined {
    const entry = VTABLE_HEAD_BYTES + VTABLE_FIELD_BYTES * field
    if (entry + VTABLE_FIELD_BYTES > this.#vtableBytes) return undefined
    const offset = this.#pages.u16(this.#vtable + entry)
    if (offset === 0) return undefined
    if (offset >= OFFSET_BYTES && offset + size <= this.#tableBytes) return this.at + offset
    throw new FileFault(
      'ERR_OFFSET_RANGE',
      `Field ${field} of the table at ${this.at} is outside of it.`,
      this.at,
    )
  }

  /** What the offset in a field refers to. */
  #target(field: number): number | undefined {
    const at = this.#find(field, OFFSET_BYTES)
    return at === undefined ? undefined : this.#follow(at)
  }

  #follow(at: number): number {
    return at + this.#pages.u32(at)
  }
}
