/** float16 and bfloat16 models back to float32: types, values and graphs, and outputs in onnxruntime where it is installed. */
import { describe, expect, it } from 'vitest'
import { asTensor, cast, check, type DenseTensor, open, serialize, tensor } from '../../../lib/index.js'
import {
  addFunction,
  Graph,
  inferTypes,
  type NewNode,
  OnnxModel,
  quantizeWeights,
  toFloat16,
  toFloat32,
} from '../../../lib/onnx.js'
import { type Feeds, lossOf, outputsOf, randomFloats } from './compare_outputs.js'
import { runtime } from './onnxruntime.js'
import { CASES, casesWith, initializersOf, operatorsOf, recorded } from './recorded.js'

const HALF_CODE = 10
const FLOAT_CODE = 1

/** A float32 tensor as a half type holds it, by the greatest and least magnitudes of the type. */
async function roundedTensor(tensor: DenseTensor, dtype: 'float16' | 'bfloat16'): Promise<DenseTensor> {
  const [least, most] = dtype === 'float16' ? [2 ** -24, 65504] : [0, 3.3895313892515355e38]
  const clipped = ((await tensor.toTypedArray()) as Float32Array).map((value) =>
    value === 0 || !Number.isFinite(value)
      ? value
      : Math.sign(value) * Math.min(most, Math.max(least, Math.abs(value))),
  )
  const { name, shape } = tensor
  return cast(cast(asTensor(clipped, { name, shape }), dtype), 'float32')
}

/** The model with its float32 initializers rounded to a half type: what a conversion to that type and back has to give. */
async function rounded(name: string, dtype: 'float16' | 'bfloat16'): Promise<OnnxModel> {
  const model = await recorded(name)
  for (const graph of model.graphs()) {
    for (const each of [...graph.initializers()]) {
      if (each.kind === 'dense' && each.dtype === 'float32')
        graph.setInitializer(each.name, await roundedTensor(each, dtype))
    }
  }
  return model
}

const halfTypes = (model: OnnxModel): string[] =>
  [...inferTypes(model)].filter(([, type]) => /float16/.test(JSON.stringify(type))).map(([name]) => name)

const errorsOf = async (model: OnnxModel): Promise<unknown[]> =>
  (await check(await serialize(model), { level: 'strict' })).filter(({ severity }) => severity === 'error')

describe.each(CASES)('the model %s', (name) => {
  it.each(['float16', 'bfloat16'] as const)('comes back from %s', async (dtype) => {
    const original = await recorded(name)
    const model = original.copy()
    await toFloat16(model, { dtype, block: 'minimal', keepIo: false })
    const { onnx: half } = await open(await serialize(model))
    await toFloat32(half!)
    const expected = await rounded(name, dtype)
    // Casts of the model to float32 are needless in a half model, and Constants with numbers hold tensors there.
    const kept = ({ graph }: OnnxModel): string[] => operatorsOf(graph).filter((each) => each !== 'Cast')
    expect(kept(half!)).toEqual(kept(expected))
    const [found, wanted] = [await initializersOf(half!.graph), await initializersOf(expected.graph)]
    // What only float32 operators take was never rounded.
    const exact = await initializersOf(original.graph)
    for (const [key, value] of wanted) {
      if (found.has(key)) expect([value, exact.get(key)]).toContainEqual(found.get(key))
    }
    const ends = ({ graph }: OnnxModel): unknown[] => [...graph.inputs, ...graph.outputs]
    expect(ends(half!)).toEqual(ends(expected))
    if (model.functions.length === 0) expect(halfTypes(half!)).toEqual([])
    expect(await errorsOf(half!)).toEqual([])
    const again = (await open(await serialize(half!))).onnx!
    await toFloat32(again)
    expect(again.isChanged).toBe(false)
  })

  it('keeps half inputs and outputs where they are to stay', async () => {
    const model = await recorded(name)
    await toFloat16(model, { keepIo: false })
    const before = [model.graph.inputs, model.graph.outputs]
    await toFloat32(model, { keepIo: true })
    expect([model.graph.inputs, model.graph.outputs]).toEqual(before)
    expect(await errorsOf(model)).toEqual([])
  })
})

