/** Random numbers and bytes from a seed, so that a failed run can be repeated. */

/**
 * Numbers in [0, 1) from the generator "mulberry32": small, and good enough to choose times and offsets.
 *
 * @param {number} seed
 */
export function generator(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** The seed of one of many cases, so that each can be repeated alone. */
export function caseSeed(seed, number) {
  return Math.floor(generator(Math.imul(seed, 0x9e3779b1) ^ number)() * 2 ** 32)
}

/** @param {readonly unknown[]} values @param {() => number} random - in [0, 1) */
export function pick(values, random) {
  return values[Math.floor(random() * values.length)]
}

/** Non-zero bytes, so that a hole or a lost block cannot pass for data. A linear congruential generator. */
export function seededBytes(byteLength, seed) {
  const words = new Uint32Array(Math.ceil(byteLength / 4))
  let state = (seed * 2654435761 + 1) >>> 0
  for (let i = 0; i < words.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    words[i] = state | 0x01010101
  }
  return new Uint8Array(words.buffer, 0, byteLength)
}
