/**
 * Calls `open` and `check` with thousands of option objects and inputs, most of them invalid: each call must succeed or
 * throw a TileworkError. The seed is fixed; TILEWORK_FUZZ_SEED sets another.
 */
import { expect, it } from 'vitest'
import { TileworkError } from '../../../lib/errors.js'
import { check, type Input, type OpenOptions, open } from '../../../lib/pipeline/open.js'
import { sheetExample } from '../../formats/btf/btf_bytes.js'
import { nonsense } from '../../tensor/nonsense.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'

const ROUNDS = 3000
const SEED = fuzzSeed(20_261)

const pick = (random: Random, list: readonly unknown[]): unknown => list[random(list.length)]

/** Valid values of options, so that not every object is refused at its first field. */
const SOUND: Record<string, readonly unknown[]> = {
  format: [undefined, 'btf'],
  level: [undefined, 'lenient', 'strict'],
  mode: [undefined, 'map', 'read'],
  limits: [
    undefined,
    {},
    { tensors: 2 },
    { tensors: 1 },
    { headerBytes: 0 },
    { totalBytes: Number.POSITIVE_INFINITY },
  ],
  guard: [undefined, false],
  symlinks: [undefined, 'inside'],
}
const LIMITS = ['tensors', 'headerBytes', 'totalBytes', 'tensor', 'constructor', '__proto__']

function randomLimits(random: Random, wrong: readonly unknown[]): unknown {
  const names = LIMITS.filter(() => random(2) === 0)
  return Object.fromEntries(names.map((name) => [name, random(2) === 0 ? random(1000) : pick(random, wrong)]))
}

function randomOptions(random: Random, wrong: readonly unknown[]): unknown {
  if (random(10) === 0) return pick(random, wrong)
  const options: Record<string, unknown> = {}
  for (const [name, sound] of Object.entries(SOUND)) {
    if (random(3) === 0) continue
    if (name === 'limits' && random(3) === 0) options[name] = randomLimits(random, wrong)
    else options[name] = random(5) === 0 ? pick(random, wrong) : pick(random, sound)
  }
  return options
}

/** A caller's source of a valid file with one wrong member. */
function wrongSource(random: Random, wrong: readonly unknown[]): unknown {
  const bytes = sheetExample()
  const value = pick(random, wrong)
  const source: Record<string, unknown> = {
    byteLength: bytes.length,
    label: 'made',
    read: async (start: number, end: number) => bytes.slice(start, end),
    readSync: (start: number, end: number) => bytes.slice(start, end),
  }
  const faults: (() => void)[] = [
    () => Object.assign(source, { byteLength: value }),
    () => Object.assign(source, { label: value }),
    () => Object.assign(source, { read: value }),
    () => Object.assign(source, { readSync: value }),
    () => Object.assign(source, { close: value }),
    () => Object.assign(source, { read: async () => value }),
    () => Object.assign(source, { read: () => value }),
    () => Object.assign(source, { read: () => Promise.reject(value) }),
    () =>
      Object.assign(source, {
        read: () => {
          throw value
        },
      }),
  ]
  faults[random(faults.length)]?.()
  return source
}

async function outcome(call: () => Promise<unknown>): Promise<'done' | 'refused'> {
  try {
    await call()
    return 'done'
  } catch (error) {
    if (error instanceof TileworkError) return 'refused'
    throw error
  }
}

async function tryCalls(input: unknown, options: unknown): Promise<('done' | 'refused')[]> {
  const opened = await outcome(async () => {
    const file = await open(input as Input, options as OpenOptions)
    for (const tensor of file.tensors) if (tensor.kind === 'dense') await tensor.toTypedArray()
    file.close()
  })
  return [opened, await outcome(() => check(input as Input, options as OpenOptions))]
}

async function run(make: (random: Random, wrong: readonly unknown[]) => [unknown, unknown]): Promise<void> {
  const random = randomNumbers(SEED)
  const results = { done: 0, refused: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const [input, options] = make(random, nonsense())
    const outcomes = await tryCalls(input, options).catch((error: unknown) => {
      throw new Error(`round ${round}: ${error instanceof Error ? error.stack : typeof error}`)
    })
    for (const result of outcomes) results[result] += 1
  }
  // Some calls must succeed and some throw, or the rounds test nothing.
  expect(results.done).toBeGreaterThan(ROUNDS / 20)
  expect(results.refused).toBeGreaterThan(ROUNDS / 20)
}

it(`${ROUNDS} option objects`, () => run((random, wrong) => [sheetExample(), randomOptions(random, wrong)]))

it(`${ROUNDS} inputs`, () =>
  run((random, wrong) => [
    random(3) === 0 ? pick(random, [...wrong, sheetExample()]) : wrongSource(random, wrong),
    random(2) === 0 ? {} : { format: 'btf' },
  ]))
