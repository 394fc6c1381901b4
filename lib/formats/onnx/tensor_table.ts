/**
 * What opening a file keeps of its tensors: four numbers each, and the bytes of their headers as they stand. A model may
 * have millions of tensors of a few bytes, and an object for each would take many times the file; they are made when
 * someone asks for one.
 */
import { allocateBytes } from '../../bytes/view_limit.js'
import { nameOfHeader, parseHeader, type TensorHeader } from './tensor_header.js'

export const ENTRY_KINDS = ['range', 'fields', 'strings', 'none', 'sparse'] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

export interface TableEntry {
  readonly kind: EntryKind
  /** Number of the file that has the values: 0 is the model's own. */
  readonly file: number
  /** Of a range where the values begin, of fields and strings the message, of a sparse tensor its number in `start`. */
  readonly start: number
  readonly end: number
}

/** Kind and file, start, end, offset of the header. */
const NUMBERS = 4
const KINDS = 8

export class TensorTable {
  #numbers = new Float64Array(NUMBERS * 16)
  #headers: Uint8Array = allocateBytes(1024)
  #headerEnd = 0
  /** Where the header that is being kept begins. */
  #headerStart = 0
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Keeps bytes of the header of the tensor that is added next. */
  keep(bytes: Uint8Array): void {
    const end = this.#headerEnd + bytes.byteLength
    if (end > this.#headers.byteLength) {
      const grown = allocateBytes(Math.max(end, Math.ceil(this.#headers.byteLength * 1.5)))
      grown.set(this.#headers)
      this.#headers = grown
    }
    this.#headers.set(bytes, this.#headerEnd)
    this.#headerEnd = end
  }

  /** Forgets what was kept since the last tensor. */
  drop(): void {
    this.#headerEnd = this.#headerStart
  }

  add(entry: TableEntry): void {
    const at = this.#length * NUMBERS
    if (at + NUMBERS > this.#numbers.length) {
      const grown = new Float64Array(NUMBERS * Math.ceil(this.#length * 1.5))
      grown.set(this.#numbers)
      this.#numbers = grown
    }
    this.#length += 1
    this.#numbers[at + 3] = this.#headerStart
    this.#headerStart = this.#headerEnd
    this.set(this.#length - 1, entry)
  }

  /** Places a tensor anew, when its other file is known. */
  set(index: number, { kind, file, start, end }: TableEntry): void {
    const at = index * NUMBERS
    this.#numbers[at] = file * KINDS + ENTRY_KINDS.indexOf(kind)
    this.#numbers[at + 1] = start
    this.#numbers[at + 2] = end
  }

  at(index: number): TableEntry {
    const at = index * NUMBERS
    const packed = this.#numbers[at]!
    return {
      kind: ENTRY_KINDS[packed % KINDS]!,
      file: Math.floor(packed / KINDS),
      start: this.#numbers[at + 1]!,
      end: this.#numbers[at + 2]!,
    }
  }

  header(index: number): TensorHeader {
    return parseHeader(this.#kept(index))
  }

  /** As `header`, of which only the name is read. */
  name(index: number): string {
    return nameOfHeader(this.#kept(index))
  }

  #kept(index: number): Uint8Array {
    const at = index * NUMBERS + 3
    const start = this.#numbers[at]!
    const end = index + 1 < this.#length ? this.#numbers[at + NUMBERS]! : this.#headerStart
    return this.#headers.subarray(start, end)
  }
}
