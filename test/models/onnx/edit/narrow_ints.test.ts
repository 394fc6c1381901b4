/** int64 constants as int32: what follows, what stays and why, and outputs in onnxruntime where it is installed. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  Graph,
  inferShapes,
  inferTypes,
  type NewNode,
  narrowInts,
  OnnxModel,
} from '../../../../lib/onnx.js'
import { outputsOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { CASES, recorded } from '../../onnx_compress/recorded.js'

const ints = (...values: (number | bigint)[]) =>
  tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })
const int = (value: number) => ({ type: 'INT', value }) as const
const INT64 = 7

interface Given {
  readonly nodes: readonly NewNode[]
  readonly constants?: Readonly<Record<string, ReturnType<typeof ints>>>
  readonly shape?: readonly (number | string)[]
  readonly output?: 'float32' | 'int64' | 'bool'
  readonly opset?: number
}

/** A model of a float32 input `x` and an output `y`. */
function modelOf({
  nodes,
  constants = {},
  shape = [4, 6],
  output = 'float32',
  opset = 17,
}: Given): OnnxModel {
  const model = OnnxModel.create({ opset })
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape })
  for (const [name, value] of Object.entries(constants)) model.graph.setInitializer(name, value)
  for (const node of nodes) model.graph.addNode(node)
  model.graph.addOutput('y', { kind: 'tensor', dtype: output })
  inferShapes(model)
  return model
}

const dtypesOf = (model: OnnxModel): Record<string, unknown> =>
  Object.fromEntries([...inferTypes(model)].map(([name, type]) => [name, (type as { dtype?: string }).dtype]))

async function errorsOf(model: OnnxModel): Promise<unknown[]> {
  const findings = await check(await serialize(model), { level: 'strict' })
  return findings.filter(({ severity }) => severity === 'error')
}

const slice = (ends = 'ends', data = 'x', y = 'y'): NewNode => ({
  opType: 'Slice',
  inputs: [data, 'starts', ends, 'axes'],
  outputs: [y],
})

/** Models whose constants all become int32. */
const NARROWED: readonly (readonly [name: string, given: Given])[] = [
  [
    'indices of Gather, with negative ones',
    { nodes: [{ opType: 'Gather', inputs: ['x', 'at'], outputs: ['y'] }], constants: { at: ints(3, -1, 0) } },
  ],
  [
    'starts, ends and axes of Slice',
    { nodes: [slice()], constants: { starts: ints(1), ends: ints(-1), axes: ints(1) } },
  ],
  [
    'the ends of Slice beyond int32, of known dimensions',
    { nodes: [slice()], constants: { starts: ints(0), ends: ints(2n ** 63n - 1n), axes: ints(1) } },
  ],
  [
    'a Slice backwards to the start',
    {
      nodes: [{ opType: 'Slice', inputs: ['x', 'starts', 'ends', 'axes', 'steps'], outputs: ['y'] }],
      constants: { starts: ints(2n ** 40n), ends: ints(-(2n ** 63n)), axes: ints(1), steps: ints(-2) },
    },
  ],
  [
    'what nodes make of constants, attributes of Constant and ConstantOfShape, and Casts',
    {
      nodes: [
        { opType: 'Constant', outputs: ['c'], attributes: { value_ints: { type: 'INTS', value: [1, 3] } } },
        { opType: 'Constant', outputs: ['one'], attributes: { value: { type: 'TENSOR', value: ints(1) } } },
        {
          opType: 'ConstantOfShape',
          inputs: ['n'],
          outputs: ['two'],
          attributes: { value: { type: 'TENSOR', value: ints(2) } },
        },
        {
          opType: 'Concat',
          inputs: ['c', 'one', 'two', 'at'],
          outputs: ['all'],
          attributes: { axis: int(0) },
        },
        { opType: 'Equal', inputs: ['all', 'one'], outputs: ['is'] },
        { opType: 'Cast', inputs: ['is'], outputs: ['flags'], attributes: { to: int(INT64) } },
        { opType: 'Where', inputs: ['is', 'all', 'flags'], outputs: ['indices'] },
        { opType: 'Gather', inputs: ['x', 'indices'], outputs: ['rows'] },
        { opType: 'Cast', inputs: ['indices'], outputs: ['f'], attributes: { to: int(1) } },
        { opType: 'ReduceSum', inputs: ['f'], outputs: ['sum'] },
        { opType: 'Add', inputs: ['rows', 'sum'], outputs: ['y'] },
      ],
      constants: { at: ints(0, 2), n: ints(1) },
    },
  ],
]

