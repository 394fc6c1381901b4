/**
 * Real files, and hostile ones, that are almost right. Each must be opened, so that every tensor of it can be used and
 * the model be written again byte for byte, or be refused with a TileworkError; nothing may crash, hang, or read more
 * than the file justifies. The seed is fixed, so a failure can be run again; TILEWORK_FUZZ_SEED tries another, and
 * TILEWORK_FUZZ_COUNT more.
 */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { tmfile } from '../../../lib/formats/tmfile/index.js'
import { serialize, TmfileModel } from '../../../lib/index.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { FIXTURE_NAMES, fixtureBytes } from '../../formats/tmfile/fixture_files.js'
import { readOptions, smallFile } from '../../formats/tmfile/tmfile_bytes.js'
import { CountingSource } from '../counting_source.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS } from './attacks.js'

const MUTATIONS = Number(process.env.TILEWORK_FUZZ_COUNT ?? 2000)
const SEED = fuzzSeed(20_261)

/** Larger ones are left to runs of more mutations: copying them takes longer than reading them. */
const LARGEST_SEED_BYTES = process.env.TILEWORK_FUZZ_COUNT === undefined ? 50_000 : 10_000_000

/** Numbers at which arithmetic of 32 bits goes wrong. */
const EDGES = [
  0,
  1,
  2,
  3,
  4,
  8,
  9,
  12,
  255,
  256,
  65_535,
  65_536,
  2 ** 30,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32 - 16,
  2 ** 32 - 1,
]

function mutate(seed: Uint8Array, random: Random): Uint8Array {
  let bytes = Buffer.from(seed)
  for (let changes = 1 + random(3); changes > 0; changes--) bytes = mutateOnce(bytes, random)
  return new Uint8Array(bytes)
}

function mutateOnce(bytes: Buffer<ArrayBuffer>, random: Random): Buffer<ArrayBuffer> {
  const at = random(bytes.length + 1)
  const word = 4 * random(Math.max(1, Math.floor(bytes.length / 4)))
  const fits = word + 4 <= bytes.length
  switch (random(8)) {
    case 0:
      if (at < bytes.length) bytes[at] = random(256)
      return bytes
    case 1:
      if (at < bytes.length) bytes[at]! ^= 1 << random(8)
      return bytes
    case 2:
      if (fits) bytes.writeUInt32LE(EDGES[random(EDGES.length)]!, word)
      return bytes
    case 3:
      // An offset to somewhere in the file.
      if (fits) bytes.writeUInt32LE(random(bytes.length + 8), word)
      return bytes
    case 4:
      // A small count or index.
      if (fits) bytes.writeUInt32LE(random(20), word)
      return bytes
    case 5:
      return Buffer.from(bytes.subarray(0, at))
    case 6:
      return Buffer.concat([bytes, Buffer.alloc(1 + random(40), random(4))])
    default:
      bytes.copyWithin(random(bytes.length + 1), at, at + 4 * random(16))
      return bytes
  }
}

async function useTensor(tensor: DenseTensor): Promise<void> {
  if (!tensor.hasData) return
  expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
  if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
}

/** Opens, uses and rewrites a file; a refusal is fine, any other error is not. */
async function tryFile(bytes: Uint8Array, level: Level): Promise<'read' | 'refused'> {
  const source = new CountingSource(bytes)
  let model: TmfileModel
  try {
    const read = await tmfile.read(source, readOptions(level))
    // Structs once, in pages of which few are read again.
    expect(source.bytesRead).toBeLessThanOrEqual(8 * bytes.length + 64 * 1024)
    for (const tensor of read.tensors) await useTensor(tensor as DenseTensor)
    model = read.model as TmfileModel
  } catch (error) {
    expectRefusal(error)
    return 'refused'
  }
  // Only strict knows that every byte has one meaning, so only then another order means the same.
  expect(Buffer.compare(await serialize(model), bytes)).toBe(0)
  if (level === 'strict') {
    const upgraded = await serialize(model, { mode: 'upgrade' })
    const again = await tmfile.read(new CountingSource(upgraded), readOptions('lenient'))
    expect(again.tensors.length).toBe(model.graph.tensors.length)
  }
  return 'read'
}

it(`${MUTATIONS} mutated files are read and rewritten, or refused, and what a strict check lets pass a strict read reads`, async () => {
  const random = randomNumbers(SEED)
  const real = FIXTURE_NAMES.map(fixtureBytes).filter(({ length }) => length <= LARGEST_SEED_BYTES)
  const hostile = await Promise.all(ATTACKS.map(({ bytes }) => bytes()))
  const small = [await smallFile(), ...hostile.filter(({ length }) => length < 4096)]
  const results = { read: 0, refused: 0 }
  for (let i = 0; i < MUTATIONS; i++) {
    const seeds = i % 4 === 0 && real.length > 0 ? real : small
    const bytes = mutate(seeds[random(seeds.length)]!, random)
    for (const level of ['lenient', 'strict'] as const) {
      const result = await tryFile(bytes, level)
      results[result] += 1
      const findings = await tmfile.check(new CountingSource(bytes), readOptions(level))
      expect(findings.length).toBeLessThanOrEqual(1001)
      const isClean = findings.every(({ severity }) => severity !== 'error')
      expect(result).toBe(isClean ? 'read' : 'refused')
    }
  }
  // Both ways must be walked, or the mutations test nothing.
  expect(results.read).toBeGreaterThan(MUTATIONS / 20)
  expect(results.refused).toBeGreaterThan(MUTATIONS / 20)
})

it('a file of twenty thousand nodes and tensors opens, and is written again', async () => {
  const count = 20_000
  const tensors = Array.from({ length: count }, (_, at) => ({
    ...{ name: `t${at}`, dtype: 'float32', shape: [1], layout: 0, quantization: null, buffer: null },
    role: at === 0 ? ('input' as const) : ('variable' as const),
  })) as TmfileModel['graph']['tensors']
  const nodes = tensors.map((tensor, at) => ({
    ...{
      name: `n${at}`,
      operatorVersion: 1,
      params: {},
      opaqueParams: null,
      attributes: [],
      dynamicShape: false,
    },
    ...(at === 0 ? { operator: 'InputOp', operatorNumber: 12 } : { operator: 'Sigmoid', operatorNumber: 37 }),
    inputs: at === 0 ? [] : [tensors[at - 1]!],
    outputs: [tensor],
  })) as TmfileModel['graph']['nodes']
  const inputs = nodes.slice(0, 1)
  const bytes = await serialize(new TmfileModel({ nodes, tensors, inputs, outputs: nodes.slice(9, 10) }))
  const { model, findings } = await tmfile.read(new CountingSource(bytes), readOptions('strict'))
  expect(findings).toEqual([])
  expect((model as TmfileModel).graph.nodes.at(-1)!.inputs[0]!.name).toBe(`t${count - 2}`)
  expect(Buffer.compare(await serialize(model as TmfileModel), bytes)).toBe(0)
})
