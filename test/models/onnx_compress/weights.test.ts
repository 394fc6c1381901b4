/** Weights in blocks: codes, scales and zero points of onnxruntime's tools bit for bit, and what the graph becomes. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize, tensor } from '../../../lib/index.js'
import {
  type NewAttribute,
  OnnxModel,
  type QuantizeWeightsOptions,
  quantizeWeights,
  toFloat16,
} from '../../../lib/onnx.js'
import { casesWith, initializersOf, operatorsOf, recorded, type StoredValue } from './recorded.js'

const VARIANTS: Readonly<Record<string, QuantizeWeightsOptions>> = {
  'q2-asym16': { bits: 2, blockSize: 16, symmetric: false },
  'q4-asym32': { symmetric: false },
  'q4-asym128': { blockSize: 128, symmetric: false },
  'q4-sym32': {},
  'q4-level4': { accuracyLevel: 4 },
  'q8-sym32': { bits: 8 },
  'q8-asym32': { bits: 8, symmetric: false },
  'q4-qdq-sym32': { format: 'qdq' },
  'q4-qdq-asym32': { format: 'qdq', symmetric: false },
  'q4-gather-sym32': { gather: true },
  'q4-gather-asym32': { gather: true, symmetric: false },
  'bnb4-nf4': { format: 'bnb4' },
  'bnb4-fp4': { format: 'bnb4', bnb4: 'fp4' },
}

const RUNS = Object.keys(VARIANTS).flatMap((variant) =>
  casesWith(variant).map((name) => [name, variant] as const),
)

/** Codes beyond K have any value: the tools leave what was there, tilework writes 0. */
function withoutPadding(value: StoredValue, k: number, bits: number, blockSize: number): Uint8Array {
  const [n = 1, blocks = 1] = value.shape
  const bytes = Uint8Array.from(value.bytes)
  const rowBytes = (blocks * blockSize * bits) / 8
  for (let row = 0; row < n; row++) {
    for (let at = Math.ceil((k * bits) / 8); at < rowBytes; at++) bytes[row * rowBytes + at] = 0
    const used = (k * bits) % 8
    if (used > 0) bytes[row * rowBytes + Math.floor((k * bits) / 8)]! &= 2 ** used - 1
  }
  return bytes
}

/** K of MatMulNBits nodes by the name of their codes. */
function extentsOf(model: OnnxModel): Map<string, number> {
  const nodes = [...model.graph.allNodes()].filter(({ opType }) => opType === 'MatMulNBits')
  return new Map(nodes.map((node) => [node.inputs[1]!, Number(node.attribute('K')!.value)]))
}

describe.each(RUNS)('%s as %s', (name, variant) => {
  /** Some cases were made with a smaller block; the tool leaves the head that is tied to the table. */
  async function optionsOf(expected: OnnxModel): Promise<QuantizeWeightsOptions> {
    const nodes = [...expected.graph.allNodes()]
    const blockSize = nodes
      .map((node) => node.attribute('block_size')?.value)
      .find((value) => value !== undefined)
    const exclude = nodes.filter(({ opType }) => opType === 'MatMul').map((node) => node.name)
    return { ...VARIANTS[variant], blockSize: Number(blockSize), nodes: { exclude } }
  }

  it('has the codes, scales and zero points that were recorded', async () => {
    const model = await recorded(name)
    const expectedModel = await recorded(name, variant)
    const options = await optionsOf(expectedModel)
    await quantizeWeights(model, options)
    const [made, expected] = [await initializersOf(model.graph), await initializersOf(expectedModel.graph)]
    const extents = extentsOf(expectedModel)
    let compared = 0
    for (const [key, value] of expected) {
      if (!/_(Q\d|Bnb4|scales|absmax|zero_points)$/.test(key)) continue
      const found = made.get(key)
      expect(found, key).toMatchObject({ dtype: value.dtype, shape: value.shape })
      const k = extents.get(key)
      const { bits = 4, blockSize = 32 } = options
      const bytes = (each: StoredValue): Uint8Array =>
        k === undefined ? each.bytes : withoutPadding(each, k, bits, blockSize)
      expect(bytes(found!), key).toEqual(bytes(value))
      compared++
    }
    expect(compared).toBeGreaterThan(0)
  })

  it('has the operators of the tool, but one Expand for its shape arithmetic', async () => {
    const model = await recorded(name)
    const expected = await recorded(name, variant)
    await quantizeWeights(model, await optionsOf(expected))
    const quantized = (each: OnnxModel): string[] =>
      operatorsOf(each.graph).filter((op) =>
        /NBits|Bnb4|DequantizeLinear|GatherBlock|^MatMul$|^If$|^Loop$/.test(op),
      )
    expect(quantized(model)).toEqual(quantized(expected))
    const findings = await check(await serialize(model))
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  })
})

