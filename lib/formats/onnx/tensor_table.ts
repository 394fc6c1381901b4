/**
 * What opening a file keeps of its tensors: four numbers each, and the bytes of their headers as they stand. A model may
 * have millions of tensors of a few bytes, and an object for each would take many times the file; they are made when
 * someone asks for one.
 */
import { ByteList } from '../byte_list.js'
import { NumberList } from '../number_list.js'
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
const HEADER_START = 3
const KINDS = 8

export class TensorTable {
  readonly #numbers = new NumberList(Float64Array)
  readonly #headers = new ByteList()
  /** Where the header that is being kept begins. */
  #headerStart = 0

  get length(): number {
    return this.#numbers.length / NUMBERS
  }

  /** Keeps bytes of the header of the tensor that is added next. */
  keep(bytes: Uint8Array): void {
    this.#headers.append(bytes)
  }

  /** Forgets what was kept since the last tensor. */
  drop(): void {
    this.#headers.truncate(this.#headerStart)
  }

  add(entry: TableEntry): void {
    for (const number of numbersOf(entry)) this.#numbers.push(number)
    this.#numbers.push(this.#headerStart)
    this.#headerStart = this.#headers.length
  }

  /** Places a tensor anew, when its other file is known. */
  set(index: number, entry: TableEntry): void {
    for (const [at, number] of numbersOf(entry).entries()) this.#numbers.set(index * NUMBERS + at, number)
  }

  at(index: number): TableEntry {
    const at = index * NUMBERS
    const packed = this.#numbers.at(at)
    return {
      kind: ENTRY_KINDS[packed % KINDS]!,
      file: Math.floor(packed / KINDS),
      start: this.#numbers.at(at + 1),
      end: this.#numbers.at(at + 2),
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
    const at = index * NUMBERS + HEADER_START
    const end = index + 1 < this.length ? this.#numbers.at(at + NUMBERS) : this.#headerStart
    return this.#headers.subarray(this.#numbers.at(at), end)
  }
}

/** Those before the offset of the header. */
function numbersOf({ kind, file, start, end }: TableEntry): readonly [number, number, number] {
  return [file * KINDS + ENTRY_KINDS.indexOf(kind), start, end]
}
