/** Every compression, on weights that codes cannot represent, on initializers that are inputs, and on models that are quantized already. */
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../lib/index.js'
import {
  type CompressReport,
  type NewNode,
  OnnxModel,
  quantizableValues,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  toFloat16,
} from '../../../lib/onnx.js'
import { type Feeds, lossOf, randomFloats } from './compare_outputs.js'
import { runtime } from './onnxruntime.js'

type Compress = (model: OnnxModel) => Promise<CompressReport>

const statically = (model: OnnxModel): Promise<CompressReport> =>
  quantizeStatic(model, {
    ranges: Object.fromEntries(quantizableValues(model).map((name) => [name, { min: -20, max: 20 }])),
  })

const QUANTIZERS: Readonly<Record<string, Compress>> = {
  q8: (model) => quantizeDynamic(model),
  'q8 per channel': (model) => quantizeDynamic(model, { perChannel: true }),
  uint8: (model) => quantizeDynamic(model, { weightType: 'uint8' }),
  q4: (model) => quantizeWeights(model, { gather: true }),
  'asymmetric q4': (model) => quantizeWeights(model, { symmetric: false, gather: true }),
  'blocks of 8 bits': (model) => quantizeWeights(model, { bits: 8, gather: true }),
  bnb4: (model) => quantizeWeights(model, { format: 'bnb4' }),
  'DequantizeLinear of blocks': (model) => quantizeWeights(model, { format: 'qdq' }),
  'static int8': statically,
}

const FLOAT = { kind: 'tensor', dtype: 'float32' } as const

/** A weight of random numbers, some of which are others. */
function weight(name: string, shape: readonly number[], others: Readonly<Record<number, number>> = {}) {
  const values = randomFloats(shape, name.length)
  for (const [at, value] of Object.entries(others)) values[Number(at)] = value
  return { name, value: tensor(values, { shape }) }
}

type Weight = ReturnType<typeof weight>

/** A node `bad` on input `x` and a MatMul `good` on input `g`. */
function modelWith(
  x: readonly number[],
  weights: readonly Weight[],
  node: Omit<NewNode, 'outputs' | 'name'>,
): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: node.opType === 'Gather' ? 'int64' : 'float32', shape: x })
  graph.addInput('g', { ...FLOAT, shape: [2, 32] })
  for (const each of [...weights, weight('good_weight', [32, 8])]) graph.setInitializer(each.name, each.value)
  graph.addNode({ ...node, outputs: ['y'], name: 'bad' })
  graph.addNode({ opType: 'MatMul', inputs: ['g', 'good_weight'], outputs: ['z'], name: 'good' })
  for (const name of ['y', 'z']) graph.addOutput(name, FLOAT)
  return model
}

const MODELS: Readonly<Record<string, (others: Readonly<Record<number, number>>) => OnnxModel>> = {
  MatMul: (others) =>
    modelWith([2, 64], [weight('w', [64, 8], others)], { opType: 'MatMul', inputs: ['x', 'w'] }),
  Gemm: (others) =>
    modelWith([2, 64], [weight('w', [8, 64], others), weight('bias', [8])], {
      opType: 'Gemm',
      inputs: ['x', 'w', 'bias'],
      attributes: { transB: { type: 'INT', value: 1 } },
    }),
  'bias of Gemm': (others) =>
    modelWith([2, 64], [weight('weight', [64, 8]), weight('w', [8], others)], {
      opType: 'Gemm',
      inputs: ['x', 'weight', 'w'],
    }),
  Conv: (others) =>
    modelWith([1, 4, 6, 6], [weight('w', [8, 4, 3, 3], others)], { opType: 'Conv', inputs: ['x', 'w'] }),
  'table of Gather': (others) =>
    modelWith([3], [weight('w', [12, 32], others)], { opType: 'Gather', inputs: ['w', 'x'] }),
  'mask that is added': (others) =>
    modelWith([2, 8], [weight('w', [2, 8], others)], { opType: 'Add', inputs: ['x', 'w'] }),
  LSTM: (others) =>
    modelWith([3, 1, 4], [weight('w', [1, 8, 4], others), weight('r', [1, 8, 2])], {
      opType: 'LSTM',
      inputs: ['x', 'w', 'r'],
      attributes: { hidden_size: { type: 'INT', value: 2 } },
    }),
}

const BAD_VALUES: Readonly<Record<string, Readonly<Record<number, number>>>> = {
  NaN: { 5: Number.NaN },
  Infinity: { 5: Number.POSITIVE_INFINITY },
  '-Infinity': { 0: Number.NEGATIVE_INFINITY, 7: Number.NEGATIVE_INFINITY },
  'a range that float32 does not hold': { 2: 3e38, 3: -3e38 },
}

const inputsOf = (model: OnnxModel): Feeds =>
  Object.fromEntries(
    model.graph.inputs.flatMap(({ name, type }) => {
      if (type.kind !== 'tensor' || model.graph.hasInitializer(name)) return []
      const shape = type.shape as readonly number[]
      const data = type.dtype === 'int64' ? BigInt64Array.of(1n, 5n, 11n) : randomFloats(shape, 9)
      return [[name, { data, shape }]]
    }),
  )

describe.each(Object.entries(MODELS))('%s with numbers that have no codes', (kind, make) => {
  describe.each(Object.entries(BAD_VALUES))('%s', (_, others) => {
    it.each(Object.entries(QUANTIZERS))('%s leaves the node, and says why', async (__, compress) => {
      const before = make(others)
      const model = before.copy()
      const finite = make({})
      const converted = (await compress(finite)).nodes.some(({ name, to }) => name === 'bad' && to)
      const { nodes } = await compress(model)
      const bad = nodes.find(({ name }) => name === 'bad')
      // Targets that leave the bias and operator alone anyway have nothing to say.
      const isConcerned = converted && !(kind === 'bias of Gemm' && compress !== statically)
      if (isConcerned) {
        expect(bad?.to).toBeUndefined()
        expect(bad?.reason).toMatch(/^its weight "w" has /)
      }
      expect(nodes.find(({ name }) => name === 'good')?.to).toBeDefined()
      const findings = await check(await serialize(model))
      expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
      const isExact = isConcerned || !converted
      if (runtime && isExact) expect(await onlyOutput(before, model)).toBe(0)
    })
  })
})

