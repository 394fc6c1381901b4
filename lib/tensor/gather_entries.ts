/** Collects the entries of a sparse tensor from the elements of a dense one, window by window. */
import { MemorySource } from '../bytes/memory.js'
import type { ByteSource } from '../bytes/source.js'
import { allocateBytes } from '../bytes/view_limit.js'
import { packCodes, unpackCodes } from './element_codes.js'

/** Bytes of one index. */
const INDEX_BYTES = 8

/** Where the entries of a coordinate list are in a source. */
export interface EntryStorage {
  readonly source: ByteSource
  readonly indicesStart: number
  readonly valuesStart: number
  readonly entryCount: number
}

export class GatheredEntries {
  readonly #shape: readonly number[]
  readonly #bits: number
  /** Bytes of an element; sub-byte elements are unpacked to one byte. */
  readonly #itemBytes: number
  readonly #keepsZeros: boolean
  /** Row-major index of the next element. */
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

  /**
   * Adds the next `count` elements in row-major order.
   *
   * @param packed - starts at offset 0 of its buffer
   */
  add(packed: Uint8Array, count: number): void {
    const elements = this.#bits < 8 ? unpackCodes(this.#bits, packed, count) : packed
    const words = wordsOf(elements, this.#itemBytes)
    const inElement = this.#itemBytes / words.BYTES_PER_ELEMENT
    const kept = this.#keptOf(words, inElement)
    const bytes = allocateBytes(this.#itemBytes * kept.length)
    const values = wordsOf(bytes, this.#itemBytes)
    for (let entry = 0; entry < kept.length; entry++) {
      const at = kept[entry]! * inElement
      for (let word = 0; word < inElement; word++) values[entry * inElement + word] = words[at + word]!
    }
    this.#values.push(bytes)
    this.#indices.push(this.#rowsOf(kept))
    this.#slot += words.length / inElement
    this.#entryCount += kept.length
  }

  /** Positions in the window of the elements that become entries. */
  #keptOf(words: Words, inElement: number): Uint32Array {
    const all = new Uint32Array(allocateBytes((4 * words.length) / inElement).buffer)
    let count = 0
    for (let element = 0, at = 0; at < words.length; element++) {
      let bits = 0
      for (const end = at + inElement; at < end; at++) bits |= words[at]!
      if (bits !== 0 || this.#keepsZeros) all[count++] = element
    }
    return all.subarray(0, count)
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

  /** Index rows, each from its predecessor: most entries differ from it along the last axis only. */
  #rowsOf(kept: Uint32Array): Uint8Array {
    const shape = this.#shape
    const bytes = allocateBytes(INDEX_BYTES * shape.length * kept.length)
    const rows = new Uint32Array(bytes.buffer)
    const index = shape.map(() => 0)
    let before = 0
    let at = 0
    for (let entry = 0; entry < kept.length; entry++) {
      const slot = this.#slot + kept[entry]!
      advance(index, slot - before, shape)
      before = slot
      for (let axis = 0; axis < index.length; axis++) {
        // A 64-bit little-endian index below 2^53: the low half, then the high half.
        rows[at++] = index[axis]!
        rows[at++] = index[axis]! / 2 ** 32
      }
    }
    return bytes
  }
}

/** Advances a row-major index by `steps` elements. */
function advance(index: number[], steps: number, shape: readonly number[]): void {
  let carry = steps
  for (let axis = index.length - 1; carry > 0 && axis >= 0; axis--) {
    const moved = index[axis]! + carry
    const extent = shape[axis]!
    carry = moved < extent ? 0 : Math.floor(moved / extent)
    index[axis] = moved - carry * extent
  }
}

type Words = Uint8Array | Uint16Array | Uint32Array

/** Elements as words of at most 32 bits. @param bytes - start at offset 0 of their buffer */
function wordsOf({ buffer, byteLength }: Uint8Array, itemBytes: number): Words {
  const Words = itemBytes === 1 ? Uint8Array : itemBytes === 2 ? Uint16Array : Uint32Array
  return new Words(buffer as ArrayBuffer, 0, byteLength / Words.BYTES_PER_ELEMENT)
}

/** Concatenates `chunks` into `target`. @returns target */
function fill(target: Uint8Array, chunks: readonly Uint8Array[]): Uint8Array {
  let at = 0
  for (const chunk of chunks) {
    target.set(chunk, at)
    at += chunk.byteLength
  }
  return target
}
