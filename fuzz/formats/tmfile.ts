/** tmfile: models as tilework writes them, with the words that hold offsets, counts and codes replaced by likely others. */
import { joined, le, type Random } from '../random.js'

/** @param models - files to start from */
export function tmfile(random: Random, models: readonly Uint8Array[]): Uint8Array {
  const bytes = Uint8Array.from(random.pick(models))
  const words = Math.floor(bytes.length / 4)
  const view = new DataView(bytes.buffer)
  // The structures are at the start, and the offsets of vectors and texts point into the file.
  const place = () => 4 * random.below(random.once(2) ? Math.min(words, 64) : words)
  for (const _ of Array.from({ length: random.below(5) })) {
    const at = place()
    const old = view.getUint32(at, true)
    switch (random.below(6)) {
      case 0:
        view.setUint32(at, view.getUint32(place(), true), true)
        break
      case 1:
        view.setUint32(at, (old + random.pick([-8, -4, -1, 1, 4, 8])) >>> 0, true)
        break
      case 2:
        view.setUint32(at, place(), true)
        break
      case 3:
        view.setUint32(at, Number(BigInt.asUintN(32, random.number(16))), true)
        break
      case 4:
        view.setUint8(at + random.below(4), random.below(256))
        break
      default:
        view.setUint32(at, 0, true)
    }
  }
  return random.once(10)
    ? joined(bytes.subarray(0, random.below(bytes.length)), le(0, random.below(8)))
    : bytes
}
