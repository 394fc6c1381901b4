/** Dynamic quantization to 8 bits: weights as the recorded tool made them, and the graph around them. */
import { describe, expect, it } from 'vitest'
import { check, type DenseTensor, serialize, tensor } from '../../../lib/index.js'
import { OnnxModel, type QuantizeDynamicOptions, quantizeDynamic } from '../../../lib/onnx.js'
import { casesWith, initializersOf, operatorsOf, recorded } from './recorded.js'

const VARIANTS: Readonly<Record<string, QuantizeDynamicOptions>> = {
  'dyn-int8': { weightType: 'int8', subgraphs: false },
  'dyn-uint8': { weightType: 'uint8', subgraphs: false },
  'dyn-int8-perchannel': { weightType: 'int8', perChannel: true, subgraphs: false },
  'dyn-int8-reduced': { weightType: 'int8', perChannel: true, reduceRange: true, subgraphs: false },
  'dyn-int8-sub': { weightType: 'int8' },
}

const RUNS = Object.keys(VARIANTS).flatMap((variant) =>
  casesWith(variant).map((name) => [name, variant] as const),
)

describe.each(RUNS)('%s as %s', (name, variant) => {
  it('has the codes, scales and zero points that were recorded', async () => {
    const model = await recorded(name)
    await quantizeDynamic(model, VARIANTS[variant])
    const expected = await initializersOf((await recorded(name, variant)).graph)
    const made = await initializersOf(model.graph)
    let compared = 0
    for (const [key, value] of expected) {
      // The zero points of a weight with three axes have three, because the tool's model does not run.
      if (!/_(quantized|scale|zero_point)$/.test(key)) continue
      expect(made.get(key)?.dtype, key).toBe(value.dtype)
      expect(made.get(key)?.bytes, key).toEqual(value.bytes)
      compared++
    }
    expect(compared).toBeGreaterThan(0)
  })

  it('has the products of the tool and passes the check', async () => {
    const model = await recorded(name)
    await quantizeDynamic(model, VARIANTS[variant])
    const products = (each: OnnxModel): string[] =>
      operatorsOf(each.graph).filter((op) =>
        /Integer$|LSTM$|^Conv$|^MatMul$|^Gemm$|^DynamicQuantizeLinear$/.test(op),
      )
    const expected = products(await recorded(name, variant))
    expect(products(model)).toEqual(expected)
    const findings = await check(await serialize(model))
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  })
})

describe('quantizeDynamic', () => {
  it('decodes a weight for its other users, so that it is stored once', async () => {
    const model = await recorded('shared')
    const report = await quantizeDynamic(model, { weightType: 'int8' })
    expect(model.graph.hasInitializer('w')).toBe(false)
    expect(report.tensors.find((each) => each.name === 'w')?.kept).toBe('decoded for Max "max"')
  })

  it('takes uint8 for weights of models with Conv, and int8 else', async () => {
    const [cnn, matmul] = [await recorded('cnn'), await recorded('matmul')]
    await quantizeDynamic(cnn)
    await quantizeDynamic(matmul)
    expect(cnn.graph.initializer('w1_quantized')?.dtype).toBe('uint8')
    expect(matmul.graph.initializer('w_quantized')?.dtype).toBe('int8')
  })

  it('leaves an LSTM whose batches come first, and one whose weight has another user keeps it', async () => {
    const model = await recorded('lstm')
    const [node] = model.graph.nodes
    node!.setAttribute('layout', { type: 'INT', value: 1 })
    const { nodes } = await quantizeDynamic(model)
    expect(nodes[0]?.reason).toBe('its batches come first, which DynamicQuantizeLSTM cannot')
    const other = await recorded('lstm')
    other.graph.addNode({ opType: 'Identity', name: 'copy', inputs: ['w'], outputs: ['kept'] })
    other.graph.addOutput('kept', { kind: 'tensor', dtype: 'float32', shape: [1, 16, 6] })
    const report = await quantizeDynamic(other)
    expect(report.tensors.find((each) => each.name === 'w')?.kept).toBe('used by Identity "copy"')
    expect(other.opsetImports.get('com.microsoft')).toBe(1)
  })

  it('gives zero points of weights with three axes three axes', async () => {
    const model = await recorded('matmul')
    await quantizeDynamic(model, { weightType: 'int8', perChannel: true })
    expect(model.graph.initializer('w3_zero_point')?.shape).toEqual([1, 1, 48])
  })

  it('gives each matrix of a weight its zero points, as MatMulInteger takes them', async () => {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [3, 2, 4] })
    const weight = Float32Array.from({ length: 3 * 4 * 5 }, (_, at) => (at * 7) % 11)
    graph.setInitializer('w', tensor(weight, { shape: [3, 4, 5] }))
    graph.addNode({ opType: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [3, 2, 5] })
    await quantizeDynamic(model, { weightType: 'uint8', perChannel: true })
    const zeros = graph.initializer('w_zero_point') as DenseTensor
    expect(zeros.shape).toEqual([3, 1, 5])
    const bytes = await zeros.bytes()
    expect(bytes.slice(5)).toEqual(new Uint8Array([...bytes.slice(0, 5), ...bytes.slice(0, 5)]))
  })

  it('leaves weights that a caller may override, and excluded nodes', async () => {
    const model = OnnxModel.create()
    const { graph } = model
    const type = { kind: 'tensor', dtype: 'float32', shape: [2, 2] } as const
    for (const name of ['x', 'w']) graph.addInput(name, type)
    for (const name of ['w', 'v'])
      graph.setInitializer(name, tensor(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] }))
    graph.addNode({ opType: 'MatMul', name: 'one', inputs: ['x', 'w'], outputs: ['a'] })
    graph.addNode({ opType: 'MatMul', name: 'two', inputs: ['a', 'v'], outputs: ['y'] })
    graph.addOutput('y', type)
    const { nodes } = await quantizeDynamic(model, { exclude: ['two'] })
    expect(nodes).toEqual([
      { name: 'one', opType: 'MatMul', reason: 'its second input is not a weight' },
      { name: 'two', opType: 'MatMul', reason: 'the node is excluded' },
    ])
  })

  it.each([{ weightType: 'int4' }, { ops: ['GRU'] }, { perChannel: 1 }])(
    'refuses the options %j',
    async (options) => {
      const model = await recorded('matmul')
      await expect(
        quantizeDynamic(model, options as unknown as QuantizeDynamicOptions),
      ).rejects.toMatchObject({
        code: 'ERR_ARGUMENT',
      })
    },
  )
})
