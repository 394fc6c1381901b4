/**
 * What opening a file keeps: some numbers a record in typed arrays. A million records are a million small
 * headers, and as many objects would take many times the file's size; tensors are made when someone asks for one.
 */
import { allocateBytes } from '../../bytes/view_limit.js'
import { TileworkError } from '../../errors.js'
import type { BtfRecord } from './record.js'
import { DTYPE_BY_CODE, FORMAT_NAME, MAX_RANK } from './schema.js'

/** Marks a record that could not be read; only a check sees those. */
const UNREADABLE = 0xffffffff

/** First number of a record in the pool: kind, dtype code and rank, one byte each. */
const COO_FLAG = 256 * 256

/**
 * Numbers of one piece of the pool: 1 MiB. Pieces never move, so that growing takes no second copy. A file of few
 * records has one smaller piece.
 */
const PIECE_NUMBERS = 2 ** 17

/** Most numbers of one record: codes, entry count, dimensions. */
const MOST_NUMBERS = 2 + MAX_RANK

export class RecordTable {
  readonly #offsets: Float64Array
  /** Where each record stands in the pool. Records at the same offset stand there once. */
  readonly #positions: Uint32Array
  /** Codes, entry count (COO only), dimensions: fewer bytes a record than its header has in the file. */
  readonly #pieces: Float64Array[] = []
  /** The last piece, and how much of it is used. */
  #piece = new Float64Array(0)
  #used = 0

  /** @param offsets - of the records in the order of the table; kept, not copied */
  constructor(offsets: Float64Array) {
    this.#offsets = offsets
    this.#positions = new Uint32Array(allocateBytes(4 * offsets.length).buffer).fill(UNREADABLE)
  }

  get length(): number {
    return this.#offsets.length
  }

  add(index: number, { shape, dtype, entryCount }: BtfRecord): void {
    this.#reserve(2 + shape.length)
    const piece = this.#piece
    let at = this.#used
    this.#positions[index] = (this.#pieces.length - 1) * PIECE_NUMBERS + at
    const codes = (DTYPE_BY_CODE as readonly string[]).indexOf(dtype) * 256 + shape.length
    if (entryCount === undefined) piece[at++] = codes
    else {
      piece[at++] = codes + COO_FLAG
      piece[at++] = entryCount
    }
    for (let axis = 0; axis < shape.length; axis++) piece[at++] = shape[axis]!
    this.#used = at
  }

  /** Record `index` has the same offset as record `other`. */
  share(index: number, other: number): void {
    this.#positions[index] = this.#positions[other]!
  }

  /** True for a record that could be read and is a sparse one. */
  isSparse(index: number): boolean {
    const position = this.#positions[index]!
    if (position === UNREADABLE) return false
    return this.#pieces[Math.floor(position / PIECE_NUMBERS)]![position % PIECE_NUMBERS]! >= COO_FLAG
  }

  /** Undefined for a record that could not be read. */
  at(index: number): BtfRecord | undefined {
    const position = this.#positions[index]!
    if (position === UNREADABLE) return undefined
    const piece = this.#pieces[Math.floor(position / PIECE_NUMBERS)]!
    const at = position % PIECE_NUMBERS
    const codes = piece[at]!
    const isCoo = codes >= COO_FLAG
    const dims = at + (isCoo ? 2 : 1)
    const shape: number[] = []
    for (let axis = 0; axis < codes % 256; axis++) shape.push(piece[dims + axis]!)
    return {
      offset: this.#offsets[index]!,
      dtype: DTYPE_BY_CODE[Math.floor(codes / 256) % 256]!,
      shape,
      entryCount: isCoo ? piece[at + 1]! : undefined,
    }
  }

  #reserve(numbers: number): void {
    if (this.#used + numbers <= this.#piece.length) return
    if ((this.#pieces.length + 1) * PIECE_NUMBERS > UNREADABLE) {
      throw new TileworkError('ERR_LIMIT', `The headers hold more than ${UNREADABLE} numbers.`, {
        format: FORMAT_NAME,
      })
    }
    const length = Math.min(PIECE_NUMBERS, MOST_NUMBERS * this.length)
    this.#piece = new Float64Array(allocateBytes(8 * length).buffer)
    this.#pieces.push(this.#piece)
    this.#used = 0
  }
}
