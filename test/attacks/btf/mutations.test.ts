/**
 * Ten thousand files that are almost right. Each must be opened, so that every tensor of it can be used, or be refused
 * with a TileworkError; nothing may crash, hang, or take memory that the file does not justify. The seed is fixed, so
 * a failure can be run again; TILEWORK_FUZZ_SEED tries another.
 */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { btf } from '../../../lib/formats/btf/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import { readOptions } from '../../formats/btf/btf_bytes.js'
import { CountingSource } from '../counting_source.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, seedFiles } from './attacks.js'

const MUTATIONS = 10_000
const SEED = fuzzSeed(20_260)

/** Numbers at which arithmetic goes wrong. */
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

function mutate(seed: Uint8Array, random: Random): Uint8Array {
  let bytes = new Uint8Array(seed)
  for (let changes = 1 + random(3); changes > 0; changes--) bytes = mutateOnce(bytes, random)
  return bytes
}

function mutateOnce(bytes: Uint8Array<ArrayBuffer>, random: Random): Uint8Array<ArrayBuffer> {
  const at = random(bytes.length + 1)
  const word = 8 * random(Math.max(1, Math.floor(bytes.length / 8)))
  const fits = word + 8 <= bytes.length
  switch (random(7)) {
    case 0:
      if (at < bytes.length) bytes[at] = random(256)
      return bytes
    case 1:
      if (at < bytes.length) bytes[at]! ^= 1 << random(8)
      return bytes
    case 2:
      if (fits) new DataView(bytes.buffer).setBigUint64(word, EDGES[random(EDGES.length)]!, true)
      return bytes
    case 3:
      if (fits) new DataView(bytes.buffer).setUint32(word, random(bytes.length + 8), true)
      return bytes
    case 4:
      return bytes.slice(0, at)
    case 5:
      return new Uint8Array([...bytes, ...Array.from({ length: 1 + random(40) }, () => random(4))])
    default:
      // A run of the file in another place of it: headers that overlap, tables that repeat.
      bytes.copyWithin(random(bytes.length + 1), at, at + 8 * random(8))
      return bytes
  }
}

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

/** Opens and uses a file; a refusal is fine, any other error is not. */
async function tryFile(bytes: Uint8Array, level: Level): Promise<'read' | 'refused'> {
  const source = new CountingSource(bytes)
  try {
    const { tensors } = await btf.read(source, readOptions(level))
    expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length)
    for (const tensor of tensors) await useTensor(tensor).catch(expectRefusal)
    return 'read'
  } catch (error) {
    expectRefusal(error)
    return 'refused'
  }
}

it(`${MUTATIONS} mutated files are read or refused`, async () => {
  const random = randomNumbers(SEED)
  const seeds = [...seedFiles(), ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2048)]
  const results = { read: 0, refused: 0 }
  for (let i = 0; i < MUTATIONS; i++) {
    const bytes = mutate(seeds[random(seeds.length)]!, random)
    const level = i % 2 === 0 ? 'lenient' : 'strict'
    results[await tryFile(bytes, level)] += 1
    const findings = await btf.check(new CountingSource(bytes), readOptions(level))
    expect(findings.length).toBeLessThanOrEqual(1001)
  }
  // Both ways must be walked, or the mutations test nothing.
  expect(results.read).toBeGreaterThan(MUTATIONS / 20)
  expect(results.refused).toBeGreaterThan(MUTATIONS / 20)
})

it('what a strict check lets pass, a strict read reads, and the other way round', async () => {
  const random = randomNumbers(SEED + 1)
  const seeds = seedFiles()
  for (let i = 0; i < 2000; i++) {
    const bytes = mutate(seeds[random(seeds.length)]!, random)
    const findings = await btf.check(new CountingSource(bytes), readOptions('strict'))
    const isClean = findings.every(({ severity }) => severity !== 'error')
    const result = await tryFile(bytes, 'strict')
    if (isClean) expect(result).toBe('read')
    if (result === 'refused') expect(isClean).toBe(false)
  }
})

it('memory for the list of tensors stays below 4 times the file', async () => {
  const count = 400_000
  // All of the table, then one header of rank 0 and 8 spare bytes, shared by half of the records; the rest stand apart.
  const first = 8 + 8 * count
  const bytes = new Uint8Array(first + 24 * (count / 2))
  const view = new DataView(bytes.buffer)
  view.setUint32(0, count, true)
  for (let i = 0; i < count; i++) view.setUint32(8 + 8 * i, first + 24 * Math.floor(i / 2), true)
  globalThis.gc?.()
  const source = new CountingSource(bytes)
  const before = process.memoryUsage().arrayBuffers
  const { tensors } = await btf.read(source, readOptions('lenient'))
  const taken = process.memoryUsage().arrayBuffers - before
  expect(tensors.length).toBe(count)
  // Windows that are read and dropped are counted until they are collected, so what was read is taken off.
  expect(taken - source.bytesRead).toBeLessThan(4 * bytes.length)
})
