/** Random mutations of valid and hostile files: each is read or refused, in bounded memory. */

import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { OnnxModel } from '../../../lib/models/onnx/document/model.js'
import { summarizeOnnx } from '../../../lib/models/onnx/document/summary.js'
import {
  constantsToInitializers,
  deduplicateInitializers,
  initializersToConstants,
  removeUnused,
  sortNodes,
} from '../../../lib/models/onnx/edit/graph_passes.js'
import { onnx } from '../../../lib/models/onnx/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import {
  bytesOfPlan,
  entry,
  field,
  int,
  join,
  modelProto,
  nodeProto,
  raw,
  readOptions,
  sparseProto,
  tensorProto,
  varint,
} from '../../formats/onnx/onnx_bytes.js'
import { hasThirdPartyFiles, thirdPartyBytes, thirdPartyFiles } from '../../shared_fixtures.js'
import { CountingSource } from '../counting_source.js'
import { MemoryWatch } from '../memory_watch.js'
import {
  ANY_FORMAT,
  type Bytes,
  type Change,
  expectReadOrRefused,
  mutate,
  mutationCount,
  readOrRefused,
} from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, FOLDER } from './attacks.js'

const MUTATIONS = mutationCount(1000)
const SEED = fuzzSeed(20_260_823)
const MEMORY = new MemoryWatch()
/** Most of the time is garbage collection. */
const TIMEOUT = 60_000 + 60 * MUTATIONS

/** Third-party files that are small enough for thousands of mutations. */
function realFiles(): Uint8Array[] {
  if (!hasThirdPartyFiles) return []
  const small = thirdPartyFiles('onnx').filter(({ byteLength }) => byteLength < 2000)
  return small.map(({ path }) => thirdPartyBytes(path))
}

/** A file with every feature. */
function madeFiles(): Uint8Array[] {
  const typed = tensorProto({
    dims: [3],
    type: 7,
    name: 'i',
    values: field(7, join(varint(1), varint(300), varint(-1))),
  })
  const nibbles = tensorProto({ dims: [5], type: 22, name: 'n', values: field(5, [1, 2, 3]) })
  const texts = tensorProto({ dims: [2], type: 8, name: 's', values: join(field(6, 'one'), field(6, 'two')) })
  const outside = tensorProto({
    dims: [4],
    type: 2,
    name: 'x',
    external: { location: 'w.bin', offset: '8', length: '4' },
  })
  const values = tensorProto({ dims: [2], type: 1, name: 'c', values: raw(0, 0, 0x80, 0x3f, 0, 0, 0, 0x40) })
  const sparse = sparseProto(values, tensorProto({ dims: [2], type: 7, values: field(7, [1, 3]) }), [2, 2])
  const attribute = join(field(1, 'value'), field(5, typed), int(20, 4))
  const nodes = [nodeProto({ inputs: ['i', 'n'], outputs: ['y'], attributes: [attribute] })]
  const initializers = [typed, nibbles, texts, outside]
  const metadata = field(14, entry('author', 'nobody'))
  const sequence = join(field(1, 'seq'), int(2, 1), field(3, typed), field(3, nibbles))
  return [
    modelProto({ nodes, initializers, sparse: [sparse], outputs: ['y'] }, metadata),
    sequence,
    sparse,
    typed,
    outside,
  ]
}

/** A model of long texts and small weights: most of its bytes may change without a fault. */
function plainModel(nodeCount: number): Uint8Array {
  const ones = raw(...Array<number>(16).fill(1))
  const names = Array.from({ length: nodeCount + 1 }, (_, at) => `a_value_with_a_long_name_${at}`)
  const nodes = names
    .slice(1)
    .map((name, at) => nodeProto({ inputs: [names[at]!, `w${at}`], outputs: [name] }))
  const initializers = nodes.map((_, at) =>
    tensorProto({ dims: [2, 2], type: 1, name: `w${at}`, values: ones }),
  )
  const documentation = field(6, 'no reader depends on these words. '.repeat(40))
  return modelProto({ nodes, initializers, inputs: [names[0]!], outputs: [names.at(-1)!] }, documentation)
}

