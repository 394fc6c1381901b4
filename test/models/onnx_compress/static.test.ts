/** Static quantization: the tools' recorded graphs by structure, and the cases in which ranges or nodes are special. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../lib/index.js'
import {
  type NewNode,
  OnnxModel,
  type QuantizeStaticOptions,
  quantizableValues,
  quantizeStatic,
  type ValueRanges,
} from '../../../lib/onnx.js'
import { casesWith, operatorsOf, recorded, recordedRanges, recordedTypes } from './recorded.js'

const VARIANTS = [
  'qdq-u8s8',
  'qdq-s8s8',
  'qdq-u8s8-perchannel',
  'qdq-u8s8-entropy',
  'qdq-u8s8-percentile',
  'qdq-u16s8',
  'qdq-s16s16',
  'qdq-u16u16-perchannel',
  'qdq-u8s4',
  'qdq-s8u4',
  'qdq-u16s4-perchannel',
  'qdq-s16u4-perchannel',
]

const RUNS = VARIANTS.flatMap((variant) => casesWith(variant).map((name) => [name, variant] as const))

/** Nodes as text, in the order of their outputs: the tool sorts them its own way. */
function nodesOf({ graph }: OnnxModel): string[] {
  return graph.nodes
    .map((node) => {
      const attributes = node.attributes
        .filter(({ name }) => name !== 'beta')
        .map(({ name, value }) => `${name}=${value}`)
      return `${node.outputs} = ${node.opType}(${node.inputs}) ${attributes.sort()} ${node.name}`
    })
    .sort()
}

describe.each(RUNS)('%s as %s', (name, variant) => {
  it('has the nodes and initializers of the tool', async () => {
    const model = await recorded(name)
    const expected = await recorded(name, variant)
    await quantizeStatic(model, {
      ...recordedTypes(variant),
      perChannel: variant.endsWith('perchannel'),
      ranges: await recordedRanges(expected),
    })
    expect(nodesOf(model)).toEqual(nodesOf(expected))
    const stored = ({ graph }: OnnxModel): string[] =>
      [...graph.initializers()].map((each) => `${each.name} ${each.dtype} [${each.shape}]`).sort()
    expect(stored(model)).toEqual(stored(expected))
    const findings = await check(await serialize(model))
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  })
})

function modelOf(
  nodes: readonly NewNode[],
  weights: Readonly<Record<string, readonly number[]>> = {},
): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const type = { kind: 'tensor', dtype: 'float32', shape: [2, 2] } as const
  model.graph.addInput('x', type)
  for (const [name, values] of Object.entries(weights)) {
    const shape = values.length === 4 ? [2, 2] : values.length === 1 ? [] : [values.length]
    model.graph.setInitializer(name, tensor(Float32Array.from(values), { shape }))
  }
  for (const node of nodes) model.graph.addNode(node)
  model.graph.addOutput('y', type)
  return model
}

const RANGE = { min: -1, max: 1 }

