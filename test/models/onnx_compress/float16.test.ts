/** Conversion of models to float16: recorded results of a program written from the rules, and the cases that other tools break. */
import { describe, expect, it } from 'vitest'
import {
  cast,
  check,
  type DenseTensor,
  open,
  serialize,
  sparseFromDense,
  tensor,
} from '../../../lib/index.js'
import { Graph, type NewNode, OnnxModel, type ToFloat16Options, toFloat16 } from '../../../lib/onnx.js'
import { outputsOf, randomFloats } from './compare_outputs.js'
import { runtime } from './onnxruntime.js'
import { casesWith, initializersOf, operatorsOf, recorded } from './recorded.js'

const VARIANTS: readonly (readonly [string, ToFloat16Options])[] = [
  ['fp16-right-io32', {}],
  ['fp16-right', { keepIo: false }],
  ['fp16-right-few', { block: 'minimal' }],
]

describe.each(casesWith('fp16-right'))('the model %s', (name) => {
  it.each(VARIANTS)('becomes %s', async (variant, options) => {
    const model = await recorded(name)
    await toFloat16(model, options)
    const expected = await recorded(name, variant)
    expect(operatorsOf(model.graph)).toEqual(operatorsOf(expected.graph))
    expect(await initializersOf(model.graph)).toEqual(await initializersOf(expected.graph))
    const kinds = ({ graph }: OnnxModel): unknown[] =>
      [...graph.inputs, ...graph.outputs].map((value) => [value.name, value.type])
    expect(kinds(model)).toEqual(kinds(expected))
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('does not change a second time', async () => {
    const model = await recorded(name)
    await toFloat16(model)
    const { onnx: again } = await open(await serialize(model))
    await toFloat16(again!)
    expect(again!.isChanged).toBe(false)
  })

  it('keeps its main inputs and outputs', async () => {
    const model = await recorded(name)
    const before = [model.graph.inputs, model.graph.outputs]
    await toFloat16(model)
    expect([model.graph.inputs, model.graph.outputs]).toEqual(before)
  })
})

/** A model of one float32 input `x` and one output `y` of the same type. */
function modelOf(nodes: readonly NewNode[], opset = 21): OnnxModel {
  const model = OnnxModel.create({ opset })
  const type = { kind: 'tensor', dtype: 'float32', shape: [2] } as const
  model.graph.addInput('x', type)
  for (const node of nodes) model.graph.addNode(node)
  model.graph.addOutput('y', type)
  return model
}

const nodesOf = (model: OnnxModel): string[] =>
  model.graph.nodes.map(({ opType, inputs, outputs }) => `${opType}(${inputs}) -> ${outputs}`)

describe('toFloat16', () => {
  it.each(['initializer', 'Constant'])(
    'keeps a BatchNormalization whose variance it does not represent, as %s',
    async (kind) => {
      const of = async (variance: readonly number[], dtype: 'float16' | 'bfloat16' = 'float16') => {
        const values = { s: [1, 2], b: [0, 1], m: [3, 4], v: variance }
        const tensors = Object.entries(values).map(([name, numbers]) =>
          tensor(numbers, { dtype: 'float32', name }),
        )
        const model = modelOf([
          ...(kind === 'Constant' ? tensors : []).map((value) => ({
            opType: 'Constant',
            outputs: [value.name],
            attributes: { value: { type: 'TENSOR', value } as const },
          })),
          { opType: 'BatchNormalization', name: 'bn', inputs: ['x', 's', 'b', 'm', 'v'], outputs: ['y'] },
        ])
        if (kind === 'initializer') for (const each of tensors) model.graph.setInitializer(each.name, each)
        const { nodes } = await toFloat16(model, { dtype })
        return nodes.filter(({ reason }) => reason !== undefined).map(({ name, reason }) => [name, reason])
      }
      const reason = 'v has numbers beyond 65504, which float16 does not represent'
      expect(await of([1, 9.8e7])).toEqual([['bn', reason]])
      expect(await of([65505, 1])).toEqual([['bn', reason]])
      expect(await of([1, 65504])).toEqual([])
      expect(await of([1, 9.8e7], 'bfloat16')).toEqual([])
    },
  )

  it('keeps sparse Constants in float32, behind a Cast', async () => {
    const value = await sparseFromDense(tensor([1, 0, 0, 2], { dtype: 'float32', shape: [2, 2] }))
    const model = modelOf([
      { opType: 'Constant', outputs: ['c'], attributes: { sparse_value: { type: 'SPARSE_TENSOR', value } } },
      { opType: 'MatMul', inputs: ['x', 'c'], outputs: ['y'] },
    ])
    const { nodes } = await toFloat16(model)
    expect(nodes.find(({ opType }) => opType === 'Constant')?.reason).toBe('its value is sparse')
    expect(model.graph.producerOf(model.graph.nodes.at(-2)!.inputs[1]!)!.opType).toBe('Cast')
  })

  it('keeps small Constants that nodes need in float32, without rounding', async () => {
    const third = tensor([1, 1 / 3], { dtype: 'float32' })
    const empty = tensor(new Float32Array(0))
    const constant = (value: typeof third, output: string): NewNode => ({
      opType: 'Constant',
      outputs: [output],
      attributes: { value: { type: 'TENSOR', value } },
    })
    const model = modelOf([
      constant(third, 'scales'),
      constant(empty, 'none'),
      { opType: 'Mul', inputs: ['x', 'scales'], outputs: ['a'] },
      { opType: 'Resize', inputs: ['a', 'none', 'scales'], outputs: ['y'] },
    ])
    await toFloat16(model)
    const { graph } = model
    const [, roi, scales] = graph.nodes.find(({ opType }) => opType === 'Resize')!.inputs
    expect(await (graph.initializer(scales!) as DenseTensor).toTypedArray()).toEqual(
      Float32Array.of(1, 1 / 3),
    )
    expect(roi === 'none' || graph.initializer(roi!)?.dtype === 'float32').toBe(true)
    const mul = graph.nodes.find(({ opType }) => opType === 'Mul')!
    expect(mul.inputs[1]).toBe('scales')
    expect(graph.nodes.filter(({ opType }) => opType === 'Cast').map(({ inputs }) => inputs[0])).toEqual([
      'x',
      expect.not.stringMatching(/scales|none/),
    ])
  })

  it('takes a model that declares the output of a Cast that goes', async () => {
    const to: NewNode['attributes'] = { to: { type: 'INT', value: 1 } }
    const model = modelOf([
      { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
      { opType: 'Cast', inputs: ['a'], outputs: ['b'], attributes: to },
      { opType: 'Relu', inputs: ['b'], outputs: ['y'] },
    ])
    model.graph.setType('b', { kind: 'tensor', dtype: 'float32', shape: [2] })
    await toFloat16(model)
    expect(nodesOf(model).filter((text) => text.startsWith('Relu')).length).toBe(2)
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
  })

  const shape = { type: 'INTS', value: [2] } as const
  const scalars = (...numbers: number[]) =>
    numbers.map((number, at) => tensor([number], { dtype: 'int64', shape: [], name: `n${at}` }))
  it.each<[string, NewNode]>([
    ['RandomNormal', { opType: 'RandomNormal', outputs: ['made'], attributes: { shape } }],
    ['RandomUniform', { opType: 'RandomUniform', outputs: ['made'], attributes: { shape } }],
    [
      'RandomNormalLike of integers',
      {
        opType: 'RandomNormalLike',
        inputs: ['whole'],
        outputs: ['made'],
        attributes: { dtype: { type: 'INT', value: 1 } },
      },
    ],
    [
      'RandomUniformLike of integers',
      {
        opType: 'RandomUniformLike',
        inputs: ['whole'],
        outputs: ['made'],
        attributes: { dtype: { type: 'INT', value: 1 } },
      },
    ],
    [
      'EyeLike of integers',
      {
        opType: 'EyeLike',
        inputs: ['whole'],
        outputs: ['made'],
        attributes: { dtype: { type: 'INT', value: 1 } },
      },
    ],
    [
      'MelWeightMatrix',
      { opType: 'MelWeightMatrix', inputs: ['n0', 'n1', 'n2', 'low', 'high'], outputs: ['made'] },
    ],
    ['MeanVarianceNormalization', { opType: 'MeanVarianceNormalization', inputs: ['x4'], outputs: ['made'] }],
  ])('keeps %s in float32, which onnxruntime does not run in float16', async (_, node) => {
    const model = modelOf([
      { ...node, name: 'maker' },
      { opType: 'Size', inputs: ['made'], outputs: ['size'] },
      { opType: 'Neg', inputs: ['x'], outputs: ['y'] },
      { opType: 'Abs', inputs: ['made'], outputs: ['z'] },
    ])
    const { graph } = model
    graph.addInput('x4', { kind: 'tensor', dtype: 'float32', shape: [1, 2, 2, 2] })
    graph.setInitializer('whole', tensor([1n, 2n, 3n, 4n], { dtype: 'int64', shape: [2, 2] }))
    for (const each of scalars(8, 16, 8000)) graph.setInitializer(each.name, each)
    for (const [name, value] of Object.entries({ low: 20, high: 4000 }))
      graph.setInitializer(name, tensor([value], { dtype: 'float32', shape: [] }))
    graph.addOutput('z', { kind: 'tensor', dtype: 'float32' })
    const before = model.copy()
    const { nodes } = await toFloat16(model)
    const found = nodes.filter(({ name }) => name === 'maker')
    expect(found).toEqual([expect.objectContaining({ opType: node.opType, reason: expect.any(String) })])
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
    if (!runtime) return
    const feeds = Object.fromEntries(
      before.graph.inputs.map(({ name, type }) => {
        const dims = (type as { shape: readonly number[] }).shape
        return [name, { data: randomFloats(dims), shape: dims }]
      }),
    )
    const result = await outputsOf(model, feeds, 'all')
    expect(Object.keys(result)).toEqual(['y', 'z'])
  })

  it.each<[string, readonly NewNode[]]>([
    ['of MatMulInteger', [{ opType: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['sum'] }]],
    [
      'of MatMulInteger that are transposed',
      [
        { opType: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['s'] },
        { opType: 'Transpose', inputs: ['s'], outputs: ['sum'] },
      ],
    ],
    [
      'of MatMulInteger that are added',
      [
        { opType: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['s'] },
        { opType: 'Add', inputs: ['s', 's'], outputs: ['sum'] },
      ],
    ],
    [
      'of ConvInteger',
      [
        { opType: 'ConvInteger', inputs: ['a4', 'b4'], outputs: ['s'] },
        { opType: 'Flatten', inputs: ['s'], outputs: ['sum'] },
      ],
    ],
    [
      'of MatMulInteger behind Identity',
      [
        { opType: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['s'] },
        { opType: 'Identity', inputs: ['s'], outputs: ['sum'] },
      ],
    ],
    [
      'of MatMulInteger in two Casts',
      [
        { opType: 'MatMulInteger', inputs: ['a', 'b'], outputs: ['s'] },
        { opType: 'Cast', inputs: ['s'], outputs: ['l'], attributes: { to: { type: 'INT', value: 7 } } },
        { opType: 'Identity', inputs: ['l'], outputs: ['sum'] },
      ],
    ],
  ])('keeps sums %s in float32 until a scale is multiplied in', async (_, products) => {
    const model = modelOf([
      ...products,
      {
        opType: 'Cast',
        name: 'cast',
        inputs: ['sum'],
        outputs: ['f'],
        attributes: { to: { type: 'INT', value: 1 } },
      },
      { opType: 'Mul', name: 'scaled', inputs: ['f', 'scale'], outputs: ['y'] },
    ])
    const { graph } = model
    const codes = (dims: readonly number[]) =>
      tensor(new Uint8Array(dims.reduce((one, two) => one * two, 1)).fill(255), { shape: dims })
    for (const [name, dims] of Object.entries({
      a: [2, 64],
      b: [64, 2],
      a4: [1, 64, 1, 1],
      b4: [2, 64, 1, 1],
    }))
      graph.setInitializer(name, codes(dims))
    graph.setInitializer('scale', tensor(Float32Array.of(1e-6), { shape: [1] }))
    await toFloat16(model)
    const cast = model.graph.nodes.find(({ name }) => name === 'cast')!
    expect(Number(cast.attribute('to')!.value)).toBe(1)
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
    if (!runtime) return
    const [y] = Object.values(
      await outputsOf(model, { x: { data: Float32Array.of(1, 2), shape: [2] } }, 'all'),
    )
    for (const value of Array.from(y!.data)) expect(value).toBeGreaterThan(4)
  })

  it('lets blocked nodes in a row exchange float32', async () => {
    const model = modelOf([
      { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
      { opType: 'Max', inputs: ['a', 'a'], outputs: ['b'] },
      { opType: 'Min', inputs: ['b', 'a'], outputs: ['y'] },
    ])
    await toFloat16(model)
    expect(nodesOf(model)).toEqual([
      'Cast(x) -> x_fp16',
      'Relu(x_fp16) -> a',
      'Cast(a) -> a_fp32',
      'Max(a_fp32,a_fp32) -> b',
      'Min(b,a_fp32) -> y',
    ])
  })

  it('removes a Cast to the type that its input has now', async () => {
    const model = modelOf([
      { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
      { opType: 'Cast', inputs: ['a'], outputs: ['h'], attributes: { to: { type: 'INT', value: 10 } } },
      { opType: 'Relu', inputs: ['h'], outputs: ['r'] },
      { opType: 'Cast', inputs: ['r'], outputs: ['y'], attributes: { to: { type: 'INT', value: 1 } } },
    ])
    await toFloat16(model)
    expect(nodesOf(model)).toEqual(['Cast(x) -> x_fp16', 'Relu(x_fp16) -> a', 'Relu(a) -> r', 'Cast(r) -> y'])
  })

  it('reports clipped and lifted values, and why nodes stay', async () => {
    const model = modelOf([
      { opType: 'Add', inputs: ['x', 'w'], outputs: ['a'] },
      { opType: 'CumSum', name: 'sum', inputs: ['a', 'axis'], outputs: ['y'] },
    ])
    model.graph.setInitializer('w', tensor(Float32Array.of(1e6, -1e-9)))
    model.graph.setInitializer('axis', tensor([0], { dtype: 'int32', shape: [] }))
    const report = await toFloat16(model)
    expect(report.tensors).toEqual([
      { name: 'w', from: 'float32', to: 'float16', bytesBefore: 8, bytesAfter: 4, clipped: 1, lifted: 1 },
    ])
    expect(report.nodes).toContainEqual({ name: 'sum', opType: 'CumSum', reason: 'CumSum is blocked' })
    expect([report.bytesBefore, report.bytesAfter]).toEqual([12, 8])
    expect(model.graph.initializer('w')).toMatchObject({ dtype: 'float16' })
    expect([...(await initializersOf(model.graph)).get('w')!.bytes]).toEqual([0xff, 0x7b, 0x01, 0x80])
  })

  it.each([16 * 1024, 16 * 1024 + 1])(
    'converts a weight of %i numbers as cast does after clipping',
    async (count) => {
      const numbers = Float32Array.from(randomFloats([count], 5), (each, at) =>
        at % 1000 === 999 ? 1e9 : each,
      )
      const model = modelOf([{ opType: 'Mul', inputs: ['x', 'w'], outputs: ['y'] }])
      model.graph.setInitializer('w', tensor(numbers))
      const { tensors } = await toFloat16(model)
      expect(tensors[0]).toMatchObject({ clipped: Math.floor(count / 1000), bytesAfter: 2 * count })
      const expected = cast(tensor(numbers.map((each) => Math.min(each, 65504))), 'float16')
      expect((await initializersOf(model.graph)).get('w')!.bytes).toEqual(
        Uint8Array.from(await expected.bytes()),
      )
    },
  )

  it('follows Casts in a row that are needless now', async () => {
    const model = modelOf([
      { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
      { opType: 'Cast', inputs: ['a'], outputs: ['b'], attributes: { to: { type: 'INT', value: 1 } } },
      { opType: 'Cast', inputs: ['b'], outputs: ['c'], attributes: { to: { type: 'INT', value: 1 } } },
      { opType: 'Neg', inputs: ['c'], outputs: ['y'] },
    ])
    await toFloat16(model)
    const made = model.graph.nodes.flatMap(({ outputs }) => outputs)
    const used = model.graph.nodes.flatMap(({ inputs }) => inputs)
    expect(used.filter((name) => name !== 'x' && !made.includes(name))).toEqual([])
    expect(model.graph.nodes.map(({ opType }) => opType)).toEqual(['Cast', 'Relu', 'Neg', 'Cast'])
  })

  it('keeps a mask finite in bfloat16', async () => {
    const model = modelOf([{ opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] }])
    model.graph.setInitializer('w', tensor(Float32Array.of(-3.4028234663852886e38, 1)))
    await toFloat16(model, { dtype: 'bfloat16' })
    expect([...(await initializersOf(model.graph)).get('w')!.bytes]).toEqual([0x7f, 0xff, 0x80, 0x3f])
  })

  it('leaves an initializer that a caller may override with the type of the input', async () => {
    const model = modelOf([{ opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] }])
    model.graph.setInitializer('w', tensor(Float32Array.of(1, 2)))
    model.graph.addInput('w', { kind: 'tensor', dtype: 'float32', shape: [2] })
    await toFloat16(model)
    expect(model.graph.initializer('w')?.dtype).toBe('float32')
    expect(nodesOf(model)[0]).toBe('Cast(x) -> x_fp16')
    await toFloat16(model, { keepIo: false })
    expect(model.graph.initializer('w')?.dtype).toBe('float16')
  })

  it('refuses an unknown operator whose output has no type', async () => {
    const model = modelOf([
      { opType: 'Strange', name: 'n', domain: 'some.where', inputs: ['x'], outputs: ['a'] },
      { opType: 'Relu', inputs: ['a'], outputs: ['y'] },
    ])
    await expect(toFloat16(model)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    expect(model.graph.nodes.length).toBe(2)
    model.graph.setType('a', { kind: 'tensor', dtype: 'float32' })
    await toFloat16(model)
    expect(nodesOf(model)[0]).toBe('Strange(x) -> a')
  })

  it('changes nothing where it refuses an operator behind others, or inside one', async () => {
    const strange = { opType: 'Strange', domain: 'some.where', inputs: ['a'], outputs: ['s'] }
    const constant: NewNode = {
      opType: 'Constant',
      inputs: [],
      outputs: ['a'],
      attributes: { value_float: { type: 'FLOAT', value: 1 } },
    }
    const branch = Graph.create('branch')
    branch.addNode(strange)
    branch.addNode({ opType: 'Relu', inputs: ['s'], outputs: ['r'] })
    branch.addOutput('r', { kind: 'tensor', dtype: 'float32' })
    const both = { type: 'GRAPH', value: branch } as const
    const models = [
      modelOf([constant, strange, { opType: 'Add', inputs: ['s', 'x'], outputs: ['y'] }]),
      modelOf([
        constant,
        { opType: 'Add', inputs: ['a', 'x'], outputs: ['b'] },
        { opType: 'If', inputs: ['c'], outputs: ['y'], attributes: { then_branch: both, else_branch: both } },
      ]),
    ]
    models[1]!.graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    for (const model of models) {
      const before = await serialize(model)
      await expect(toFloat16(model)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
      expect(await serialize(model)).toEqual(before)
    }
  })

  it('casts a value of an outer graph where it is made, for a blocked node in a branch', async () => {
    const branch = Graph.create('branch')
    branch.addNode({ opType: 'Max', inputs: ['a', 'a'], outputs: ['m'] })
    branch.addOutput('m', { kind: 'tensor', dtype: 'float32' })
    const both = { type: 'GRAPH', value: branch } as const
    const model = modelOf([
      { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
      {
        opType: 'If',
        inputs: ['c'],
        outputs: ['y'],
        attributes: { then_branch: both, else_branch: both },
      },
    ])
    model.graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    await toFloat16(model)
    expect(nodesOf(model)).toEqual([
      'Cast(x) -> x_fp16',
      'Relu(x_fp16) -> a',
      'Cast(a) -> a_fp32',
      'If(c) -> y_fp16',
      'Cast(y_fp16) -> y',
    ])
    const [inner] = [...model.graph.subgraphs()]
    expect(inner!.nodes.map(({ opType, inputs }) => `${opType}(${inputs})`)).toEqual([
      'Max(a_fp32,a_fp32)',
      'Cast(m_fp32)',
    ])
  })

  it.each([
    [{ dtype: 'int8' }, 'dtype'],
    [{ clip: { max: 1e6 } }, 'clip'],
    [{ block: 'some' }, 'block'],
    [{ block: { ops: ['matmul'] } }, 'did you mean "MatMul"?'],
    [{ keepIo: 'x' }, 'keepIo'],
  ])('refuses the options %j', async (options, word) => {
    const model = modelOf([{ opType: 'Relu', inputs: ['x'], outputs: ['y'] }])
    await expect(toFloat16(model, options as unknown as ToFloat16Options)).rejects.toThrow(word)
  })
})