/** Bytes with a meaning on the wire: tags, lengths, varint ends. */
const FRAGMENTS: readonly Uint8Array[] = [
  [0x08],
  [0x10, 0x01],
  [0x2a, 0x00],
  [0x4a, 0x01, 0x00],
  [0x7a, 0x02, 0x0a, 0x00],
  [0xff, 0xff, 0xff, 0xff, 0x0f],
  [0x80],
  [0xa3, 0x06],
  [0x00],
  [0x10, 0x16],
  [0x70, 0x01],
  [0x3a, 0x7f],
  [0x1a, 0x02, 0x08, 0x01],
].map((bytes) => Uint8Array.from(bytes))

/** `bytes` with [at, at + removed) replaced. */
function spliced(bytes: Bytes, at: number, removed: number, fragment: Uint8Array): Bytes {
  return new Uint8Array([...bytes.subarray(0, at), ...fragment, ...bytes.subarray(at + removed)])
}

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  (bytes, at, random) => spliced(bytes, at, random(3), FRAGMENTS[random(FRAGMENTS.length)]!),
  (bytes, at, random) => spliced(bytes, at, 1 + random(8), new Uint8Array(0)),
  (bytes, at, random) => spliced(bytes, at, 0, bytes.subarray(random(at + 1), at)),
]

/** Reads all of a tensor, which may allocate at most eight times the size of the files. */
async function useTensor(tensor: Tensor, mostBytes: number): Promise<void> {
  if (tensor.kind === 'string') {
    await tensor.strings().catch(expectRefusal)
    await tensor.rawStrings()
  } else if (tensor.kind === 'sparse') {
    await tensor.indices().catch(expectRefusal)
    await tensor.toDense({ maxBytes: 4096 }).catch(expectRefusal)
  } else if (tensor.hasData) {
    expect(tensor.storage.byteLength).toBeLessThanOrEqual(mostBytes)
    expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
    if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
  }
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors, findings } = await MEMORY.over(bytes.length, () =>
    onnx.read(source, readOptions(level, FOLDER)),
  )
  expect(findings.length).toBeLessThanOrEqual(1001)
  // Each message is read at its own level, by the levels above, and again by strict.
  expect(source.bytesRead).toBeLessThanOrEqual(16 * bytes.length + 64 * 1024)
  const mostBytes = 8 * bytes.length + 65_536
  for (const tensor of tensors) await useTensor(tensor, mostBytes).catch(expectRefusal)
}

it(`${MUTATIONS} mutated files are read or refused, and a check agrees`, { timeout: TIMEOUT }, async () => {
  const random = randomNumbers(SEED)
  const seeds = [
    ...madeFiles(),
    ...realFiles(),
    ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2000),
  ]
  const next = (round: number) =>
    mutate(seeds[random(round % 2 === 0 ? 5 : seeds.length)]!, CHANGES, 4, random)
  await expectReadOrRefused(MUTATIONS, next, {
    read,
    check: (bytes, level) =>
      MEMORY.over(bytes.length, () => onnx.check(new CountingSource(bytes), readOptions(level, FOLDER))),
  })
})

/** Mutated top-level fields match no message type, so the type is given. */
const AS_MODEL = { ...readOptions('lenient', FOLDER), message: 'ModelProto' } as const

/** Calls every operation of a model. Each may be refused; the saved result must open. */
async function useModel(bytes: Uint8Array): Promise<void> {
  const { model } = await onnx.read(new CountingSource(bytes), AS_MODEL)
  if (!(model instanceof OnnxModel)) return
  const unchanged = await onnx.planModel!(model)
  expect(await bytesOfPlan(unchanged)).toEqual(bytes)
  const mostBytes = 8 * bytes.length + 65_536
  await readOrRefused(async () => {
    for (const { tensor } of model.allTensors()) await useTensor(tensor, mostBytes).catch(expectRefusal)
  })
  for (const deed of DEEDS) await readOrRefused(async () => void (await deed(model)))
  const plan = await onnx.planModel!(model)
  expect(plan.byteLength).toBeLessThanOrEqual(2 * bytes.length + 1024)
  const saved = await bytesOfPlan(plan)
  await onnx.read(new CountingSource(saved), AS_MODEL)
}