/** A model of a float16 input `x` and an output `y`. */
function halfModel(nodes: readonly NewNode[], { opset = 21, output = 'float16' } = {}): OnnxModel {
  const model = OnnxModel.create({ opset })
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float16', shape: [2] })
  model.graph.setInitializer('w', cast(tensor(Float32Array.of(0.1, 70), { name: 'w' }), 'float16'))
  for (const node of nodes) model.graph.addNode(node)
  if (model.graph.value('y'))
    model.graph.addOutput('y', { kind: 'tensor', dtype: output as 'float16', shape: [2] })
  return model
}

const nodesOf = (model: OnnxModel): string[] =>
  model.graph.nodes.map(({ opType, inputs, outputs }) => `${opType}(${inputs}) -> ${outputs}`)
const int = (value: number) => ({ type: 'INT', value }) as const

describe('toFloat32', () => {
  it('removes Casts that have become needless, and changes those to a half type', async () => {
    const model = halfModel(
      [
        { opType: 'Add', inputs: ['x', 'w'], outputs: ['a'] },
        { opType: 'Cast', inputs: ['a'], outputs: ['f'], attributes: { to: int(FLOAT_CODE) } },
        { opType: 'Range', inputs: ['zero', 'two', 'one'], outputs: ['r'] },
        { opType: 'Add', inputs: ['f', 'r'], outputs: ['s'] },
        { opType: 'Cast', inputs: ['i'], outputs: ['h'], attributes: { to: int(HALF_CODE) } },
        { opType: 'Cast', inputs: ['h'], outputs: ['t'], attributes: { to: int(FLOAT_CODE) } },
        { opType: 'Add', inputs: ['s', 't'], outputs: ['y'] },
      ],
      { output: 'float32' },
    )
    for (const [name, value] of Object.entries({ zero: 0, one: 1, two: 2 }))
      model.graph.setInitializer(name, tensor([value], { dtype: 'float32', shape: [] }))
    model.graph.setInitializer('i', tensor([3, 4], { dtype: 'int32' }))
    const report = await toFloat32(model)
    expect(nodesOf(model)).toEqual([
      'Add(x,w) -> a',
      'Range(zero,two,one) -> r',
      'Add(a,r) -> s',
      'Cast(i) -> h',
      'Add(s,h) -> y',
    ])
    expect(report.tensors).toMatchObject([{ name: 'w', from: 'float16', to: 'float32', bytesAfter: 8 }])
    expect(report.bytesAfter - report.bytesBefore).toBe(4)
  })

  it('changes attributes: tensors, and codes of types', async () => {
    const ones = cast(tensor(Float32Array.of(1, 1)), 'float16')
    const model = halfModel([
      { opType: 'Constant', outputs: ['c'], attributes: { value: { type: 'TENSOR', value: ones } } },
      {
        opType: 'RandomNormal',
        outputs: ['n'],
        attributes: { shape: { type: 'INTS', value: [2] }, dtype: int(HALF_CODE) },
      },
      { opType: 'Sum', inputs: ['c', 'n', 'w'], outputs: ['s'] },
      { opType: 'Add', inputs: ['s', 'x'], outputs: ['y'] },
    ])
    await toFloat32(model)
    expect(halfTypes(model)).toEqual([])
    expect(model.graph.nodes[0]!.attribute('value')!.tensors[0]!.dtype).toBe('float32')
    expect(Number(model.graph.nodes[1]!.attribute('dtype')!.value)).toBe(FLOAT_CODE)
  })

  it('leaves calls of functions and bits as they are, between Casts', async () => {
    const model = halfModel(
      [
        { opType: 'twice', domain: 'own', inputs: ['x'], outputs: ['a'] },
        { opType: 'Relu', inputs: ['a'], outputs: ['b'] },
        { opType: 'BitCast', inputs: ['b'], outputs: ['i'], attributes: { to: int(5) } },
        { opType: 'Cast', inputs: ['i'], outputs: ['y'], attributes: { to: int(HALF_CODE) } },
      ],
      { opset: 26 },
    )
    addFunction(model, {
      domain: 'own',
      name: 'twice',
      inputs: ['v'],
      outputs: ['w'],
      opsetImports: { '': 26 },
      nodes: [{ opType: 'Add', inputs: ['v', 'v'], outputs: ['w'] }],
    })
    const report = await toFloat32(model)
    expect(nodesOf(model)).toEqual([
      'Cast(x) -> x_fp16',
      'twice(x_fp16) -> a',
      'Cast(a) -> a_fp32',
      'Relu(a_fp32) -> b',
      'Cast(b) -> b_fp16',
      'BitCast(b_fp16) -> i',
      'Cast(i) -> y',
    ])
    expect(report.nodes.filter(({ reason }) => reason).map(({ reason }) => reason)).toEqual([
      'it calls a function of the model',
      'it takes or gives the bits of float16',
    ])
    expect(await errorsOf(model)).toEqual([])
  })

  it('follows values into branches', async () => {
    const branch = (opType: string): Graph => {
      const graph = Graph.create(opType)
      graph.addNode({ opType, inputs: ['x'], outputs: [`${opType}_y`] })
      graph.addOutput(`${opType}_y`, { kind: 'tensor', dtype: 'float16', shape: [2] })
      return graph
    }
    const model = halfModel([])
    model.graph.addInput('cond', { kind: 'tensor', dtype: 'bool', shape: [] })
    const attributes = {
      then_branch: { type: 'GRAPH', value: branch('Relu') },
      else_branch: { type: 'GRAPH', value: branch('Neg') },
    } as const
    model.graph.addNode({ opType: 'If', inputs: ['cond'], outputs: ['y'], attributes })
    model.graph.addOutput('y', { kind: 'tensor', dtype: 'float16', shape: [2] })
    model.graph.removeInitializer('w')
    await toFloat32(model)
    expect(halfTypes(model)).toEqual([])
    expect(await errorsOf(model)).toEqual([])
    for (const graph of model.graph.subgraphs()) expect(JSON.stringify(graph.outputs)).toContain('float32')
  })

  it('gives quantized weights float32 scales', async () => {
    const model = await recorded('matmul')
    await quantizeWeights(model)
    await toFloat16(model, { keepIo: false })
    await toFloat32(model)
    const node = model.graph.nodes.find(({ opType }) => opType === 'MatMulNBits')!
    expect(model.graph.initializer(node.inputs[2]!)!.dtype).toBe('float32')
    expect(halfTypes(model)).toEqual([])
  })

  it('refuses an operator that is not known, by name, and options that are wrong', async () => {
    const model = halfModel([{ opType: 'Odd', domain: 'own', inputs: ['x'], outputs: ['a'] }])
    await expect(toFloat32(model)).rejects.toThrow('"Odd" of domain "own", which is not known')
    expect(model.graph.inputs[0]!.type).toMatchObject({ dtype: 'float16' })
    await expect(toFloat32(model, { keepIo: 1 as never })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    await expect(toFloat32(model, { dtype: 'float32' } as never)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })
})

/** Seeded inputs; dimensions with names are 3. */
function feedsOf(model: OnnxModel): Feeds {
  return Object.fromEntries(
    model.graph.inputs.map(({ name: input, type }) => {
      const { dtype, shape } = type as unknown as { dtype: string; shape: (number | string | null)[] }
      const dims = shape.map((dim) => (typeof dim === 'number' ? dim : 3))
      const size = dims.reduce((product, dim) => product * dim, 1)
      if (dtype === 'float32') return [input, { data: randomFloats(dims), shape: dims }]
      if (dtype === 'bool') return [input, { data: new Uint8Array(size).fill(1), shape: dims }]
      return [
        input,
        { data: BigInt64Array.from({ length: size }, (_, at) => BigInt((at * 7) % 5) + 1n), shape: dims },
      ]
    }),
  )
}

describe.skipIf(!runtime)('in onnxruntime', () => {
  it.each(CASES)('%s computes what its rounded weights give', async (name) => {
    const model = await recorded(name)
    const feeds = feedsOf(model)
    await toFloat16(model, { block: 'minimal' })
    const { onnx: half } = await open(await serialize(model))
    await toFloat32(half!)
    expect(await outputsOf(half!, feeds)).toEqual(await outputsOf(await rounded(name, 'float16'), feeds))
  })

  /** Their float16 models of these declare wrong types, so that no runtime loads them. */
  const invalid = ['mixed', 'subgraph', 'function']
  const ofTools = ['fp16-io32', 'fp16-common', 'q4f16'].flatMap((variant) =>
    casesWith(variant)
      .filter((name) => !invalid.includes(name))
      .map((name) => [name, variant] as const),
  )
  it.each(ofTools)(
    '%s as the tool of %s has made it computes what its float32 form does',
    async (name, variant) => {
      const model = await recorded(name, variant)
      await toFloat32(model)
      expect(halfTypes(model)).toEqual([])
      const before = await recorded(name)
      const wanted = variant === 'q4f16' ? await recorded(name, 'q4-sym32') : before
      expect(await lossOf(wanted, model, feedsOf(before))).toBeLessThan(2e-3)
    },
  )
})
