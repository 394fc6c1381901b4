/** Random choices of the fuzzers. One number, the seed of a case, makes all of its bytes. */

export class Random {
  #state: number

  constructor(seed: number) {
    // Splits neighbouring seeds: xorshift alone starts them alike.
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) | 1
    for (let i = 0; i < 4; i++) this.below(2)
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    let state = this.#state
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    this.#state = state
    return (state >>> 0) % limit
  }

  /** True once in `often`. */
  once(often: number): boolean {
    return this.below(often) === 0
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  times<T>(limit: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.below(limit + 1) }, (_, index) => make(index))
  }

  bytes(limit: number): Uint8Array {
    return Uint8Array.from({ length: this.below(limit + 1) }, () => this.below(256))
  }

  /** Mostly small; sometimes a number at which arithmetic goes wrong. */
  number(small = 8): bigint {
    return this.once(6) ? this.pick(EDGES) + BigInt(this.below(3)) - 1n : BigInt(this.below(small))
  }

  /** Names that are alike, odd, or not text. */
  name(): string {
    return this.once(4) ? this.pick(ODD_NAMES) : this.pick(['a', 'b', 'w', 'x', 'layer.0.weight'])
  }
}

const EDGES = [
  ...[1n, 8n, 127n, 128n, 255n, 256n, 65_535n, 65_536n, 2n ** 31n, 2n ** 32n, 2n ** 48n, 2n ** 53n],
  ...[2n ** 61n, 2n ** 62n, 2n ** 63n, 2n ** 64n - 8n, 2n ** 64n - 1n],
]

const ODD_NAMES = [
  '',
  '__proto__',
  'constructor',
  '__metadata__',
  '../x',
  'é',
  'e\u0301',
  '\u202ex',
  '\u{1f600}',
  'a\0b',
  'x'.repeat(300),
]

export function joined(...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return Buffer.concat(parts.map((part) => Uint8Array.from(part)))
}

/** Little-endian, modulo 2^(8 * width). */
export function le(value: bigint | number, width: number): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)))
  return bytes.subarray(0, width)
}

/** What a writer, a disk or an attacker does to bytes that were well-formed; most cases stay as they are. */
export function damaged(random: Random, bytes: Uint8Array): Uint8Array {
  if (!random.once(3)) return bytes
  const copy = Uint8Array.from(bytes)
  const at = random.below(copy.length + 1)
  switch (random.below(6)) {
    case 0:
      return copy.subarray(0, at)
    case 1:
      return joined(copy, random.bytes(16))
    case 2:
      if (at < copy.length) copy[at] = random.below(256)
      return copy
    case 3:
      if (at < copy.length) copy[at]! ^= 1 << random.below(8)
      return copy
    case 4:
      copy.set(le(random.number(), 8).subarray(0, Math.max(0, Math.min(8, copy.length - at))), at)
      return copy
    default:
      return joined(copy.subarray(0, at), copy.subarray(Math.min(copy.length, at + random.below(9))))
  }
}
