/**
 * The checked entries of a header, as names and numbers in typed arrays. A header of the maximum size has two million entries; as
 * objects they would take many times its bytes. Tensors are created on access.
 */
import { NumberList } from '../number_list.js'
import { TENSOR_CODES, type TensorCode } from './schema.js'

/** A checked entry: its range lies inside the byte buffer. */
export interface Entry {
  readonly name: string
  readonly type: TensorCode
  readonly shape: readonly number[]
  /** Offsets in the byte buffer. */
  readonly begin: number
  readonly end: number
  /** Byte offset of the name in the file. */
  readonly nameAt: number
}

/** Numbers of an entry before its dimensions: type and rank, begin, end, offset of the name. */
const FIXED_NUMBERS = 4

/** Marks an entry that is not a tensor: it only reserves its byte range. */
const UNLISTED = 255

export class EntryTable {
  readonly #names: string[] = []
  /** The last entry of each name. A Map, because `__proto__` and `constructor` are valid names. */
  readonly #byName = new Map<string, number>()
  readonly #positions = new NumberList(Float64Array)
  readonly #pool = new NumberList(Float64Array)

  get length(): number {
    return this.#names.length
  }

  /**
   * Adds an entry; `typeRank` is undefined for one that is not a tensor. Of several entries with one name the last counts, as in
   * `JSON.parse` and the reference; earlier ones only reserve their byte ranges.
   */
  add(entry: Omit<Entry, 'type'>, typeRank: number | undefined): void {
    const { name, shape, begin, end, nameAt } = entry
    const earlier = this.#byName.get(name)
    if (earlier !== undefined) this.#unlist(earlier)
    this.#byName.set(name, this.length)
    this.#names.push(name)
    this.#positions.push(this.#pool.length)
    this.#pool.push((typeRank ?? UNLISTED) * 256 + shape.length)
    this.#pool.push(begin)
    this.#pool.push(end)
    this.#pool.push(nameAt)
    for (const extent of shape) this.#pool.push(extent)
  }

  /** Index of the entry with this name, a tensor or not. */
  find(name: string): number | undefined {
    return this.#byName.get(name)
  }

  name(index: number): string {
    return this.#names[index]!
  }

  begin(index: number): number {
    return this.#number(index, 1)
  }

  end(index: number): number {
    return this.#number(index, 2)
  }

  nameAt(index: number): number {
    return this.#number(index, 3)
  }

  /** False for an entry that is not a tensor, or that a later entry of the same name replaces. */
  isTensor(index: number): boolean {
    return this.#number(index, 0) < UNLISTED * 256
  }

  /** Undefined for an entry that is not a tensor. */
  at(index: number): Entry | undefined {
    const codes = this.#number(index, 0)
    const type = TENSOR_CODES[Math.floor(codes / 256)]
    if (type === undefined) return undefined
    const first = this.#positions.at(index) + FIXED_NUMBERS
    const shape: number[] = []
    for (let axis = 0; axis < codes % 256; axis++) shape.push(this.#pool.at(first + axis))
    return {
      name: this.name(index),
      type,
      shape,
      begin: this.begin(index),
      end: this.end(index),
      nameAt: this.nameAt(index),
    }
  }

  #number(index: number, which: number): number {
    return this.#pool.at(this.#positions.at(index) + which)
  }

  #unlist(index: number): void {
    const rank = this.#number(index, 0) % 256
    this.#pool.set(this.#positions.at(index), UNLISTED * 256 + rank)
  }
}
