/** The index rows of a sparse tensor: decodes them and checks that they lie inside the shape and in order. */
import { type ErrorPlace, TileworkError } from '../errors.js'

const TWO_POW_32 = 2 ** 32

/**
 * Indices as numbers. Indices above 2^53 - 1, and negative ones, which read as huge unsigned numbers, are inexact; all of them
 * exceed every extent, so the range check refuses them.
 */
export function decodeIndices(bytes: Uint8Array): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const indices = new Float64Array(bytes.byteLength / 8)
  for (let i = 0; i < indices.length; i++) {
    indices[i] = view.getUint32(8 * i + 4, true) * TWO_POW_32 + view.getUint32(8 * i, true)
  }
  return indices
}

/** A window of index rows. */
export interface IndexWindow {
  /** Number of the first entry of the window. */
  readonly first: number
  readonly count: number
  /** Stored bytes of the rows, for exact numbers in messages. */
  readonly bytes: Uint8Array
  readonly indices: Float64Array
}

/** Checks index rows window by window, from the first entry to the last. */
export class IndexRows {
  readonly #shape: readonly number[]
  readonly #name: string
  readonly #place: ErrorPlace
  /** Byte offset of the first row in the file. */
  readonly #start: number
  #previous: Float64Array | undefined

  constructor(shape: readonly number[], name: string, start: number, place: ErrorPlace) {
    this.#shape = shape
    this.#name = name
    this.#start = start
    this.#place = place
  }

  /** @throws TileworkError ERR_COO_INDEX for the first index outside the shape */
  checkRange({ first, count, bytes, indices }: IndexWindow): void {
    const rank = this.#shape.length
    for (let entry = 0, at = 0; entry < count; entry++) {
      for (let axis = 0; axis < rank; axis++, at++) {
        if (indices[at]! < this.#shape[axis]!) continue
        const exact = new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(8 * at, true)
        const message = `entry ${first + entry} of tensor "${this.#name}" has index ${exact} on axis ${axis}; the extent is ${this.#shape[axis]}.`
        throw new TileworkError('ERR_COO_INDEX', message, this.#placeOf(first + entry))
      }
    }
  }

  /** The error for the first row of the window that does not follow its predecessor in lexicographic order. */
  findDisorder({ first, count, indices }: IndexWindow): TileworkError | undefined {
    const rank = this.#shape.length
    for (let entry = 0; entry < count; entry++) {
      const row = indices.subarray(entry * rank, (entry + 1) * rank)
      const order = this.#previous ? compareRows(this.#previous, row) : -1
      if (order >= 0) {
        const how = order === 0 ? 'repeats the index of' : 'sorts before'
        const message = `entry ${first + entry} of tensor "${this.#name}" (index ${row.join(', ')}) ${how} its predecessor.`
        return new TileworkError('ERR_COO_DUPLICATE', message, this.#placeOf(first + entry))
      }
      this.#previous = row
    }
    return undefined
  }

  #placeOf(entry: number): ErrorPlace {
    return { ...this.#place, offset: this.#start + 8 * this.#shape.length * entry }
  }
}

/** Lexicographic order: negative, 0 or positive. */
export function compareRows(one: ArrayLike<number>, other: ArrayLike<number>): number {
  for (let axis = 0; axis < one.length; axis++) {
    if (one[axis] !== other[axis]) return one[axis]! - other[axis]!
  }
  return 0
}
