/** Mutated BTF files are read or refused, in memory proportional to the file. */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { btf } from '../../../lib/formats/btf/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import { readOptions } from '../../formats/btf/btf_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, seedFiles } from './attacks.js'

const MUTATIONS = mutationCount(5000)
const SEED = fuzzSeed(20_260)

/** Numbers at which arithmetic overflows or rounds. */
const EDGES = [
  0n,
  1n,
  2n,
  7n,
  8n,
  16n,
  255n,
  256n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 60n,
  2n ** 61n,
  2n ** 62n,
  2n ** 63n - 1n,
  2n ** 63n,
  2n ** 64n - 16n,
  2n ** 64n - 1n,
]

/** The whole 8-byte word around `at`, if there is one. */
function inWord(change: (view: DataView, random: Random) => void): Change {
  return (bytes, at, random) => {
    const word = at - (at % 8)
    if (word + 8 <= bytes.length) change(new DataView(bytes.buffer, word, 8), random)
    return bytes
  }
}

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  copyRun(8, 8),
  inWord((word, random) => word.setBigUint64(0, EDGES[random(EDGES.length)]!, true)),
  // A random offset in the file.
  (bytes, at, random) =>
    inWord((word) => word.setUint32(0, random(bytes.length + 8), true))(bytes, at, random),
]

async function useTensor(tensor: Tensor): Promise<void> {
  if (tensor.kind === 'dense') {
    expect((await tensor.toTypedArray()).length).toBe(tensor.size)
    if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
  } else if (tensor.kind === 'sparse') {
    let entries = 0
    for await (const entry of tensor.entries()) entries += entry.index.length === tensor.shape.length ? 1 : 0
    expect(entries).toBe(tensor.entryCount)
    await tensor.toDense({ maxBytes: 4096 })
  }
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors } = await btf.read(source, readOptions(level))
  expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length)
  for (const tensor of tensors) await useTensor(tensor).catch(expectRefusal)
}

it(`${MUTATIONS} mutated files are read or refused, and a check agrees`, async () => {
  const random = randomNumbers(SEED)
  const seeds = [...seedFiles(), ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2048)]
  await expectReadOrRefused(MUTATIONS, () => mutate(seeds[random(seeds.length)]!, CHANGES, 3, random), {
    read,
    check: (bytes, level) => btf.check(new CountingSource(bytes), readOptions(level)),
  })
})

it('memory for the list of tensors stays below 4 times the file', async () => {
  const count = 400_000
  // All of the table, then a record of rank 0 for each entry.
  const first = 8 + 8 * count
  const bytes = new Uint8Array(first + 24 * count)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, count, true)
  for (let i = 0; i < count; i++) view.setUint32(8 + 8 * i, first + 24 * i, true)
  globalThis.gc?.()
  const source = new CountingSource(bytes)
  const before = process.memoryUsage().arrayBuffers
  const { tensors } = await btf.read(source, readOptions('lenient'))
  const taken = process.memoryUsage().arrayBuffers - before
  expect(tensors.length).toBe(count)
  // Windows that were read and dropped count until they are collected, so the bytes read are subtracted.
  expect(taken - source.bytesRead).toBeLessThan(4 * bytes.length)
})
