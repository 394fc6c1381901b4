/** Mutated GGUF files are read or refused, in reads proportional to the file. */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { Level } from '../../../lib/errors.js'
import { gguf } from '../../../lib/formats/gguf/index.js'
import type { GgufModel } from '../../../lib/formats/gguf/model.js'
import { readOptions } from '../../formats/gguf/gguf_bytes.js'
import { bytesOfPlan } from '../../formats/npy/npy_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, seedFiles } from './attacks.js'

const MUTATIONS = mutationCount(1000)
const SEED = fuzzSeed(20_261)

/** Numbers at which lengths, counts and offsets go wrong. */
const NUMBERS = [0n, 1n, 8n, 31n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 61n, 2n ** 63n, 2n ** 64n - 1n]

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  (bytes, at, random) => {
    const number = Buffer.alloc(8)
    number.writeBigUInt64LE(NUMBERS[random(NUMBERS.length)]!)
    bytes.set(number.subarray(0, Math.max(0, Math.min(8, bytes.length - at))), Math.min(at, bytes.length))
    return bytes
  },
  (bytes, at, random) => {
    if (at + 4 <= bytes.length) Buffer.from(bytes.buffer).writeUInt32LE(random(44), at)
    return bytes
  },
  copyRun(4, 20),
]

async function useModel(model: GgufModel): Promise<void> {
  for (const key of model.metadata.keys()) model.metadata.get(key)
  gguf.describe(model)
  await bytesOfPlan(await gguf.planModel(model))
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors, model } = await gguf.read(source, readOptions(level))
  expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length + 4096)
  for (const tensor of tensors) {
    if (tensor.kind !== 'block' && tensor.kind !== 'dense') throw new Error(tensor.kind)
    const numbers = await tensor.toTypedArray()
    expect(numbers.length).toBe(tensor.size)
  }
  await useModel(model!).catch(expectRefusal)
}

it(`${MUTATIONS} mutated files are read or refused, and a check agrees`, { timeout: 600_000 }, async () => {
  const random = randomNumbers(SEED)
  const seeds = [...seedFiles(), ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2048)]
  await expectReadOrRefused(MUTATIONS, () => mutate(seeds[random(seeds.length)]!, CHANGES, 3, random), {
    read,
    check: (bytes, level) => gguf.check(new MemorySource(bytes), readOptions(level)),
  })
})
