/** Static quantization in onnxruntime: the quantized model computes nearly what the float model does, whatever the shapes. */
import { describe, expect, it } from 'vitest'
import { tensor } from '../../../lib/index.js'
import {
  calibrate,
  type NewNode,
  OnnxModel,
  type QuantizeStaticOptions,
  quantizeStatic,
} from '../../../lib/onnx.js'
import { type Feeds, lossOf, randomFloats, tensorsOf } from './compare_outputs.js'
import { runtime } from './onnxruntime.js'

type Shapes = Readonly<Record<string, readonly number[]>>

/** A node from input `x` and weights to output `y`. Values are random, biases three times as large. */
function modelOf(
  x: readonly number[],
  weights: Shapes,
  node: Partial<NewNode> & { opType: string },
  indices: Readonly<Record<string, readonly bigint[]>> = {},
): OnnxModel {
  const model = OnnxModel.create({ opset: 17, irVersion: 8 })
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: x })
  for (const [at, [name, shape]] of Object.entries(weights).entries()) {
    const values = randomFloats(shape, at + 7).map((value) => (name.startsWith('b') ? 3 * value : value))
    model.graph.setInitializer(name, tensor(values, { shape }))
  }
  for (const [name, values] of Object.entries(indices))
    model.graph.setInitializer(name, tensor(BigInt64Array.from(values)))
  model.graph.addNode({ inputs: ['x', ...Object.keys(weights)], outputs: ['y'], name: 'node', ...node })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
  return model
}

const int = (value: number) => ({ type: 'INT', value }) as const
const float = (value: number) => ({ type: 'FLOAT', value }) as const

async function lossOfStatic(
  model: OnnxModel,
  feeds: Feeds,
  options: Partial<QuantizeStaticOptions> = {},
): Promise<number> {
  const ranges = await calibrate(model, [tensorsOf(feeds)], { runtime: runtime! })
  const quantized = model.copy()
  // Processors without VNNI saturate sums of two full products.
  await quantizeStatic(quantized, { ranges, reduceRange: true, ...options })
  return lossOf(model, quantized, feeds)
}

const MOST = 0.035
/** With 16 bits for activations and weights, and with 4 for weights. */
const MOST_OF_16 = 2e-4
const MOST_OF_4 = 0.4
const gemm = (bias: readonly number[] | undefined, attributes: NewNode['attributes'] = {}, b = [6, 10]) =>
  modelOf([3, 6], { w: b, ...(bias && { b: bias }) }, { opType: 'Gemm', attributes })

const AROUND = { around: [1n, 1n, 0n, 1n] }