/** Models of which a constant stays, with the reason. */
const STAYS: readonly (readonly [name: string, given: Given, constant: string, reason: string])[] = [
  [
    'a shape of Reshape',
    { nodes: [{ opType: 'Reshape', inputs: ['x', 's'], outputs: ['y'] }], constants: { s: ints(6, 4) } },
    's',
    'Reshape needs int64',
  ],
  [
    'the ends of Slice beyond int32, of an unknown dimension',
    {
      nodes: [slice()],
      constants: { starts: ints(0), ends: ints(2n ** 31n), axes: ints(0) },
      shape: ['n', 6],
    },
    'axes',
    'its numbers are 2147483648 to 2147483648',
  ],
  [
    'an end of Slice that also gives an index',
    {
      nodes: [
        slice('big', 'x', 's'),
        { opType: 'Equal', inputs: ['big', 'big'], outputs: ['is'] },
        { opType: 'Where', inputs: ['is', 's', 's'], outputs: ['y'] },
      ],
      constants: { starts: ints(0), big: ints(2n ** 31n), axes: ints(0) },
    },
    'big',
    'its numbers are 2147483648 to 2147483648',
  ],
  [
    'a factor',
    {
      nodes: [
        { opType: 'Mul', inputs: ['at', 'at'], outputs: ['square'] },
        { opType: 'Gather', inputs: ['x', 'square'], outputs: ['y'] },
      ],
      constants: { at: ints(1) },
    },
    'at',
    'Mul takes or gives it',
  ],
  [
    'an index beside a dimension',
    {
      nodes: [
        { opType: 'Shape', inputs: ['x'], outputs: ['dims'] },
        { opType: 'Concat', inputs: ['dims', 'at'], outputs: ['all'], attributes: { axis: int(0) } },
        { opType: 'Slice', inputs: ['all', 'at', 'one'], outputs: ['s'] },
        { opType: 'Cast', inputs: ['s'], outputs: ['y'], attributes: { to: int(1) } },
      ],
      constants: { at: ints(0), one: ints(1) },
    },
    'one',
    'Shape takes or gives it',
  ],
  [
    'an index before a dimension',
    {
      nodes: [
        { opType: 'Shape', inputs: ['x'], outputs: ['dims'] },
        { opType: 'Concat', inputs: ['at', 'dims'], outputs: ['all'], attributes: { axis: int(0) } },
        { opType: 'Cast', inputs: ['all'], outputs: ['y'], attributes: { to: int(1) } },
      ],
      constants: { at: ints(0) },
    },
    'at',
    'Shape takes or gives it',
  ],
  [
    'what is compared with a Cast of a product',
    {
      nodes: [
        { opType: 'Mul', inputs: ['big', 'big'], outputs: ['square'] },
        { opType: 'Cast', inputs: ['square'], outputs: ['same'], attributes: { to: int(INT64) } },
        { opType: 'Equal', inputs: ['limit', 'same'], outputs: ['y'] },
      ],
      constants: { big: ints(65536), limit: ints(0) },
      output: 'bool',
    },
    'limit',
    'Mul takes or gives it',
  ],
  [
    'an output',
    {
      nodes: [{ opType: 'Identity', inputs: ['c'], outputs: ['y'] }],
      constants: { c: ints(5) },
      output: 'int64',
    },
    'c',
    'it is an output of a graph',
  ],
  [
    'a number cast from float',
    {
      nodes: [
        { opType: 'Cast', inputs: ['x'], outputs: ['i'], attributes: { to: int(INT64) } },
        { opType: 'Equal', inputs: ['i', 'c'], outputs: ['y'] },
      ],
      constants: { c: ints(5) },
      output: 'bool',
    },
    'c',
    'it is cast from other numbers',
  ],
]