const DEEDS: readonly ((model: OnnxModel) => unknown)[] = [
  summarizeOnnx,
  ({ graph }) => {
    for (const value of graph.values()) void [value.type, value.uses, value.producer, value.constant]
  },
  (model) => [...model.graphs()].map((graph) => [...graph.allNodes(), ...graph.outerNames()]),
  ({ functions, trainingInfo }) => [functions.map(({ nodes }) => nodes), trainingInfo],
  ({ graph }) => sortNodes(graph),
  ({ graph }) => constantsToInitializers(graph),
  (model) => initializersToConstants(model),
  ({ graph }) => deduplicateInitializers(graph),
  ({ graph }) => removeUnused(graph),
  ({ graph }) => graph.inputs[0] && graph.rename(graph.inputs[0].name, 'renamed'),
  (model) => {
    model.producerName = 'changed'
  },
]

it(`${MUTATIONS} mutated models are walked, edited and saved, or refused`, { timeout: TIMEOUT }, async () => {
  const random = randomNumbers(SEED + 1)
  const seeds = [
    madeFiles()[0]!,
    ...[0, 1, 2, 5, 10, 20].map(plainModel),
    ...realFiles().filter(([first]) => first === MODEL_START),
  ]
  const results = { read: 0, refused: 0 }
  for (let round = 0; round < MUTATIONS; round++) {
    const bytes = mutate(seeds[random(seeds.length)]!, CHANGES, 3, random)
    results[await readOrRefused(() => MEMORY.over(bytes.length, () => useModel(bytes)))] += 1
  }
  expect(results.read).toBeGreaterThan(MUTATIONS / 10)
  expect(results.refused).toBeGreaterThan(MUTATIONS / 10)
})

/** Models begin with their IR version. */
const MODEL_START = 0x08

it('opening, checking and summarizing a model of many nodes allocates at most eight times its size', async () => {
  const node = (at: number) =>
    nodeProto({ inputs: [`value_${at}`], outputs: [`value_${at + 1}`], attributes: [field(1, 'axis')] })
  const nodes = Array.from({ length: 40_000 }, (_, at) => node(at))
  const bytes = modelProto({ nodes, inputs: ['value_0'], outputs: ['value_40000'] })
  const source = new CountingSource(bytes)
  const { model } = await MEMORY.over(bytes.length, () => onnx.read(source, readOptions('strict')))
  await MEMORY.over(bytes.length, () => onnx.check(source, readOptions('strict')))
  const { nodes: count } = await MEMORY.over(bytes.length, async () => summarizeOnnx(model as OnnxModel))
  expect(count).toBe(40_000)
})

it('a million empty tensors, and a million of a few bytes, give findings or tensors', async () => {
  const empty = modelProto({ initializers: [] })
  const many = (tensor: Uint8Array): Uint8Array => {
    const one = field(5, tensor)
    const graph = new Uint8Array(one.length * 1_000_000)
    for (let at = 0; at < graph.length; at += one.length) graph.set(one, at)
    return join(empty.subarray(0, 2), field(7, graph))
  }
  const { tensors, findings } = await onnx.read(
    new CountingSource(many(new Uint8Array(0))),
    readOptions('lenient'),
  )
  expect([tensors.length, findings.length]).toEqual([0, 1001])
  const small = tensorProto({ dims: [0], type: 2 })
  const listed = (await onnx.read(new CountingSource(many(small)), readOptions('strict'))).tensors
  expect(listed.length).toBe(1_000_000)
  expect(listed.at(-1)?.shape).toEqual([0])
})
