/**
 * The checked records of an open file, as numbers in typed arrays. As objects, the headers of a million small records
 * would take many times the file's size. Tensors are created on access.
 */
import { allocateBytes } from '../../bytes/view_limit.js'
import { TileworkError } from '../../errors.js'
import type { BtfRecord } from './record.js'
import { DTYPE_BY_CODE, FORMAT_NAME, MAX_RANK } from './schema.js'

/** Position of a record that could not be read; occurs only in a check, since opening throws. */
const UNREADABLE = 0xffffffff

/** Bit of the kind in a record's first number, which packs kind, dtype code and rank into one byte each. */
const COO_FLAG = 256 * 256

/**
 * Numbers per chunk of the pool: 1 MiB. Chunks never move, so that the pool grows without copying. A file of few records has one
 * smaller chunk.
 */
const CHUNK_NUMBERS = 2 ** 17

/** Maximum numbers of one record: codes, entry count, dimensions. */
const MAX_RECORD_NUMBERS = 2 + MAX_RANK

export class RecordTable {
  readonly #offsets: Float64Array
  /** Position of each record in the pool. Records at the same offset share one. */
  readonly #positions: Uint32Array
  /** The pool: codes, entry count (COO only) and dimensions, in fewer bytes per record than its header. */
  readonly #chunks: Float64Array[] = []
  /** The last chunk, and how many of its numbers are used. */
  #chunk = new Float64Array(0)
  #used = 0

  /** @param offsets - record offsets in the order of the table; kept, not copied */
  constructor(offsets: Float64Array) {
    this.#offsets = offsets
    this.#positions = new Uint32Array(allocateBytes(4 * offsets.length).buffer).fill(UNREADABLE)
  }

  get length(): number {
    return this.#offsets.length
  }

  add(index: number, { shape, dtype, entryCount }: BtfRecord): void {
    this.#reserve(2 + shape.length)
    const chunk = this.#chunk
    let at = this.#used
    this.#positions[index] = (this.#chunks.length - 1) * CHUNK_NUMBERS + at
    const codes = (DTYPE_BY_CODE as readonly string[]).indexOf(dtype) * 256 + shape.length
    if (entryCount === undefined) chunk[at++] = codes
    else {
      chunk[at++] = codes + COO_FLAG
      chunk[at++] = entryCount
    }
    for (let axis = 0; axis < shape.length; axis++) chunk[at++] = shape[axis]!
    this.#used = at
  }

  /** Adds record `index`, which has the offset of record `other`. */
  share(index: number, other: number): void {
    this.#positions[index] = this.#positions[other]!
  }

  /** True for a readable sparse record. */
  isSparse(index: number): boolean {
    const position = this.#positions[index]!
    if (position === UNREADABLE) return false
    return this.#chunks[Math.floor(position / CHUNK_NUMBERS)]![position % CHUNK_NUMBERS]! >= COO_FLAG
  }

  /** Undefined for a record that could not be read. */
  at(index: number): BtfRecord | undefined {
    const position = this.#positions[index]!
    if (position === UNREADABLE) return undefined
    const chunk = this.#chunks[Math.floor(position / CHUNK_NUMBERS)]!
    const at = position % CHUNK_NUMBERS
    const codes = chunk[at]!
    const isCoo = codes >= COO_FLAG
    const dims = at + (isCoo ? 2 : 1)
    const shape: number[] = []
    for (let axis = 0; axis < codes % 256; axis++) shape.push(chunk[dims + axis]!)
    return {
      offset: this.#offsets[index]!,
      dtype: DTYPE_BY_CODE[Math.floor(codes / 256) % 256]!,
      shape,
      entryCount: isCoo ? chunk[at + 1]! : undefined,
    }
  }

  #reserve(numbers: number): void {
    if (this.#used + numbers <= this.#chunk.length) return
    if ((this.#chunks.length + 1) * CHUNK_NUMBERS > UNREADABLE) {
      throw new TileworkError('ERR_LIMIT', `The headers hold more than ${UNREADABLE} numbers.`, {
        format: FORMAT_NAME,
      })
    }
    const length = Math.min(CHUNK_NUMBERS, MAX_RECORD_NUMBERS * this.length)
    this.#chunk = new Float64Array(allocateBytes(8 * length).buffer)
    this.#chunks.push(this.#chunk)
    this.#used = 0
  }
}