describe('narrowInts', () => {
  it.each(NARROWED)('narrows %s', async (_, given) => {
    const model = modelOf(given)
    const before = dtypesOf(model)
    const { stays } = await narrowInts(model)
    const after = dtypesOf(model)
    // The shape of a ConstantOfShape is int64 by its operator.
    const fixed = new Set(stays.map(({ name }) => name))
    for (const [name, dtype] of Object.entries(before))
      expect([name, after[name]]).toEqual([name, dtype === 'int64' && !fixed.has(name) ? 'int32' : dtype])
    expect(await errorsOf(model)).toEqual([])
    const again = (await open(await serialize(model))).onnx!
    expect((await narrowInts(again)).narrowed).toEqual([])
  })

  it.each(STAYS)('keeps %s, with the reason', async (_, given, constant, reason) => {
    const model = modelOf(given)
    const { stays } = await narrowInts(model)
    expect(stays).toContainEqual({ name: constant, reason })
    expect(dtypesOf(model)[constant]).toBe('int64')
    expect(await errorsOf(model)).toEqual([])
  })

  it.each([
    [2n ** 31n - 1n, 'int32'],
    [2n ** 31n, 'int64'],
    [-(2n ** 31n), 'int32'],
    [-(2n ** 31n) - 1n, 'int64'],
  ])('knows where int32 ends: %s', async (value, dtype) => {
    const nodes = [
      { opType: 'Equal', inputs: ['c', 'c'], outputs: ['e'] },
      { opType: 'Where', inputs: ['e', 'x', 'x'], outputs: ['y'] },
    ]
    const model = modelOf({ nodes, constants: { c: ints(value) } })
    await narrowInts(model)
    expect(dtypesOf(model).c).toBe(dtype)
    const stored = model.graph.initializer('c')!
    expect(stored.kind === 'dense' && BigInt(stored.at(0) as number)).toBe(value)
  })

  it('follows values into branches, and keeps what the branches give', async () => {
    const branch = (name: string, constant: string): Graph => {
      const graph = Graph.create(name)
      graph.addNode({ opType: 'Gather', inputs: ['x', constant], outputs: [`${name}_y`] })
      graph.addOutput(`${name}_y`, { kind: 'tensor', dtype: 'float32', shape: [1, 6] })
      return graph
    }
    const model = modelOf({
      nodes: [{ opType: 'Identity', inputs: ['x'], outputs: ['y'] }],
      constants: { at: ints(1), own: ints(2) },
    })
    model.graph.addInput('cond', { kind: 'tensor', dtype: 'bool', shape: [] })
    const attributes = {
      then_branch: { type: 'GRAPH', value: branch('a', 'at') },
      else_branch: { type: 'GRAPH', value: branch('b', 'own') },
    } as const
    model.graph.addNode({ opType: 'If', inputs: ['cond'], outputs: ['z'], attributes })
    inferShapes(model)
    expect((await narrowInts(model)).narrowed).toEqual(['at', 'own'])
    expect(await errorsOf(model)).toEqual([])
  })

  it('keeps what functions and operators that are not known take', async () => {
    const model = modelOf({
      nodes: [
        { opType: 'pick', domain: 'own', inputs: ['x', 'at'], outputs: ['p'] },
        { opType: 'Gather', inputs: ['p', 'at'], outputs: ['y'] },
      ],
      constants: { at: ints(1) },
    })
    addFunction(model, {
      domain: 'own',
      name: 'pick',
      inputs: ['v', 'i'],
      outputs: ['w'],
      opsetImports: { '': 17 },
      nodes: [{ opType: 'Gather', inputs: ['v', 'i'], outputs: ['w'] }],
    })
    expect(await narrowInts(model)).toEqual({
      narrowed: [],
      stays: [{ name: 'at', reason: 'pick takes or gives it' }],
    })
    await expect(narrowInts(model, { only: 1 } as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('keeps constants that it cannot read, and inputs with a default', async () => {
    const model = modelOf({
      nodes: [{ opType: 'Gather', inputs: ['x', 'at'], outputs: ['y'] }],
      constants: { at: ints(1) },
    })
    model.graph.addInput('at', { kind: 'tensor', dtype: 'int64', shape: [1] })
    expect((await narrowInts(model)).stays).toEqual([{ name: 'at', reason: 'it is an input of a graph' }])
  })

  it('declares the new types', async () => {
    const model = modelOf({
      nodes: [
        { opType: 'Identity', inputs: ['at'], outputs: ['i'] },
        { opType: 'Gather', inputs: ['x', 'i'], outputs: ['y'] },
      ],
      constants: { at: ints(1) },
    })
    model.graph.setType('i', { kind: 'tensor', dtype: 'int64', shape: [1] })
    await narrowInts(model)
    expect(model.graph.typeOf('i')).toMatchObject({ dtype: 'int32', shape: [1] })
  })
})

describe.skipIf(!runtime)('in onnxruntime', () => {
  it.each([...NARROWED, ...STAYS.map(([name, given]) => [name, given] as const)])(
    '%s gives equal outputs',
    async (_, given) => {
      const [before, after] = [modelOf(given), modelOf(given)]
      await narrowInts(after)
      const shape = (given.shape ?? [4, 6]).map((dim) => (typeof dim === 'number' ? dim : 4))
      const feeds = { x: { data: randomFloats(shape), shape } }
      expect(await outputsOf(after, feeds)).toEqual(await outputsOf(before, feeds))
    },
  )

  it.each(CASES)('the recorded model %s loads, and its types hold', async (name) => {
    const model = await recorded(name)
    await narrowInts(model)
    expect(await errorsOf(model)).toEqual([])
    await runtime!.InferenceSession.create(await serialize(model))
  })
})
