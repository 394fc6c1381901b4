/** Reproducible random numbers for mutations, seeded by TILEWORK_FUZZ_SEED where it is set. */

export type Random = (below: number) => number

/** The seed from the environment, or the test's own. */
export function fuzzSeed(usual: number): number {
  return Number(process.env.TILEWORK_FUZZ_SEED ?? usual)
}

/** Small linear-feedback generator (xorshift, 32 bits): the same numbers on every machine. */
export function randomNumbers(seed: number): Random {
  let state = seed | 1
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}
