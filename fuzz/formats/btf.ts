/** BTF by its grammar: count, offset table, records with dense or sparse payloads, padding. */
import { joined, le, type Random } from '../random.js'

const WIDTHS = [1, 2, 4, 8, 1, 2, 4, 8, 4, 8]

export function btf(random: Random): Uint8Array {
  const records = random.times(5, () => record(random))
  const offsets: number[] = []
  const parts: Uint8Array[] = []
  let at = 8 + 8 * records.length
  for (const bytes of records) {
    const gap = random.once(12) ? random.below(9) : 0
    const padding = random.once(12) ? random.below(8) : (8 - ((at + gap + bytes.length) % 8)) % 8
    offsets.push(at + gap)
    parts.push(new Uint8Array(gap), bytes, random.once(20) ? random.bytes(padding) : new Uint8Array(padding))
    at += parts.slice(-3).reduce((sum, { length }) => sum + length, 0)
  }
  // Offsets in another order are legal; the same one twice, and one inside a record, are overlaps.
  if (random.once(4) && offsets.length > 1) offsets[random.below(offsets.length)] = random.pick(offsets)
  if (random.once(5) && offsets.length > 0) offsets[random.below(offsets.length)]! += 8 * random.below(5) - 16
  if (random.once(3)) offsets.reverse()
  const count = random.once(15) ? random.number(16) : BigInt(records.length)
  const table = offsets.map((offset) => le(random.once(25) ? random.number(256) : offset, 8))
  return joined(le(count, 8), ...table, ...parts)
}

function record(random: Random): Uint8Array {
  const isSparse = random.once(4)
  const code = random.once(20) ? random.below(256) : random.below(10)
  const width = WIDTHS[code] ?? 1
  const rank = random.once(20) ? random.below(40) : random.below(4)
  const dims = Array.from({ length: rank }, () =>
    random.once(10) ? random.number() : BigInt(random.below(4)),
  )
  const layout = random.once(20) ? random.below(256) : isSparse ? 1 + random.below(2) : 0
  const reserved = random.once(20) ? random.bytes(6) : new Uint8Array(6)
  const head = joined(
    le(random.once(20) ? random.number(300) : rank, 8),
    [code, layout],
    pad(reserved, 6),
    ...dims.map((dim) => le(dim, 8)),
  )
  if (!isSparse) {
    const size =
      Number(
        BigInt.asUintN(
          8,
          dims.reduce((product, dim) => product * dim, 1n),
        ),
      ) * width
    return joined(head, filled(random, size))
  }
  const entries = random.below(4)
  const indices = Array.from({ length: entries * rank }, (_, i) =>
    le(random.once(10) ? random.number() : i % 4, 8),
  )
  const count = random.once(15) ? random.number() : entries
  return joined(head, le(count, 8), le(rank, 8), ...indices, le(entries, 8), filled(random, entries * width))
}

function filled(random: Random, size: number): Uint8Array {
  return Uint8Array.from({ length: random.once(20) ? random.below(size + 9) : size }, () => random.below(256))
}

function pad(bytes: Uint8Array, length: number): Uint8Array {
  return joined(bytes, new Uint8Array(Math.max(0, length - bytes.length))).subarray(0, length)
}