/** A decoder's ends: a table that the head uses transposed. */
function tiedModel(width = 32): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  const values = Float32Array.from({ length: 8 * width }, (_, at) => Math.sin(at))
  graph.setInitializer('table', tensor(values, { shape: [8, width] }))
  graph.addInput('ids', { kind: 'tensor', dtype: 'int64', shape: ['n'] })
  graph.addNode({ opType: 'Gather', name: 'embed', inputs: ['table', 'ids'], outputs: ['x'] })
  graph.addNode({ opType: 'Transpose', inputs: ['table'], outputs: ['head'] })
  graph.addNode({ opType: 'MatMul', name: 'logits', inputs: ['x', 'head'], outputs: ['y'] })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: ['n', 8] })
  return model
}

describe('quantizeWeights', () => {
  it('stores a table that the head uses transposed once', async () => {
    const model = tiedModel()
    const report = await quantizeWeights(model, { gather: true })
    expect([...model.graph.initializerNames].sort()).toEqual([
      'table_Q4',
      'table_blocks_shape',
      'table_scales',
    ])
    expect(operatorsOf(model.graph)).toEqual(['GatherBlockQuantized', 'MatMulNBits', 'Reshape'])
    expect(report.bytesAfter).toBeLessThan(report.bytesBefore / 4)
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('leaves the head in float where its table stays, so that the file does not grow', async () => {
    const model = tiedModel()
    const report = await quantizeWeights(model)
    expect(report.nodes).toEqual([
      { name: 'logits', opType: 'MatMul', reason: 'its weight is a table of Gather, which stays' },
    ])
    expect(model.isChanged).toBe(true)
    expect(operatorsOf(model.graph)).toEqual(['Gather', 'MatMul', 'Transpose'])
  })

  it('quantizes a transposed weight along its rows, as the same weight that is not transposed', async () => {
    const values = Float32Array.from({ length: 40 * 6 }, (_, at) => Math.cos(at * at))
    const straight = OnnxModel.create({ opset: 21 })
    const turned = OnnxModel.create({ opset: 21 })
    for (const { graph } of [straight, turned]) {
      graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 40] })
    }
    straight.graph.setInitializer('w', tensor(values, { shape: [40, 6] }))
    const rows = Float32Array.from(
      { length: 40 * 6 },
      (_, at) => values[(at % 40) * 6 + Math.floor(at / 40)]!,
    )
    turned.graph.setInitializer('w', tensor(rows, { shape: [6, 40] }))
    turned.graph.addNode({ opType: 'Transpose', inputs: ['w'], outputs: ['t'] })
    straight.graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
    turned.graph.addNode({ opType: 'MatMul', inputs: ['x', 't'], outputs: ['y'] })
    for (const model of [straight, turned]) {
      model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 6] })
      await quantizeWeights(model, { symmetric: false })
    }
    expect(operatorsOf(turned.graph)).toEqual(['MatMulNBits'])
    expect(await initializersOf(turned.graph)).toEqual(await initializersOf(straight.graph))
  })

  it('excludes nodes, and gives single nodes other bits', async () => {
    const model = await recorded('transformer')
    const report = await quantizeWeights(model, { nodes: { exclude: ['mm_q'], bits: { mm_up: 8 } } })
    expect(report.nodes).toContainEqual({ name: 'mm_q', opType: 'MatMul', reason: 'the node is excluded' })
    expect(model.graph.initializer('up_Q8')?.shape).toEqual([96, 1, 32])
  })

  it('gives q4f16 with scales in float16', async () => {
    const model = await recorded('transformer')
    await quantizeWeights(model)
    await toFloat16(model)
    const [made, expected] = [
      await initializersOf(model.graph),
      await initializersOf((await recorded('transformer', 'q4f16')).graph),
    ]
    for (const [name, value] of expected)
      if (/_(Q4|scales)$/.test(name)) expect(made.get(name), name).toEqual(value)
    const { onnx: again } = await open(await serialize(model))
    await toFloat16(again!)
    expect(again!.isChanged).toBe(false)
  })

  /** A product of `x`, behind a Relu, and a weight [1, 1, 32, 4]. */
  function leadingOnesModel(shape: readonly (number | string)[] | undefined): OnnxModel {
    const model = OnnxModel.create({ opset: 21 })
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', ...(shape && { shape }) })
    graph.setInitializer('w', tensor(new Float32Array(128).fill(1), { shape: [1, 1, 32, 4] }))
    graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['a'] })
    graph.addNode({ opType: 'MatMul', name: 'm', inputs: ['a', 'w'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
    return model
  }

  it.each([
    [[32], 3],
    [['n', 32], 4],
    [[5, 'n', 32], 4],
    [[2, 5, 'n', 32], undefined],
  ])('gives the product of [%j] and a weight with leading extents of 1 the rank %s', async (shape, rank) => {
    for (const format of ['matmulnbits', 'qdq'] as const) {
      const model = leadingOnesModel(shape)
      await quantizeWeights(model, { format })
      expect(model.graph.initializer('y_ones')?.shape).toEqual(rank === undefined ? undefined : [rank])
      expect(operatorsOf(model.graph).includes('Expand')).toBe(rank !== undefined)
      expect(operatorsOf(model.graph)).not.toEqual(operatorsOf(leadingOnesModel(shape).graph))
    }
  })

  it('leaves a weight with leading extents of 1 where the rank of the product is not known', async () => {
    const model = leadingOnesModel(undefined)
    const { nodes } = await quantizeWeights(model)
    const reason = 'its weight has leading extents of 1, and the rank of its first input is not known'
    expect(nodes).toEqual([{ name: 'm', opType: 'MatMul', reason }])
    expect(operatorsOf(model.graph)).toEqual(['MatMul', 'Relu'])
  })

  it.each<[string, NewAttribute]>([
    ['an INT', { type: 'INT', value: 1 }],
    ['FLOATS', { type: 'FLOATS', value: [1, 0] }],
    ['of one axis', { type: 'INTS', value: [1] }],
    ['that moves nothing', { type: 'INTS', value: [0, 1] }],
  ])('leaves a weight behind a Transpose whose perm is %s', async (_, perm) => {
    const model = OnnxModel.create({ opset: 17 })
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [2, 64] })
    graph.setInitializer('w', tensor(new Float32Array(64 * 64).fill(1), { shape: [64, 64] }))
    graph.addNode({ opType: 'Transpose', inputs: ['w'], outputs: ['t'], attributes: { perm } })
    graph.addNode({ opType: 'MatMul', name: 'm', inputs: ['x', 't'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [2, 64] })
    await quantizeWeights(model)
    expect(operatorsOf(graph)).toEqual(['MatMul', 'Transpose'])
  })

  it('leaves a weight of three axes behind a Transpose that reverses all of them', async () => {
    const model = OnnxModel.create({ opset: 21 })
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [3, 32] })
    graph.setInitializer('w', tensor(new Float32Array(128), { shape: [1, 32, 4] }))
    graph.addNode({ opType: 'Transpose', inputs: ['w'], outputs: ['t'] })
    graph.addNode({ opType: 'MatMul', name: 'm', inputs: ['x', 't'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
    const { nodes } = await quantizeWeights(model)
    const reason = 'its weight has the shape [1,32,4], which is not a matrix'
    expect(nodes).toEqual([{ name: 'm', opType: 'MatMul', reason }])
  })

  it('refuses DequantizeLinear with blocks below operator set 21', async () => {
    const model = await recorded('resize')
    await expect(quantizeWeights(model, { format: 'qdq' })).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })

  it.each([
    { bits: 3 },
    { blockSize: 24 },
    { format: 'gptq' },
    { gather: true, format: 'qdq' },
    { nodes: { bits: { a: 5 } } },
  ])('refuses the options %j', async (options) => {
    const model = await recorded('matmul')
    await expect(quantizeWeights(model, options as QuantizeWeightsOptions)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })
})
