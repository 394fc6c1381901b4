/** Gathers the entries of a sparse tensor from the elements of a dense one, window by window. */
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { packCodes, unpackCodes } from './element_codes.js'

/** Bytes of one index. */
const INDEX_BYTES = 8

/** Entries in a source, as a coordinate list wants them. */
export interface EntryStorage {
  readonly source: ByteSource
  readonly indicesStart: number
  readonly valuesStart: number
  readonly entryCount: number
}

export class GatheredEntries {
  readonly #shape: readonly number[]
  readonly #bits: number
  /** While they are gathered, elements of less than a byte have one each. */
  readonly #itemBytes: number
  readonly #keepsZeros: boolean
  /** Row-major number of the next element. */
  #slot = 0
  #entryCount = 0
  /** Index rows and values of each window. */
  readonly #indices: Uint8Array[] = []
  readonly #values: Uint8Array[] = []

  constructor(shape: readonly number[], bits: number, keepsZeros: boolean) {
    this.#shape = shape
    this.#bits = bits
    this.#itemBytes = Math.max(1, bits / 8)
    this.#keepsZeros = keepsZeros
  }

  /** Takes the next `count` elements in row-major order, packed from the first byte on. */
  add(packed: Uint8Array, count: number): void {
    const elements = this.#bits < 8 ? unpackCodes(this.#bits, packed, count) : packed
    const size = this.#itemBytes
    const kept: number[] = []
    for (let at = 0; at < elements.byteLength; at += size) {
      if (this.#keepsZeros || !isZero(elements, at, size)) kept.push(at)
    }
    const values = allocateBytes(size * kept.length)
    const rowBytes = INDEX_BYTES * this.#shape.length
    const indices = allocateBytes(rowBytes * kept.length)
    const rows = new DataView(indices.buffer)
    for (let entry = 0; entry < kept.length; entry++) {
      const at = kept[entry]!
      for (let byte = 0; byte < size; byte++) values[entry * size + byte] = elements[at + byte]!
      this.#writeRow(rows, entry * rowBytes, this.#slot + at / size)
    }
    this.#slot += elements.byteLength / size
    this.#entryCount += kept.length
    this.#indices.push(indices)
    this.#values.push(values)
  }

  /** All index rows, then all values. @throws TileworkError ERR_VIEW_TOO_LARGE, ERR_LIMIT */
  finish(): EntryStorage {
    const valuesStart = INDEX_BYTES * this.#shape.length * this.#entryCount
    const bytes = allocateBytes(valuesStart + Math.ceil((this.#bits * this.#entryCount) / 8))
    fill(bytes, this.#indices)
    const values = bytes.subarray(valuesStart)
    if (this.#bits >= 8) fill(values, this.#values)
    else packCodes(this.#bits, fill(allocateBytes(this.#entryCount), this.#values), values)
    return { source: new MemorySource(bytes), indicesStart: 0, valuesStart, entryCount: this.#entryCount }
  }

  #writeRow(rows: DataView, at: number, slot: number): void {
    let rest = slot
    for (let axis = this.#shape.length - 1; axis >= 0; axis--) {
      const extent = this.#shape[axis]!
      const index = rest % extent
      rows.setUint32(at + INDEX_BYTES * axis, index % 2 ** 32, true)
      rows.setUint32(at + INDEX_BYTES * axis + 4, Math.floor(index / 2 ** 32), true)
      rest = Math.floor(rest / extent)
    }
  }
}

/** Puts pieces behind each other into `target`, which is given back. */
function fill(target: Uint8Array, pieces: readonly Uint8Array[]): Uint8Array {
  let at = 0
  for (const piece of pieces) {
    target.set(piece, at)
    at += piece.byteLength
  }
  return target
}

function isZero(bytes: Uint8Array, start: number, length: number): boolean {
  for (let at = start; at < start + length; at++) if (bytes[at] !== 0) return false
  return true
}
