/**
 * What opening a file keeps: some numbers a record in two typed arrays. A million records are a million small
 * headers, and as many objects would take many times the file's size; tensors are made when someone asks for one.
 */
import { allocateBytes } from '../../bytes/view_limit.js'
import type { BtfRecord } from './record.js'
import { DTYPE_BY_CODE } from './schema.js'

/** Marks a record that could not be read; only a check sees those. */
const UNREADABLE = 0xffffffff

/** First number of a record in the pool: kind, dtype code and rank, one byte each. */
const COO_FLAG = 256 * 256

export class RecordTable {
  readonly length: number
  /** Where each record stands in the pool. Records at the same offset stand there once. */
  readonly #positions: Uint32Array
  /** Codes, offset, entry count (COO only), dimensions: no more bytes a record than its header has in the file. */
  #pool: Float64Array
  #used = 0

  constructor(length: number) {
    this.length = length
    this.#positions = new Uint32Array(allocateBytes(4 * length).buffer).fill(UNREADABLE)
    this.#pool = new Float64Array(allocateBytes(8 * Math.min(2 * length, 4096)).buffer)
  }

  add(index: number, record: BtfRecord): void {
    const { shape, dtype, offset, entryCount } = record
    const isCoo = entryCount !== undefined
    const codes = (DTYPE_BY_CODE as readonly string[]).indexOf(dtype) * 256 + shape.length
    const fixed = isCoo ? [codes + COO_FLAG, offset, entryCount] : [codes, offset]
    this.#reserve(fixed.length + shape.length)
    this.#positions[index] = this.#used
    this.#pool.set(fixed, this.#used)
    this.#pool.set(shape, this.#used + fixed.length)
    this.#used += fixed.length + shape.length
  }

  /** Record `index` has the same offset as record `other`. */
  share(index: number, other: number): void {
    this.#positions[index] = this.#positions[other]!
  }

  /** Undefined for a record that could not be read. */
  at(index: number): BtfRecord | undefined {
    const at = this.#positions[index]!
    if (at === UNREADABLE) return undefined
    const codes = this.#pool[at]!
    const isCoo = codes >= COO_FLAG
    const dims = at + (isCoo ? 3 : 2)
    const shape: number[] = []
    for (let axis = 0; axis < codes % 256; axis++) shape.push(this.#pool[dims + axis]!)
    return {
      dtype: DTYPE_BY_CODE[Math.floor(codes / 256) % 256]!,
      offset: this.#pool[at + 1]!,
      entryCount: isCoo ? this.#pool[at + 2]! : undefined,
      shape,
    }
  }

  #reserve(numbers: number): void {
    const needed = this.#used + numbers
    if (needed <= this.#pool.length) return
    // Half as much again: with the old one still alive that is 2.5 times what is used, within the reader's bound.
    const grown = new Float64Array(allocateBytes(8 * Math.ceil(needed * 1.5)).buffer)
    grown.set(this.#pool)
    this.#pool = grown
  }
}