/** The loss of the output `y` alone. */
async function onlyOutput(before: OnnxModel, after: OnnxModel): Promise<number> {
  const alone = [before, after].map((model) => {
    const copy = model.copy()
    copy.graph.removeOutput('z')
    return copy
  }) as [OnnxModel, OnnxModel]
  return lossOf(...alone, inputsOf(before), ['disabled'])
}

/** As exporters wrote it: every initializer is listed among the inputs, before and behind those that a caller gives. */
function withOldInitializers(model: OnnxModel): OnnxModel {
  const { graph } = model
  model.irVersion = 3
  const names = graph.initializerNames
  for (const name of names) {
    const { dtype, shape } = graph.initializer(name)!
    graph.addInput(name, { kind: 'tensor', dtype: dtype as 'float32', shape })
  }
  graph.reorderInputs([...names, ...[...graph.inputNames].filter((name) => !names.includes(name))])
  return model
}

describe.each(Object.entries(MODELS))('%s whose weights are inputs (IR version 3)', (_, make) => {
  it.each(Object.entries({ ...QUANTIZERS, fp16: (model: OnnxModel) => toFloat16(model) }))(
    '%s',
    async (__, compress) => {
      const before = withOldInitializers(make({}))
      const model = before.copy()
      const same = make({})
      const wanted = await compress(same)
      const { nodes } = await compress(model)
      expect(nodes.map(({ name, to }) => [name, to])).toEqual(wanted.nodes.map(({ name, to }) => [name, to]))
      expect([...model.graph.inputNames]).toEqual(['x', 'g'])
      const findings = await check(await serialize(model))
      expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
      if (runtime) expect(await lossOf(same, model, inputsOf(same), ['disabled'])).toBe(0)
    },
  )
})

/** Two products, a convolution's worth of bias and an addition; weights of positive numbers, so that integer sums exceed 65504. */
function twoProducts(): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  graph.addInput('x', { ...FLOAT, shape: [2, 512] })
  const positive = (name: string, shape: readonly number[]) => {
    const { value } = weight(name, shape)
    return tensor(Float32Array.from(value.bytesSync().length ? randomFloats(shape, 5) : [], Math.abs), {
      shape,
    })
  }
  for (const [name, shape] of Object.entries({ w: [512, 64], v: [64, 64], u: [512, 64] }))
    graph.setInitializer(name, positive(name, shape))
  graph.addNode({ opType: 'Abs', inputs: ['x'], outputs: ['a'], name: 'abs' })
  graph.addNode({ opType: 'MatMul', inputs: ['a', 'w'], outputs: ['h'], name: 'first' })
  graph.addNode({ opType: 'MatMul', inputs: ['a', 'u'], outputs: ['k'], name: 'other' })
  graph.addNode({ opType: 'Add', inputs: ['h', 'k'], outputs: ['s'], name: 'sum' })
  graph.addNode({ opType: 'MatMul', inputs: ['s', 'v'], outputs: ['y'], name: 'last' })
  graph.addOutput('y', { ...FLOAT, shape: [2, 64] })
  return model
}

const AGAIN: Readonly<Record<string, Compress>> = {
  q8: (model) => quantizeDynamic(model, { exclude: ['last'] }),
  'uint8 per channel': (model) => quantizeDynamic(model, { weightType: 'uint8', perChannel: true }),
  q4: (model) => quantizeWeights(model, { nodes: { exclude: ['other'] } }),
  'asymmetric q8 blocks': (model) => quantizeWeights(model, { bits: 8, symmetric: false }),
  'DequantizeLinear of blocks': (model) =>
    quantizeWeights(model, { format: 'qdq', nodes: { exclude: ['first'] } }),
  fp16: (model) => toFloat16(model),
  'minimal fp16': (model) => toFloat16(model, { block: 'minimal', keepIo: false }),
}

const PAIRS = Object.keys(AGAIN).flatMap((first) =>
  Object.keys(AGAIN).map((second) => [first, second] as const),
)

describe.each(PAIRS)('%s, and then %s', (first, second) => {
  it('computes what it did, with names that occur once', async () => {
    const before = twoProducts()
    const model = before.copy()
    await AGAIN[first]!(model)
    await AGAIN[second]!(model)
    const names = model.graph.nodes.map(({ name }) => name).filter((name) => name !== '')
    expect(new Set(names).size).toBe(names.length)
    const findings = await check(await serialize(model))
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
    const isHalf = [first, second].includes('minimal fp16')
    if (!runtime || isHalf) return
    expect(await lossOf(before, model, inputsOf(before))).toBeLessThan(0.06)
  })
})

it.each(
  Object.entries(AGAIN).filter(
    ([name]) => !name.includes('fp16') && !name.includes('q4') && !name.includes('q8 blocks'),
  ),
)('static quantization refuses a model that is %s already', async (_, compress) => {
  const model = twoProducts()
  await compress(model)
  const bytes = await serialize(model)
  await expect(statically(model)).rejects.toMatchObject({
    code: 'ERR_UNSUPPORTED',
    message: expect.stringMatching(
      /^the model is quantized already: it has (DynamicQuantize|Dequantize)Linear "/,
    ),
  })
  expect(await serialize(model)).toEqual(bytes)
})
