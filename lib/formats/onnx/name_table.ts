/**
 * Interns names: each is stored once in one byte list and has a number, so a million names need little more memory than
 * in the file. A hash table with open addressing and linear probing finds the number.
 */
import { ByteList } from '../byte_list.js'
import { NumberList } from '../number_list.js'

const FIRST_SLOTS = 256
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

export class NameTable {
  readonly #bytes = new ByteList()
  /** End offset of each name in `#bytes`. */
  readonly #ends = new NumberList(Float64Array)
  /** Compared before the bytes, and read when the slots grow. */
  readonly #hashes = new NumberList(Uint32Array)
  /** Number plus one per slot, 0 for an empty slot; at most half of the slots are taken. */
  #slots = new Uint32Array(FIRST_SLOTS)

  get length(): number {
    return this.#ends.length
  }

  /** The number of a name; the bytes of a new name are copied. */
  numberOf(name: Uint8Array): number {
    const hash = hashOf(name)
    const slot = this.#slotOf(name, hash)
    const found = this.#slots[slot]!
    if (found > 0) return found - 1
    this.#bytes.append(name)
    this.#ends.push(this.#bytes.length)
    this.#hashes.push(hash)
    if (2 * this.length > this.#slots.length) this.#grow()
    else this.#slots[slot] = this.length
    return this.length - 1
  }

  bytes(number: number): Uint8Array {
    return this.#bytes.subarray(number === 0 ? 0 : this.#ends.at(number - 1), this.#ends.at(number))
  }

  /** Invalid UTF-8 becomes U+FFFD. */
  text(number: number): string {
    return Buffer.from(this.bytes(number)).toString('utf8')
  }

  /** The slot of the name, or the empty slot where it belongs. */
  #slotOf(name: Uint8Array, hash: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (let found = this.#slots[slot]!; found > 0; found = this.#slots[slot]!) {
      if (this.#hashes.at(found - 1) === hash && isEqual(this.bytes(found - 1), name)) return slot
      slot = (slot + 1) & mask
    }
    return slot
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
function hashOf(bytes: Uint8Array): number {
  let hash = FNV_OFFSET
  for (let at = 0; at < bytes.byteLength; at++) hash = Math.imul(hash ^ bytes[at]!, FNV_PRIME)
  return (hash ^ (hash >>> 15)) >>> 0
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  if (one.byteLength !== other.byteLength) return false
  for (let at = 0; at < one.byteLength; at++) if (one[at] !== other[at]) return false
  return true
}