const CASES: Readonly<Record<string, OnnxModel>> = {
  'Conv with groups': modelOf(
    [1, 6, 8, 8],
    { w: [6, 2, 3, 3], b: [6] },
    { opType: 'Conv', attributes: { group: int(3) } },
  ),
  'depthwise Conv': modelOf(
    [1, 6, 8, 8],
    { w: [6, 1, 3, 3], b: [6] },
    { opType: 'Conv', attributes: { group: int(6) } },
  ),
  'Conv of one axis': modelOf([1, 6, 8], { w: [4, 6, 3], b: [4] }, { opType: 'Conv' }),
  'Conv of one channel': modelOf([1, 3, 8, 8], { w: [1, 3, 3, 3], b: [1] }, { opType: 'Conv' }),
  'Conv of three axes': modelOf([1, 2, 4, 4, 4], { w: [3, 2, 2, 2, 2], b: [3] }, { opType: 'Conv' }),
  'depthwise ConvTranspose': modelOf(
    [1, 6, 8, 8],
    { w: [6, 1, 3, 3], b: [6] },
    { opType: 'ConvTranspose', attributes: { group: int(6) } },
  ),
  'ConvTranspose in two groups': modelOf(
    [1, 6, 8, 8],
    { w: [6, 4, 3, 3], b: [8] },
    { opType: 'ConvTranspose', attributes: { group: int(2) } },
  ),
  'ConvTranspose of one axis': modelOf(
    [1, 6, 8],
    { w: [6, 2, 3], b: [6] },
    { opType: 'ConvTranspose', attributes: { group: int(3) } },
  ),
  ConvTranspose: modelOf([1, 3, 8, 8], { w: [3, 5, 3, 3], b: [5] }, { opType: 'ConvTranspose' }),
  'Gemm with a bias [N]': gemm([10]),
  'Gemm with a bias [1, N]': gemm([1, 10]),
  'Gemm with a bias [1]': gemm([1]),
  'Gemm with a scalar bias': gemm([]),
  'Gemm with a bias [1, 1]': gemm([1, 1]),
  'Gemm with a bias [M, N]': gemm([3, 10]),
  'Gemm with a bias [M, 1]': gemm([3, 1]),
  'Gemm without a bias': gemm(undefined),
  'Gemm of one column': gemm([3, 1], {}, [6, 1]),
  'Gemm with beta 2': gemm([10], { beta: float(2) }),
  'Gemm with beta 0.5': gemm([1, 10], { beta: float(0.5) }),
  'Gemm with beta -1': gemm([10], { beta: float(-1) }),
  'Gemm with beta 0': gemm([10], { beta: float(0) }),
  'Gemm with alpha 0.5 and beta 2': gemm([10], { alpha: float(0.5), beta: float(2) }),
  'Gemm with alpha 3': gemm([3, 10], { alpha: float(3) }),
  'Gemm with alpha -1': gemm([10], { alpha: float(-1) }),
  'Gemm with alpha 0.25 and no bias': gemm(undefined, { alpha: float(0.25) }),
  'Gemm with transB': gemm([10], { transB: int(1) }, [10, 6]),
  'Gemm with transB and a bias [M, 1]': gemm([3, 1], { transB: int(1), beta: float(2) }, [10, 6]),
  'Gemm with transA': modelOf(
    [6, 3],
    { w: [6, 10], b: [10] },
    { opType: 'Gemm', attributes: { transA: int(1) } },
  ),
  'Gemm with transA and transB': modelOf(
    [6, 3],
    { w: [10, 6], b: [10] },
    { opType: 'Gemm', attributes: { transA: int(1), transB: int(1), alpha: float(0.5), beta: float(3) } },
  ),
  MatMul: modelOf([3, 6], { w: [6, 10] }, { opType: 'MatMul' }),
  'MatMul of three axes': modelOf([2, 3, 6], { w: [6, 10] }, { opType: 'MatMul' }),
  'MatMul with a weight of three axes': modelOf([2, 3, 6], { w: [2, 6, 10] }, { opType: 'MatMul' }),
  'MatMul with a vector': modelOf([2, 3, 6], { w: [6] }, { opType: 'MatMul' }),
  'MatMul with the weight first': modelOf([6, 10], { w: [3, 6] }, { opType: 'MatMul', inputs: ['w', 'x'] }),
  'MatMul with a weight of three axes first': modelOf(
    [2, 6, 10],
    { w: [2, 3, 6] },
    { opType: 'MatMul', inputs: ['w', 'x'] },
  ),
  Pad: modelOf([2, 3], { v: [] }, { opType: 'Pad', inputs: ['x', 'around', 'v'] }, AROUND),
  'Pad with zeros': modelOf([2, 3], {}, { opType: 'Pad', inputs: ['x', 'around'] }, AROUND),
  'Pad of mode reflect': modelOf(
    [2, 3],
    {},
    { opType: 'Pad', inputs: ['x', 'around'], attributes: { mode: { type: 'STRING', value: 'reflect' } } },
    AROUND,
  ),
  InstanceNormalization: modelOf([2, 4, 5, 5], { s: [4], b: [4] }, { opType: 'InstanceNormalization' }),
  LayerNormalization: modelOf([2, 4, 5], { s: [5], b: [5] }, { opType: 'LayerNormalization' }),
  'LayerNormalization over two axes': modelOf(
    [2, 4, 5],
    { s: [4, 5], b: [4, 5] },
    { opType: 'LayerNormalization', attributes: { axis: int(-2) } },
  ),
}

