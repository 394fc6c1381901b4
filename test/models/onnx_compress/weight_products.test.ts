/** Blocks of weights of Gemm and of Conv with a kernel of one element: what the graph becomes, and that it computes the same. */
import { describe, expect, it } from 'vitest'
import { tensor } from '../../../lib/index.js'
import {
  compareOutputs,
  type NewAttribute,
  type NewNode,
  OnnxModel,
  type QuantizeWeightsOptions,
  quantizeWeights,
} from '../../../lib/onnx.js'
import { runtime } from './onnxruntime.js'

const int = (value: number): NewAttribute => ({ type: 'INT', value })
const ints = (...value: number[]): NewAttribute => ({ type: 'INTS', value })
const float = (value: number): NewAttribute => ({ type: 'FLOAT', value })

const sines = (...shape: readonly number[]) => {
  const length = shape.reduce((product, dim) => product * dim, 1)
  return tensor(
    Float32Array.from({ length }, (_, at) => Math.sin(at * at + length)),
    { shape },
  )
}

/** A model of one node with the weight `w` and the bias `b`. */
function modelOf(
  node: Omit<NewNode, 'inputs' | 'outputs'>,
  {
    x,
    w,
    b,
  }: { readonly x: readonly number[]; readonly w: readonly number[]; readonly b?: readonly number[] },
): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: x })
  graph.setInitializer('w', sines(...w))
  if (b) graph.setInitializer('b', sines(...b))
  graph.addNode({ name: 'node', inputs: b ? ['x', 'w', 'b'] : ['x', 'w'], outputs: ['y'], ...node })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
  return model
}

const gemm = (
  attributes: Record<string, NewAttribute> = {},
  w = [40, 24],
  b?: readonly number[],
): OnnxModel => modelOf({ opType: 'Gemm', attributes }, { x: [3, 40], w, ...(b && { b }) })

const conv = (
  attributes: Record<string, NewAttribute> = {},
  kernel = [1, 1],
  b?: readonly number[],
): OnnxModel =>
  modelOf(
    { opType: 'Conv', attributes },
    { x: [2, 40, ...kernel.map((_, at) => 3 + at)], w: [24, 40, ...kernel], ...(b && { b }) },
  )

const operators = ({ graph }: OnnxModel): string[] => graph.nodes.map(({ opType }) => opType)

const SAME: readonly (readonly [string, () => OnnxModel, readonly string[]])[] = [
  ['Gemm', () => gemm(), ['MatMulNBits']],
  ['Gemm with a bias', () => gemm({ beta: float(1) }, [40, 24], [24]), ['MatMulNBits', 'Add']],
  ['Gemm with a column', () => gemm({}, [40, 24], [3, 1]), ['MatMulNBits', 'Add']],
  ['Gemm with transB', () => gemm({ transB: int(1) }, [24, 40], [24]), ['MatMulNBits', 'Add']],
  ['Conv', () => conv(), ['Transpose', 'MatMulNBits', 'Transpose']],
  ['Conv with a bias', () => conv({}, [1, 1], [24]), ['Transpose', 'MatMulNBits', 'Add', 'Transpose']],
  [
    'Conv of one axis',
    () => conv({ pads: ints(0, 0) }, [1], [24]),
    ['Transpose', 'MatMulNBits', 'Add', 'Transpose'],
  ],
  [
    'Conv of three axes',
    () => conv({ strides: ints(1, 1, 1) }, [1, 1, 1]),
    ['Transpose', 'MatMulNBits', 'Transpose'],
  ],
]

const BOTH: QuantizeWeightsOptions = { gemm: true, conv: true, bits: 8 }

describe.each(SAME)('%s', (_, make, expected) => {
  it('becomes a product', async () => {
    const model = make()
    const { nodes, tensors } = await quantizeWeights(model, BOTH)
    expect(operators(model)).toEqual(expected)
    expect(nodes).toMatchObject([{ name: 'node', to: 'MatMulNBits' }])
    expect(tensors).toMatchObject([{ name: 'w', from: 'float32' }])
    const product = model.graph.nodes.find(({ opType }) => opType === 'MatMulNBits')!
    expect([product.attribute('K')?.value, product.attribute('N')?.value].map(Number)).toEqual([40, 24])
    expect(model.graph.hasInitializer('w')).toBe(false)
    expect(model.graph.outputNames).toEqual(new Set(['y']))
  })

  it('stays without its option', async () => {
    const model = make()
    await quantizeWeights(model, { bits: 8 })
    expect(operators(model)).toEqual(operators(make()))
  })

  it.skipIf(!runtime)('computes the same in onnxruntime', async () => {
    for (const options of [
      BOTH,
      { ...BOTH, symmetric: false },
      { ...BOTH, bits: 4, format: 'bnb4', blockSize: 16 },
    ] as const) {
      const model = make()
      await quantizeWeights(model, options)
      const { outputs } = await compareOutputs(make(), model, { runtime: runtime! })
      expect(outputs[0]!.error, JSON.stringify(options)).toBeLessThan(options.bits === 8 ? 0.01 : 0.2)
      expect(outputs[0]!.error).toBeGreaterThan(0)
    }
  })
})

it.each<readonly [string, () => OnnxModel]>([
  [
    'its first input is transposed',
    () => modelOf({ opType: 'Gemm', attributes: { transA: int(1) } }, { x: [40, 3], w: [40, 24] }),
  ],
  ['its alpha is 0.5', () => gemm({ alpha: float(0.5) })],
  ['its beta is 2', () => gemm({ beta: float(2) }, [40, 24], [24])],
  [
    'it has groups',
    () => modelOf({ opType: 'Conv', attributes: { group: int(2) } }, { x: [2, 40, 3, 3], w: [24, 20, 1, 1] }),
  ],
  ['its strides are not 1', () => conv({ strides: ints(2, 2) })],
  ['its strides are not 1', () => conv({ strides: int(1) })],
  ['it has padding', () => conv({ pads: int(0) })],
  ['it has padding', () => conv({ pads: ints(0, 1, 0, 0) })],
  ['its kernel is [1,3], not of one element', () => conv({}, [1, 3])],
])('a node stays because %s', async (reason, make) => {
  const model = make()
  const { nodes } = await quantizeWeights(model, BOTH)
  expect(nodes).toMatchObject([{ name: 'node', reason }])
  expect(operators(model)).toEqual(operators(make()))
})

it('a product without transposed weight becomes DequantizeLinear, and others stay', async () => {
  const blocks = { ...BOTH, bits: 4, format: 'qdq', raiseOpset: true } as const
  const model = gemm({}, [40, 24], [24])
  await quantizeWeights(model, blocks)
  expect(operators(model)).toEqual(['DequantizeLinear', 'MatMul', 'Add'])
  for (const make of [() => gemm({ transB: int(1) }, [24, 40]), () => conv()]) {
    const { nodes } = await quantizeWeights(make(), blocks)
    expect(nodes).toMatchObject([{ reason: 'its weight is transposed; use the format matmulnbits' }])
  }
})
