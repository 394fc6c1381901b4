/**
 * Mutates valid and hostile files at random. Each result must either open, so that all of it can be used, or be refused
 * with a TileworkError; a check must agree with the read. The seed is fixed, so that failures are reproducible;
 * TILEWORK_FUZZ_SEED sets another one, TILEWORK_FUZZ_COUNT the number of files.
 */
import { expect } from 'vitest'
import type { Finding, Level } from '../../lib/errors.js'
import { MAX_FINDINGS } from '../../lib/formats/report.js'
import type { Random } from './random_numbers.js'
import { expectRefusal } from './refusal.js'

export type Bytes = Uint8Array<ArrayBuffer>

/** Changes a file at offset `at`, which may be its end. It may write to the given bytes. */
export type Change = (bytes: Bytes, at: number, random: Random) => Bytes

/** Number of files per test. */
export function mutationCount(usual: number): number {
  return Number(process.env.TILEWORK_FUZZ_COUNT ?? usual)
}

/** Changes for any format: a byte, a bit, a truncation, bytes after the end. */
export const ANY_FORMAT: readonly Change[] = [
  (bytes, at, random) => {
    if (at < bytes.length) bytes[at] = random(256)
    return bytes
  },
  (bytes, at, random) => {
    if (at < bytes.length) bytes[at]! ^= 1 << random(8)
    return bytes
  },
  (bytes, at) => bytes.slice(0, at),
  (bytes, _, random) =>
    new Uint8Array([...bytes, ...Array.from({ length: 1 + random(40) }, () => random(4))]),
]

/** Copies a run of the file to another offset: overlapping headers, repeated tables. */
export function copyRun(unit: number, most: number): Change {
  return (bytes, at, random) => bytes.copyWithin(random(bytes.length + 1), at, at + unit * random(most))
}

/** A copy of `seed` after 1 to `most` changes. */
export function mutate(seed: Uint8Array, changes: readonly Change[], most: number, random: Random): Bytes {
  let bytes: Bytes = new Uint8Array(seed)
  for (let left = 1 + random(most); left > 0; left--) {
    const change = changes[random(changes.length)]!
    bytes = change(bytes, random(bytes.length + 1), random)
  }
  return bytes
}

/** How a format handles a file. */
export interface FormatUnderTest {
  /** Opens a file and uses all of it. May refuse it. */
  read(bytes: Uint8Array, level: Level): Promise<void>
  check(bytes: Uint8Array, level: Level): Promise<Finding[]>
  /** True where a check examines headers only, so that a read knows everything a check finds. */
  readonly checksHeadersAlone?: boolean
}

/** Rethrows any error but a refusal. */
export async function readOrRefused(read: () => Promise<void>): Promise<'read' | 'refused'> {
  try {
    await read()
    return 'read'
  } catch (error) {
    expectRefusal(error)
    return 'refused'
  }
}

/** Tries `count` files at both levels. Some must open and some be refused, or the mutations test nothing. */
export async function expectReadOrRefused(
  count: number,
  next: (round: number) => Uint8Array,
  { read, check, checksHeadersAlone = false }: FormatUnderTest,
): Promise<void> {
  const results = { read: 0, refused: 0 }
  for (let round = 0; round < count; round++) {
    const bytes = next(round)
    for (const level of ['lenient', 'strict'] as const) {
      const result = await readOrRefused(() => read(bytes, level))
      results[result] += 1
      const findings = await check(bytes, level)
      expect(findings.length).toBeLessThanOrEqual(MAX_FINDINGS + 1)
      const isBad = findings.some(({ severity }) => severity === 'error')
      if (result === 'refused' || checksHeadersAlone) expect(isBad).toBe(result === 'refused')
    }
  }
  expect(results.read).toBeGreaterThan(count / 10)
  expect(results.refused).toBeGreaterThan(count / 10)
}