/** Two nodes that share one weight. */
function sharing(x: Shapes, weights: Shapes, nodes: readonly NewNode[]): OnnxModel {
  const model = modelOf([4, 4], weights, nodes[0] as NewNode & { opType: string })
  for (const node of nodes.slice(1)) model.graph.addNode(node)
  for (const [name, shape] of Object.entries(x))
    model.graph.addOutput(name, { kind: 'tensor', dtype: 'float32', shape })
  return model
}

const SQUARE: Shapes = { w: [4, 4], b: [4], b2: [4] }
const TWICE: Readonly<Record<string, OnnxModel>> = {
  'a weight along both of its axes': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['y'] },
    { opType: 'Gemm', inputs: ['x', 'w', 'b2'], outputs: ['z'], attributes: { transB: int(1) } },
  ]),
  'a weight of Gemm and MatMul': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['y'], attributes: { transB: int(1) } },
    { opType: 'MatMul', inputs: ['x', 'w'], outputs: ['z'] },
  ]),
  'a weight that is added': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] },
    { opType: 'Add', inputs: ['x', 'w'], outputs: ['z'] },
  ]),
  'a weight of both inputs': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] },
    { opType: 'MatMul', inputs: ['w', 'x'], outputs: ['z'] },
  ]),
  'a bias of two nodes': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['y'], attributes: { beta: float(2) } },
    { opType: 'Gemm', inputs: ['y', 'w', 'b'], outputs: ['z'] },
  ]),
  'a bias that is added': sharing({ z: [4, 4] }, SQUARE, [
    { opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['y'] },
    { opType: 'Add', inputs: ['y', 'b'], outputs: ['z'] },
  ]),
}

describe.skipIf(!runtime).each(Object.entries({ ...CASES, ...TWICE }))('%s', (_, model) => {
  const { graph } = model
  const [x] = graph.inputs
  const shape = (x!.type as { shape: readonly number[] }).shape
  const feeds = { x: { data: randomFloats(shape, 3), shape } }
  const options: readonly (readonly [string, Partial<QuantizeStaticOptions>])[] = [
    ['per tensor', {}],
    ['per channel', { perChannel: true }],
    ['per channel, uint8 weights', { perChannel: true, weightType: 'uint8' }],
    ['uint8 weights', { weightType: 'uint8' }],
    ['int8 activations', { activationType: 'int8', perChannel: true }],
  ]
  it.each([
    ['16 bits', { activationType: 'uint16', weightType: 'int16' }, MOST_OF_16],
    ['16 bits, per channel', { activationType: 'int16', weightType: 'uint16', perChannel: true }, MOST_OF_16],
    ['uint16 activations', { activationType: 'uint16' }, MOST],
    ['int4 weights', { weightType: 'int4' }, MOST_OF_4],
    [
      'int4 weights, per channel',
      { activationType: 'uint16', weightType: 'int4', perChannel: true },
      MOST_OF_4,
    ],
    ['uint4 weights', { activationType: 'int8', weightType: 'uint4' }, MOST_OF_4],
    ['uint4 weights, per channel', { weightType: 'uint4', perChannel: true }, MOST_OF_4],
  ] as readonly (readonly [string, Partial<QuantizeStaticOptions>, number])[])(
    '%s',
    async (__, each, most) => {
      const reduceRange = each.weightType === undefined
      expect(await lossOfStatic(model, feeds, { raiseOpset: true, ...each, reduceRange })).toBeLessThan(most)
    },
  )
  it.each(options)('%s', async (__, each) => {
    expect(await lossOfStatic(model, feeds, each)).toBeLessThan(MOST)
  })
})
