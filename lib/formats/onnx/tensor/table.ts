/**
 * Compact table of the tensors of an open file: four numbers and the raw header bytes per tensor.
 *
 * A model may have millions of tensors of a few bytes; an object for each would need many times the file's size. Objects
 * are made on access.
 */
import { PLAIN_TENSOR_NUMBERS } from '../../../native/limits.js'
import type { NativePlainTensors } from '../../../native/types.js'
import { ByteList } from '../../byte_list.js'
import { OffsetList } from '../../number_list.js'
import { WireCursor } from '../protobuf/wire.js'
import { nameOfHeader, parseHeader, type TensorHeader } from './header.js'

export const ENTRY_KINDS = ['range', 'fields', 'strings', 'none', 'sparse'] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

export interface TableEntry {
  readonly kind: EntryKind
  /** Number of the file with the values; 0 is the model itself. */
  readonly file: number
  /** `range`: start of the values. `fields`, `strings`: start of the message. `sparse`: index of the sparse tensor. */
  readonly start: number
  readonly end: number
}

/** Numbers per tensor: kind and file, start, end, header offset. */
const NUMBERS = 4
const HEADER_START = 3
const KINDS = 8

/** False hits (headers that contain the name's bytes elsewhere) before a search gives up. */
const MAX_SEARCH_TRIES = 8

export class TensorTable {
  readonly #numbers = new OffsetList()
  readonly #headers = new ByteList()
  /** Start of the header that is being kept. */
  #headerStart = 0

  get length(): number {
    return this.#numbers.length / NUMBERS
  }

  /** Appends header bytes of the tensor that is added next. */
  keep(bytes: Uint8Array): void {
    this.#headers.append(bytes)
  }

  /** Discards the bytes kept since the last tensor. */
  drop(): void {
    this.#headers.truncate(this.#headerStart)
  }

  add(entry: TableEntry): void {
    for (const number of numbersOf(entry)) this.#numbers.push(number)
    this.#numbers.push(this.#headerStart)
    this.#headerStart = this.#headers.length
  }

  /** Adds tensors whose values are in the model file. No header bytes may be pending. */
  addRun({ offsets, headers }: NativePlainTensors): void {
    const first = this.#headerStart
    for (let at = 0; at < offsets.length; at += PLAIN_TENSOR_NUMBERS) {
      const [start, end, headerEnd] = [offsets[at]!, offsets[at + 1]!, offsets[at + 2]!]
      for (const number of numbersOf({ kind: 'range', file: 0, start, end })) this.#numbers.push(number)
      this.#numbers.push(this.#headerStart)
      this.#headerStart = first + headerEnd
    }
    this.#headers.append(headers)
  }

  /** Replaces an entry, once the external file of the tensor is open. */
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
    const [start, end] = this.#headerRange(index)
    return parseHeader(this.#headers.subarray(start, end))
  }

  /** Length of the header in bytes. */
  headerBytes(index: number): number {
    const [start, end] = this.#headerRange(index)
    return end - start
  }

  /** The name, without parsing the rest of the header. */
  name(index: number): string {
    const [start, end] = this.#headerRange(index)
    return nameOfHeader(WireCursor.over(this.#headers.subarray(start, end)), end - start)
  }

  /** Index of the first tensor of each name. */
  names(): Map<string, number> {
    const cursor = WireCursor.over(this.#headers.subarray(0, this.#headerStart))
    const names = new Map<string, number>()
    for (let index = 0; index < this.length; index++) {
      const [start, end] = this.#headerRange(index)
      cursor.position = start
      const name = nameOfHeader(cursor, end)
      if (!names.has(name)) names.set(name, index)
    }
    return names
  }

  /**
   * Index of the first tensor of a name, found by searching the headers for the name's bytes instead of reading all names.
   *
   * @returns 'unsure' after too many false hits, and for names with more than one byte representation
   */
  search(name: string): number | undefined | 'unsure' {
    if (name === '' || name.includes('\uFFFD')) return 'unsure'
    const { buffer, byteOffset } = this.#headers.subarray(0, this.#headerStart)
    const headers = Buffer.from(buffer, byteOffset, this.#headerStart)
    let from = 0
    for (let tries = 0; tries < MAX_SEARCH_TRIES; tries++) {
      const hit = headers.indexOf(name, from, 'utf8')
      if (hit < 0) return undefined
      const index = this.#indexAt(hit)
      if (this.name(index) === name) return index
      from = this.#headerRange(index)[1]
    }
    return 'unsure'
  }

  /** The tensor whose header contains the byte at `offset` (binary search). */
  #indexAt(offset: number): number {
    let [low, high] = [0, this.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#headerRange(middle)[0] <= offset) low = middle
      else high = middle - 1
    }
    return low
  }

  #headerRange(index: number): readonly [start: number, end: number] {
    const at = index * NUMBERS + HEADER_START
    const end = index + 1 < this.length ? this.#numbers.at(at + NUMBERS) : this.#headerStart
    return [this.#numbers.at(at), end]
  }
}

/** The numbers of an entry without the header offset. */
function numbersOf({ kind, file, start, end }: TableEntry): readonly [number, number, number] {
  return [file * KINDS + ENTRY_KINDS.indexOf(kind), start, end]
}
