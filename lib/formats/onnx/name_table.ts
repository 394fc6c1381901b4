/**
 * Names as numbers: each is kept once, as bytes in one run, so that a million of them cost little more than they have in the
 * file. A number is found by a hash with open addressing.
 */
import { ByteList } from '../byte_list.js'
import { NumberList } from '../number_list.js'

const FIRST_SLOTS = 256
const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

export class NameTable {
  readonly #bytes = new ByteList()
  /** Where each name ends in `#bytes`. */
  readonly #ends = new NumberList(Float64Array)
  /** A number and one in every slot that is taken; at most half of them are. */
  #slots = new Uint32Array(FIRST_SLOTS)

  get length(): number {
    return this.#ends.length
  }

  /** The number of a name, a new one for a new name. @param name - bytes that are copied */
  numberOf(name: Uint8Array): number {
    let slot = this.#slotOf(name)
    const found = this.#slots[slot]!
    if (found > 0) return found - 1
    if (2 * this.length >= this.#slots.length) {
      this.#grow()
      slot = this.#slotOf(name)
    }
    this.#keep(name)
    this.#slots[slot] = this.length
    return this.length - 1
  }

  bytes(number: number): Uint8Array {
    return this.#bytes.subarray(number === 0 ? 0 : this.#ends.at(number - 1), this.#ends.at(number))
  }

  /** Bytes that are no UTF-8 become U+FFFD. */
  text(number: number): string {
    return Buffer.from(this.bytes(number)).toString('utf8')
  }

  #keep(name: Uint8Array): void {
    this.#bytes.append(name)
    this.#ends.push(this.#bytes.length)
  }

  /** The slot that has the name, or the empty one where it belongs. */
  #slotOf(name: Uint8Array): number {
    const mask = this.#slots.length - 1
    let slot = hashOf(name) & mask
    for (let found = this.#slots[slot]!; found > 0; found = this.#slots[slot]!) {
      if (isEqual(this.bytes(found - 1), name)) return slot
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow(): void {
    this.#slots = new Uint32Array(2 * this.#slots.length)
    for (let number = 0; number < this.length; number++)
      this.#slots[this.#slotOf(this.bytes(number))] = number + 1
  }
}

/** FNV-1a, its halves mixed, since only low bits choose the slot. */
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
