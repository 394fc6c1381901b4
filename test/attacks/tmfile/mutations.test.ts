/**
 * Mutates real and hostile tmfiles: each must be read and rewritten byte for byte, or rejected, with memory proportional to
 * the file.
 */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { serialize } from '../../../lib/index.js'
import { tmfile } from '../../../lib/models/tmfile/index.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { TmfileModel } from '../../../lib/tmfile.js'
import { readOptions, smallFile } from '../../formats/tmfile/tmfile_bytes.js'
import { hasThirdPartyFiles, thirdPartyBytes, thirdPartyFiles } from '../../shared_fixtures.js'
import { CountingSource } from '../counting_source.js'
import { MemoryWatch } from '../memory_watch.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { ATTACKS } from './attacks.js'

const MUTATIONS = mutationCount(500)
const SEED = fuzzSeed(20_261)

/** Larger files are mutated only in longer runs: copying them takes longer than reading them. */
const LARGEST_SEED_BYTES = process.env.TILEWORK_FUZZ_COUNT === undefined ? 50_000 : 10_000_000

/** Real models, where they are available. */
function realFiles(): Uint8Array[] {
  if (!hasThirdPartyFiles) return []
  const small = thirdPartyFiles('tmfile').filter(({ byteLength }) => byteLength <= LARGEST_SEED_BYTES)
  return small.map(({ path }) => thirdPartyBytes(path))
}

const MEMORY = new MemoryWatch()

/** Numbers at which 32-bit arithmetic overflows. */
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

/** Start of the whole 4-byte word that contains `at`. */
function setWord(value: (length: number, random: Random) => number): Change {
  return (bytes, at, random) => {
    const word = at - (at % 4)
    const set = value(bytes.length, random)
    if (word + 4 <= bytes.length) new DataView(bytes.buffer).setUint32(word, set, true)
    return bytes
  }
}

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  copyRun(4, 16),
  setWord((_, random) => EDGES[random(EDGES.length)]!),
  // A random offset in the file.
  setWord((length, random) => random(length + 8)),
  // A small count or index.
  setWord((_, random) => random(20)),
]

async function useTensor(tensor: DenseTensor): Promise<void> {
  if (!tensor.hasData) return
  expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
  if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors, model } = await MEMORY.over(bytes.length, () => tmfile.read(source, readOptions(level)))
  // Each struct is read once, and few pages are read again.
  expect(source.bytesRead).toBeLessThanOrEqual(8 * bytes.length + 64 * 1024)
  for (const tensor of tensors) await useTensor(tensor as DenseTensor)
  const rewritten = await serialize(model as TmfileModel)
  expect(Buffer.compare(rewritten, bytes)).toBe(0)
  // Only strict knows that every byte has one meaning, so only then another order means the same.
  if (level === 'strict') {
    const upgraded = await serialize(model as TmfileModel, { mode: 'upgrade' })
    const again = await tmfile.read(new CountingSource(upgraded), readOptions('lenient'))
    expect(again.tensors.length).toBe(tensors.length)
  }
}

it(`${MUTATIONS} mutated files are rewritten or rejected, and check agrees`, {
  timeout: 60_000 + 60 * MUTATIONS,
}, async () => {
  const random = randomNumbers(SEED)
  const real = realFiles()
  const hostile = await Promise.all(ATTACKS.map(({ bytes }) => bytes()))
  const small = [await smallFile(), ...hostile.filter(({ length }) => length < 4096)]
  const next = (iteration: number): Uint8Array => {
    const seeds = iteration % 4 === 0 && real.length > 0 ? real : small
    return mutate(seeds[random(seeds.length)]!, CHANGES, 3, random)
  }
  await expectReadOrRefused(MUTATIONS, next, {
    read,
    check: (bytes, level) =>
      MEMORY.over(bytes.length, () => tmfile.check(new CountingSource(bytes), readOptions(level))),
    checksHeadersAlone: true,
  })
})

it('a file of 20,000 nodes and tensors is opened and rewritten', async () => {
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
  const bytes = await serialize(new TmfileModel({ nodes, tensors, inputs, outputs: nodes.slice(-1) }))
  const { model, findings } = await tmfile.read(new CountingSource(bytes), readOptions('strict'))
  expect(findings).toEqual([])
  expect((model as TmfileModel).graph.nodes.at(-1)!.inputs[0]!.name).toBe(`t${count - 2}`)
  expect(Buffer.compare(await serialize(model as TmfileModel), bytes)).toBe(0)
})