describe('quantizeStatic', () => {
  it('names the values that need ranges, and refuses without them', async () => {
    const model = modelOf(
      [
        { opType: 'MatMul', name: 'one', inputs: ['x', 'w'], outputs: ['a'] },
        { opType: 'Exp', inputs: ['a'], outputs: ['b'] },
        { opType: 'Add', name: 'two', inputs: ['b', 'b'], outputs: ['y'] },
      ],
      { w: [1, 2, 3, 4] },
    )
    expect(quantizableValues(model)).toEqual(['x', 'a', 'b', 'y'])
    expect(quantizableValues(model, { ops: ['MatMul'] })).toEqual(['x', 'a'])
    expect(quantizableValues(model, { exclude: ['two'] })).toEqual(['x', 'a'])
    await expect(quantizeStatic(model, { ranges: { x: RANGE, b: RANGE } })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
      message: 'ranges are missing for "a", "y"; calibrate measures them.',
    })
    expect(model.isChanged).toBe(true)
    expect(operatorsOf(model.graph)).toEqual(['Add', 'Exp', 'MatMul'])
  })

  const hist = { data: [0, 3], dtype: 'int64', CLS: 'numpy.array' }
  const array = (data: unknown) => ({ data, dtype: 'float32', CLS: 'numpy.array' })
  /** As `write_calibration_table` of onnxruntime 1.32 writes them, by method. */
  it.each([
    ['minmax', { lowest: array([-1]), highest: array([2]) }],
    ['percentile', { lowest: -1, highest: array(2), hist: 15, bins: 0 }],
    ['entropy', { lowest: -1, highest: 2, hist, bins: array([-1, 0, 2]) }],
    [
      'distribution',
      { avg: array(0.5), std: array(1), hist, hist_edges: array([-1, 0, 2]), lowest: -1, highest: 2 },
    ],
  ])('takes the JSON of the calibration cache of onnxruntime with %s', async (_, range) => {
    const entry = { ...range, CLS: 'TensorData' }
    const entries = { x: entry, y: entry }
    for (const cache of [{ CLS: 'TensorsData', data: entries }, entries] as unknown as ValueRanges[]) {
      const model = modelOf([{ opType: 'Add', inputs: ['x', 'x'], outputs: ['y'] }])
      await quantizeStatic(model, { ranges: cache })
      expect(await numbersOf(model, 'x_scale')).toEqual([Math.fround(3 / 255)])
      expect(await numbersOf(model, 'x_zero_point')).toEqual([85])
    }
  })

  it('takes a value of the name "data" in every form', async () => {
    for (const range of [{ min: -1, max: 2 }, [-1, 2], { lowest: array(-1), highest: array([2]) }]) {
      const model = modelOf([
        { opType: 'Add', inputs: ['x', 'x'], outputs: ['data'] },
        { opType: 'Exp', inputs: ['data'], outputs: ['y'] },
      ])
      await quantizeStatic(model, { ranges: { x: RANGE, data: range } as unknown as ValueRanges })
      expect(await numbersOf(model, 'data_scale')).toEqual([Math.fround(3 / 255)])
    }
  })

  it.each([
    ['several numbers', { lowest: array([-1, -2]), highest: array([2, 3]) }],
    ['nothing', { hist }],
    ['null', null],
    ['a null bound', { lowest: null, highest: 1 }],
  ])('refuses an entry of a cache with %s, by name', async (_, entry) => {
    const cache = { CLS: 'TensorsData', data: { x: entry } } as unknown as ValueRanges
    const model = modelOf([{ opType: 'Add', inputs: ['x', 'x'], outputs: ['y'] }])
    await expect(quantizeStatic(model, { ranges: cache })).rejects.toThrow('the range of "x" is ')
  })

  it('removes a Relu or a Clip only where the codes end there', async () => {
    const ranges = { x: RANGE, y: { min: 0, max: 6 }, a: { min: -4, max: 9 } }
    const of = (clip: NewNode): OnnxModel =>
      modelOf(
        [
          { opType: 'Add', inputs: ['x', 'x'], outputs: ['a'] },
          clip,
          { opType: 'Exp', inputs: ['b'], outputs: ['c'] },
          { opType: 'Add', inputs: ['b', 'b'], outputs: ['y'] },
        ],
        { low: [0], high: [6], one: [1] },
      )
    const clips: readonly [readonly string[], boolean][] = [
      [['a', 'low', 'high'], true],
      [['a', 'one', 'high'], false],
      [['a', 'low', 'x'], false],
      [['a'], true],
    ]
    for (const [inputs, isRemoved] of clips) {
      const model = of({ opType: 'Clip', inputs: [...inputs], outputs: ['b'] })
      await quantizeStatic(model, { ranges: { ...ranges, b: { min: 0, max: 6 } } })
      expect(operatorsOf(model.graph).includes('Clip'), inputs.join()).toBe(!isRemoved)
    }
    const relu = of({ opType: 'Relu', inputs: ['a'], outputs: ['b'] })
    await quantizeStatic(relu, { ranges: { ...ranges, b: RANGE } })
    expect(operatorsOf(relu.graph)).toContain('Relu')
  })

  it('removes a Relu that makes an output of the graph, as the tool does', async () => {
    const model = modelOf([
      { opType: 'Add', inputs: ['x', 'x'], outputs: ['a'] },
      { opType: 'Relu', inputs: ['a'], outputs: ['y'] },
    ])
    await quantizeStatic(model, { ranges: { x: RANGE, a: RANGE, y: { min: 0, max: 1 } } })
    expect(operatorsOf(model.graph)).not.toContain('Relu')
    expect(model.graph.producerOf('y')?.opType).toBe('DequantizeLinear')
  })

  it('keeps the range of an output of the graph that a Relu takes', async () => {
    const model = modelOf([
      { opType: 'Add', inputs: ['x', 'x'], outputs: ['y'] },
      { opType: 'Relu', inputs: ['y'], outputs: ['z'] },
    ])
    model.graph.addOutput('z', { kind: 'tensor', dtype: 'float32', shape: [2, 2] })
    await quantizeStatic(model, { ranges: { x: RANGE, y: RANGE, z: { min: 0, max: 1 } } })
    expect(await numbersOf(model, 'y_scale')).toEqual([Math.fround(2 / 255)])
  })

  it('reduces the range of every initializer, as the tool does', async () => {
    const model = modelOf([{ opType: 'Add', inputs: ['x', 'k'], outputs: ['y'] }], { k: [-1, 0, 0, 1] })
    await quantizeStatic(model, { ranges: { x: RANGE, y: RANGE }, reduceRange: true })
    expect(await numbersOf(model, 'k_scale')).toEqual([Math.fround(2 / 127)])
    expect(await numbersOf(model, 'x_scale')).toEqual([Math.fround(2 / 255)])
  })

  it.each([
    ['int8', false],
    ['uint8', true],
    ['uint16', false],
  ] as const)(
    'raises the scale of a weight of %s whose bias would not fit 32 bits',
    async (weightType, perChannel) => {
      const model = modelOf([{ opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['y'] }], {
        w: [1e-6, 0, 0, 1e-6],
        b: [1000, -3000],
      })
      await quantizeStatic(model, { ranges: { x: { min: 0, max: 1e-4 }, y: RANGE }, weightType, perChannel })
      const [codes] = [await numbersOf(model, 'b_quantized')]
      expect(Math.max(...codes.map(Math.abs))).toBeLessThan(2 ** 31)
      expect(Math.max(...codes.map(Math.abs))).toBeGreaterThan(2 ** 30)
      expect((await numbersOf(model, 'w_scale'))[0]).toBeGreaterThan(1e-6 / 127)
    },
  )

  it('gives each of two nodes its own codes of a bias', async () => {
    const model = modelOf(
      [
        { opType: 'Gemm', inputs: ['x', 'w', 'b'], outputs: ['a'] },
        { opType: 'Gemm', inputs: ['a', 'w', 'b'], outputs: ['y'] },
      ],
      { w: [1, 0, 0, 1], b: [1, 2] },
    )
    await quantizeStatic(model, { ranges: { x: RANGE, a: RANGE, y: RANGE } })
    const biases = model.graph.nodes.filter(({ opType }) => opType === 'Gemm').map(({ inputs }) => inputs[2])
    expect(new Set(biases).size).toBe(2)
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('leaves what a caller names, and says why nodes stay', async () => {
    const model = modelOf(
      [
        { opType: 'Exp', name: 'e', inputs: ['x'], outputs: ['a'] },
        { opType: 'Transpose', name: 't', inputs: ['a'], outputs: ['b'] },
        { opType: 'Add', name: 'two', inputs: ['b', 'b'], outputs: ['y'] },
      ],
      {},
    )
    const { nodes } = await quantizeStatic(model, { ranges: {}, exclude: ['two'] })
    expect(nodes).toEqual([
      { name: 'e', opType: 'Exp', reason: 'Exp is not quantized' },
      { name: 't', opType: 'Transpose', reason: 'its input is not quantized' },
      { name: 'two', opType: 'Add', reason: 'the node is excluded' },
    ])
  })

  it.each([
    ['uint16', 'int8', 8],
    ['uint8', 'uint16', 8],
    ['int16', 'int4', 10],
    ['uint8', 'uint4', 10],
  ] as const)(
    'takes nodes of com.microsoft for %s and %s below operator set 21',
    async (activationType, weightType, ir) => {
      const model = OnnxModel.create({ opset: 9, irVersion: 8 })
      const { graph } = model
      const type = { kind: 'tensor', dtype: 'float32', shape: ['n', 4] } as const
      graph.addInput('x', type)
      graph.setInitializer(
        'w',
        tensor(
          Float32Array.from({ length: 16 }, (_, at) => at - 8),
          { shape: [4, 4] },
        ),
      )
      graph.addNode({ opType: 'MatMul', name: 'm', inputs: ['x', 'w'], outputs: ['y'] })
      graph.addOutput('y', type)
      const range = { min: -1, max: 1 }
      const options = { activationType, weightType, ranges: { x: range, y: range }, perChannel: true }
      const raised = model.copy()
      expect((await quantizeStatic(model, options)).opset).toBeUndefined()
      const codes = graph.nodes.filter(({ opType }) => opType.endsWith('eLinear'))
      expect(codes.map(({ domain }) => domain)).toEqual(Array(5).fill('com.microsoft'))
      expect([...model.opsetImports]).toEqual([
        ['', 9],
        ['com.microsoft', 1],
      ])
      expect(model.irVersion).toBe(ir)
      expect(await check(await serialize(model), { level: 'strict' })).toEqual([])
      await quantizeStatic(raised, { ...options, raiseOpset: true })
      expect([...raised.opsetImports]).toEqual([['', 21]])
    },
  )

  it('refuses a model that is quantized already, and old operator sets', async () => {
    const model = await recorded('cnn')
    const ranges = JSON.parse(
      readFileSync(new URL('../../fixtures/onnx-compress/cnn/ranges.json', import.meta.url), 'utf8'),
    )
    await quantizeStatic(model, { ranges })
    await expect(quantizeStatic(model, { ranges })).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const old = OnnxModel.create({ opset: 9 })
    await expect(quantizeStatic(old, { ranges })).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })

  it.each([
    { ranges: 1 },
    { ranges: { x: { min: 1, max: 0 } } },
    { ranges: { x: { min: 0, max: Infinity } } },
    { ranges: {}, weightType: 'int2' },
    { ranges: {}, activationType: 'uint4' },
    { ranges: {}, perChannel: 1 },
  ])('refuses the options %j', async (options) => {
    const model = await recorded('cnn')
    await expect(quantizeStatic(model, options as unknown as QuantizeStaticOptions)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })
})

async function numbersOf({ graph }: OnnxModel, name: string): Promise<number[]> {
  const found = graph.initializer(name)
  if (found?.kind !== 'dense') throw new Error(`${name} is no tensor`)
  return [...(await found.toTypedArray())].map(Number)
}
