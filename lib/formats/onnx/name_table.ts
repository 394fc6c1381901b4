/**
 * Interns names: each is stored once in one byte list and has a number, so a million names need little more memory than
 * in the file. A hash table with open addressing and linear probing finds the number.
 */
import { isWellFormed } from '../../utf8.js'
import { ByteList } from '../byte_list.js'
import { NumberList } from '../number_list.js'

const FIRST_SLOTS = 256
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** Texts up to this length are encoded without a new array. */
const SHORT_TEXT = 256

export class NameTable {
  readonly #bytes = new ByteList()
  /** End offset of each name in `#bytes`. */
  readonly #ends = new NumberList(Float64Array)
  /** Compared before the bytes, and read when the slots grow. */
  readonly #hashes = new NumberList(Int32Array)
  /** Number plus one per slot, 0 for an empty slot; at most half of the slots are taken. */
  #slots = new Uint32Array(FIRST_SLOTS)
  /** The text that is looked for. */
  readonly #text = new Uint8Array(SHORT_TEXT)
  /** The last text that was looked for, and its number: an edit asks for one name several times. */
  #lastText: string | undefined
  #last = -1

  get length(): number {
    return this.#ends.length
  }

  /**
   * The number of the name in `bytes[start, end)`; the bytes of a new name are copied. A range, because a view of a name takes
   * longer to make than to compare.
   */
  numberOf(bytes: Uint8Array, start = 0, end = bytes.byteLength): number {
    const hash = hashOf(bytes, start, end)
    const slot = this.#slotOf(bytes, start, end, hash)
    const found = this.#slots[slot]!
    if (found > 0) return found - 1
    this.#lastText = undefined
    this.#bytes.appendShort(bytes, start, end)
    this.#ends.push(this.#bytes.length)
    this.#hashes.push(hash)
    if (2 * this.length > this.#slots.length) this.#grow()
    else this.#slots[slot] = this.length
    return this.length - 1
  }

  numberOfText(text: string): number {
    if (text === this.#lastText && this.#last >= 0) return this.#last
    const bytes = this.#encoded(text)
    return this.numberOf(bytes, 0, bytes === this.#text ? text.length : bytes.byteLength)
  }

  /** The number of a text; -1 for one that is not in the table, as for a caller's value that is no text. */
  find(text: string): number {
    if (typeof text !== 'string') return -1
    if (text === this.#lastText) return this.#last
    this.#last = this.#find(text)
    this.#lastText = text
    return this.#last
  }

  #find(text: string): number {
    const bytes = this.#encoded(text)
    // A lone surrogate has no bytes of its own.
    if (bytes !== this.#text && !isWellFormed(text)) return -1
    const end = bytes === this.#text ? text.length : bytes.byteLength
    return this.#slots[this.#slotOf(bytes, 0, end, hashOf(bytes, 0, end))]! - 1
  }

  /** The bytes of a text: in `#text` if it is short and ASCII, as most names are. */
  #encoded(text: string): Uint8Array {
    if (text.length > SHORT_TEXT) return Buffer.from(text, 'utf8')
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code > 0x7f) return Buffer.from(text, 'utf8')
      this.#text[at] = code
    }
    return this.#text
  }

  bytes(number: number): Uint8Array {
    return this.#bytes.subarray(this.#startOf(number), this.#ends.at(number))
  }

  /** Invalid UTF-8 becomes U+FFFD. */
  text(number: number): string {
    return Buffer.from(this.bytes(number)).toString('utf8')
  }

  /** The slot of the name, or the empty slot where it belongs. */
  #slotOf(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (let found = this.#slots[slot]!; found > 0; found = this.#slots[slot]!) {
      if (this.#hashes.at(found - 1) === hash && this.#isEqual(found - 1, bytes, start, end)) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  #startOf(number: number): number {
    return number === 0 ? 0 : this.#ends.at(number - 1)
  }

  #isEqual(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    const first = this.#startOf(number)
    return this.#ends.at(number) - first === end - start && this.#bytes.isAt(first, bytes, start, end)
  }

  #grow(): void {
    const slots = new Uint32Array(2 * this.#slots.length)
    const mask = slots.length - 1
    for (let number = 0; number < this.length; number++) {
      let slot = this.#hashes.at(number) & mask
      while (slots[slot]! > 0) slot = (slot + 1) & mask
      slots[slot] = number + 1
    }
    this.#slots = slots
  }
}

/** FNV-1a; the halves are mixed because only the low bits select a slot. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = FNV_OFFSET
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME)
  // Signed: V8 would box a larger number.
  return hash ^ (hash >>> 15)
}
