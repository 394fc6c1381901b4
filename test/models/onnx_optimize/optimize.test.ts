/** Passes of `optimize`: what each changes, what it has to leave, and that a second run changes nothing. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize, stringTensor, type Tensor, tensor } from '../../../lib/index.js'
import {
  addFunction,
  any,
  Graph,
  type NewNode,
  node,
  OnnxModel,
  type OptimizeOptions,
  type OptimizePass,
  optimize,
  type RewriteValue,
  type RuleContext,
  rule,
  type ValueType,
} from '../../../lib/onnx.js'
import { type Bytes, field, graphProto, join, modelProto, nodeProto } from '../../formats/onnx/onnx_bytes.js'
import { modelOf as textModel, textsOf } from './model_text.js'

const float = (...shape: (number | string | null)[]): ValueType => ({
  kind: 'tensor',
  dtype: 'float32',
  shape,
})
const floats = (...values: number[]) => tensor(Float32Array.from(values), { shape: [values.length] })
const ints = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })
const truth = (value: boolean) => tensor(value, { dtype: 'bool' })
const matrix = (rows: number, columns: number) =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, at) => at),
    { shape: [rows, columns] },
  )

interface Parts {
  readonly inputs?: Readonly<Record<string, ValueType>>
  readonly weights?: Readonly<Record<string, Tensor>>
  readonly nodes: readonly NewNode[]
  readonly outputs: readonly string[]
}

function fill(graph: Graph, { inputs = {}, weights = {}, nodes, outputs }: Parts): Graph {
  for (const [name, type] of Object.entries(inputs)) graph.addInput(name, type)
  for (const [name, value] of Object.entries(weights)) graph.setInitializer(name, value)
  for (const node of nodes) graph.addNode(node)
  for (const name of outputs) graph.addOutput(name, float(...Array<null>(2).fill(null)))
  return graph
}

/** A model with an input `x` of [2, 4] unless others are given. */
function modelOf(parts: Parts, opset = 21): OnnxModel {
  const model = OnnxModel.create({ opset })
  fill(model.graph, { inputs: { x: float(2, 4) }, ...parts })
  return model
}

const body = (parts: Parts): Graph => fill(Graph.create('body'), parts)
const branch = (parts: Parts) => ({ type: 'GRAPH', value: body(parts) }) as const

/** Runs passes, and again on the saved result, where they find nothing. Sizes of files are compared for all but `grows`. */
async function optimized(model: OnnxModel, only: readonly OptimizePass[], grows = false): Promise<OnnxModel> {
  const before = (await serialize(model)).byteLength
  await optimize(model, { only })
  const bytes = await serialize(model)
  if (!grows) expect(bytes.byteLength).toBeLessThanOrEqual(before)
  expect((await check(bytes)).filter(({ severity }) => severity === 'error')).toEqual([])
  const again = (await open(bytes)).onnx!
  const changes = await optimize(again, { only })
  expect(changes.filter((each) => each.changes > 0)).toEqual([])
  expect(again.isChanged).toBe(false)
  return again
}

const textOf = ({ nodes }: Graph): string[] =>
  nodes.map(({ opType, inputs, outputs }) => `${outputs} = ${opType}(${inputs})`)

describe('optimize', () => {
  it('runs all passes but those on request, in the documented order', async () => {
    const model = modelOf({ nodes: [{ opType: 'Relu', inputs: ['x'], outputs: ['y'] }], outputs: ['y'] })
    const changes = await optimize(model)
    expect(changes.map(({ pass }) => pass)).toEqual([
      ...['sort', 'inline-functions', 'remove-unused-functions', 'lift-constants', 'lift-initializers'],
      ...['remove-default-attributes', 'deduplicate-initializers', 'remove-identity', 'remove-dropout'],
      ...['remove-no-ops', 'merge-neighbours', 'inline-branches', 'merge-equal-nodes', 'simplify-shapes'],
      ...['fold-shapes', 'fold-weights', 'remove-unused', 'remove-optional-outputs'],
      'remove-unused-opsets',
    ])
    expect(changes.every((each) => each.changes === 0)).toBe(true)
  })

  it('repeats passes for which later ones make work', async () => {
    const model = modelOf({
      weights: { w: matrix(4, 2), v: matrix(4, 2) },
      nodes: [
        { opType: 'Transpose', inputs: ['w'], outputs: ['a'] },
        { opType: 'Transpose', inputs: ['v'], outputs: ['b'] },
        {
          opType: 'Gemm',
          inputs: ['x', 'a'],
          outputs: ['p'],
          attributes: { transB: { type: 'INT', value: 1 } },
        },
        {
          opType: 'Gemm',
          inputs: ['x', 'b'],
          outputs: ['q'],
          attributes: { transB: { type: 'INT', value: 1 } },
        },
        { opType: 'Add', inputs: ['p', 'q'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    await optimize(model)
    expect(textOf(model.graph)).toEqual(['p = Gemm(x,a)', 'y = Add(p,p)'])
    expect([...model.graph.initializers()].map(({ name, shape }) => [name, shape])).toEqual([['a', [2, 4]]])
    expect((await optimize(model)).every((each) => each.changes === 0)).toBe(true)
  })

  it.each<[OptimizeOptions, string, string]>([
    [
      { only: ['fold-shape' as OptimizePass] },
      'ERR_ARGUMENT',
      'optimize has no pass "fold-shape"; did you mean',
    ],
    [{ only: 'sort' as never }, 'ERR_ARGUMENT', 'only of optimize'],
    [{ all: true } as never, 'ERR_ARGUMENT', 'all'],
    [{ fuse: 'yes' as never }, 'ERR_ARGUMENT', 'fuse is "yes"; it must be true or false'],
    [{ maxGrowth: -1 }, 'ERR_ARGUMENT', 'maxGrowth is -1; it must be a number of bytes'],
    [{ with: ['neg-neg' as never] }, 'ERR_ARGUMENT', 'optimize got "neg-neg" among its rules'],
    [
      { with: [rule({ name: 'sort', match: node('Relu'), replace: () => undefined })] },
      'ERR_ARGUMENT',
      'optimize has a pass "sort"',
    ],
    [{ signal: AbortSignal.abort() }, 'ERR_ABORTED', ''],
  ])('refuses %o', async (options, code, message) => {
    const model = modelOf({ nodes: [{ opType: 'Relu', inputs: ['x'], outputs: ['y'] }], outputs: ['y'] })
    await expect(optimize(model, options)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  })

  it('runs rules of the caller beside its own, those that round only with fuse', async () => {
    const nodes = 'a = Neg(x); b = Identity(a); c = Neg(b); y = Exp(c)'
    const text = { inputs: { x: 'float32 2' }, nodes }
    const match = node('Exp', [any('x')])
    const replace = ({ x, make }: { x: RewriteValue } & RuleContext) => make('Relu', [make('Abs', [x])])
    const exact = rule({ name: 'exact', match, replace })
    const rounding = rule({ name: 'rounding', match, replace, rounding: true })
    const model = textModel(text)
    const changes = await optimize(model, { with: [exact] })
    expect(textsOf(model.graph)).toEqual(['y_1 = Abs(x)', 'y = Relu(y_1)'])
    expect(changes.at(-1)).toEqual({ pass: 'exact', changes: 1, nodes: ['y'] })
    expect(changes.find(({ pass }) => pass === 'remove-identity')).toMatchObject({ changes: 1, nodes: ['b'] })
    const left = textModel(text)
    await optimize(left, { with: [rounding] })
    expect(textsOf(left.graph)).toEqual(['y = Exp(x)'])
    await optimize(left, { with: [rounding], fuse: true })
    expect(textsOf(left.graph)).toHaveLength(2)
  })

  it('lets constants grow as far as the caller allows', async () => {
    const text = {
      inputs: { x: 'float32 N 400' },
      weights: { s: ints(1, 400) },
      nodes: 'z = ConstantOfShape(s); y = Add(x, z)',
    }
    for (const [maxGrowth, left] of [
      [0, 2],
      [1000, 2],
      [2000, 1],
    ] as const) {
      const model = textModel(text)
      await optimize(model, { maxGrowth })
      expect(textsOf(model.graph)).toHaveLength(left)
    }
  })

  it('refuses training graphs and cycles', async () => {
    using training = await open(modelProto({}, field(20, field(1, graphProto({})))))
    await expect(optimize(training.onnx!)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    const nodes = [nodeProto({ inputs: ['b'], outputs: ['a'] }), nodeProto({ inputs: ['a'], outputs: ['b'] })]
    using cycle = await open(modelProto({ nodes }))
    await expect(optimize(cycle.onnx!)).rejects.toMatchObject({ code: 'ERR_GRAPH' })
  })
})

describe('remove-identity', () => {
  it('removes chains, also those that subgraphs use, and gives outputs to the producer', async () => {
    const model = modelOf({
      inputs: { x: float(2, 4), c: { kind: 'tensor', dtype: 'bool', shape: [] } },
      nodes: [
        { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
        { opType: 'Identity', inputs: ['a'], outputs: ['b'] },
        { opType: 'Identity', inputs: ['b'], outputs: ['d'] },
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['e'],
          attributes: {
            then_branch: branch({
              nodes: [{ opType: 'Neg', inputs: ['d'], outputs: ['t'] }],
              outputs: ['t'],
            }),
            else_branch: branch({
              nodes: [{ opType: 'Abs', inputs: ['b'], outputs: ['u'] }],
              outputs: ['u'],
            }),
          },
        },
        { opType: 'Identity', inputs: ['d'], outputs: ['y'] },
        { opType: 'Identity', inputs: ['e'], outputs: ['z'] },
      ],
      outputs: ['y', 'z'],
    })
    model.graph.setType('b', float(2, 4))
    const { graph } = await optimized(model, ['remove-identity'])
    expect(textOf(graph)).toEqual(['y = Relu(x)', 'z = If(c)'])
    expect([...graph.subgraphs()].flatMap(textOf)).toEqual(['t = Neg(y)', 'u = Abs(y)'])
    expect(graph.valueInfo).toEqual([])
  })

  it('keeps it between an input or a weight and an output, for a second output, and around a hiding name', async () => {
    const inside = body({
      inputs: {
        i: { kind: 'tensor', dtype: 'int64', shape: [] },
        k: { kind: 'tensor', dtype: 'bool', shape: [] },
      },
      nodes: [
        { opType: 'Identity', inputs: ['k'], outputs: ['l'] },
        { opType: 'Identity', inputs: ['a'], outputs: ['outer'] },
        { opType: 'Neg', inputs: ['copy'], outputs: ['x2'] },
      ],
      outputs: ['l', 'outer'],
    })
    const model = modelOf({
      weights: { w: floats(1) },
      nodes: [
        { opType: 'Identity', inputs: ['x'], outputs: ['p'] },
        { opType: 'Identity', inputs: ['w'], outputs: ['q'] },
        { opType: 'Relu', inputs: ['x'], outputs: ['x2'] },
        { opType: 'Identity', inputs: ['x2'], outputs: ['copy'] },
        { opType: 'Abs', inputs: ['x'], outputs: ['a'] },
        { opType: 'Identity', inputs: ['a'], outputs: ['r'] },
        { opType: 'Identity', inputs: ['a'], outputs: ['s'] },
        {
          opType: 'Loop',
          inputs: ['', ''],
          outputs: ['y'],
          attributes: { body: { type: 'GRAPH', value: inside } },
        },
      ],
      outputs: ['p', 'q', 'r', 's', 'y'],
    })
    await optimize(model, { only: ['remove-identity'] })
    const { graph } = model
    expect(textOf(graph)).toEqual([
      ...['p = Identity(x)', 'q = Identity(w)', 'x2 = Relu(x)', 'copy = Identity(x2)', 'r = Abs(x)'],
      ...['s = Identity(r)', 'y = Loop(,)'],
    ])
    expect([...graph.subgraphs()].flatMap(textOf)).toEqual([
      ...['l = Identity(k)', 'outer = Identity(r)', 'x2 = Neg(copy)'],
    ])
  })
})

describe('remove-dropout', () => {
  const dropout = (
    more: Partial<NewNode> = {},
    weights: Parts['weights'] = {},
    outputs = ['y'],
    opset = 21,
  ) =>
    modelOf(
      {
        weights,
        nodes: [
          { opType: 'Dropout', inputs: ['x'], outputs: ['a', 'mask'], ...more },
          { opType: 'Relu', inputs: ['a'], outputs: ['y'] },
        ],
        outputs,
      },
      opset,
    )
  const yes = { t: truth(true) }
  const no = { t: truth(false) }
  const isTest = { is_test: { type: 'INT', value: 1 } } as const

  it.each<[string, OnnxModel, boolean]>([
    ['without an input for training', dropout(), true],
    ['with a constant false', dropout({ inputs: ['x', '', 't'] }, no), true],
    ['with a constant true', dropout({ inputs: ['x', '', 't'] }, yes), false],
    ['with a mask that is an output', dropout({}, {}, ['y', 'mask']), false],
    ['of operator set 10', dropout({}, {}, ['y'], 10), true],
    ['of operator set 6 in training', dropout({}, {}, ['y'], 6), false],
    ['of operator set 6 in test', dropout({ attributes: isTest }, {}, ['y'], 6), true],
  ])('%s', async (_, model, isRemoved) => {
    const { graph } = await optimized(model, ['remove-dropout'])
    expect(graph.nodes.some(({ opType }) => opType === 'Dropout')).toBe(!isRemoved)
  })

  it('stays where a caller says whether the model is in training, and where the mask is used', async () => {
    const called = dropout({ inputs: ['x', '', 't'] }, no)
    called.graph.addInput('t', { kind: 'tensor', dtype: 'bool', shape: [] })
    expect((await optimized(called, ['remove-dropout'])).graph.nodes).toHaveLength(2)
    const masked = dropout()
    masked.graph.addNode({ opType: 'Not', inputs: ['mask'], outputs: ['m'] })
    expect((await optimized(masked, ['remove-dropout'])).graph.nodes).toHaveLength(3)
  })
})

describe('merge-equal-nodes', () => {
  const alpha = (value: number) => ({ alpha: { type: 'FLOAT', value } }) as const

  it('merges cascades, by inputs and attributes', async () => {
    const model = modelOf({
      nodes: [
        { opType: 'LeakyRelu', inputs: ['x'], outputs: ['a'], attributes: alpha(0.5) },
        { opType: 'LeakyRelu', inputs: ['x'], outputs: ['b'], attributes: alpha(0.5) },
        { opType: 'LeakyRelu', inputs: ['x'], outputs: ['c'], attributes: alpha(0.25) },
        { opType: 'Neg', inputs: ['a'], outputs: ['d'] },
        { opType: 'Neg', inputs: ['b'], outputs: ['e'] },
        { opType: 'Sum', inputs: ['c', 'd', 'e'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    model.graph.setType('e', float(2, 4))
    const { graph } = await optimized(model, ['merge-equal-nodes'])
    expect(textOf(graph)).toEqual(['a = LeakyRelu(x)', 'c = LeakyRelu(x)', 'd = Neg(a)', 'y = Sum(c,d,d)'])
    expect(graph.valueInfo).toEqual([])
  })

  it('keeps random nodes, nodes with other outputs, and unknown operators', async () => {
    const twice = (opType: string, more: Partial<NewNode> = {}): NewNode[] =>
      [1, 2].map((at) => ({ opType, inputs: ['x'], outputs: [`${opType}${at}`], ...more }))
    const random = { shape: { type: 'INTS', value: [2, 4] }, seed: { type: 'FLOAT', value: 1 } } as const
    const nodes = [
      ...twice('RandomNormal', { inputs: [], attributes: random }),
      ...twice('RandomUniformLike'),
      ...twice('Bernoulli'),
      ...twice('Dropout'),
      ...twice('Mystery', { domain: 'my.own' }),
      { opType: 'MaxPool', inputs: ['x'], outputs: ['m'] },
      { opType: 'MaxPool', inputs: ['x'], outputs: ['n', 'indices'] },
      { opType: 'Neg', inputs: ['x'], outputs: ['y'] },
    ]
    const model = modelOf({ nodes, outputs: ['y'] })
    model.setOpsetImport('my.own', 1)
    expect((await optimized(model, ['merge-equal-nodes'])).graph.nodes).toHaveLength(nodes.length)
  })

  it('gives the second of two equal outputs its name by an Identity', async () => {
    const nodes = ['y', 'z'].map((name) => ({ opType: 'Exp', inputs: ['x'], outputs: [name] }))
    const { graph } = await optimized(modelOf({ nodes, outputs: ['y', 'z'] }), ['merge-equal-nodes'], true)
    expect(textOf(graph)).toEqual(['y = Exp(x)', 'z = Identity(y)'])
  })

  it('merges operands of either order, and finds equal nodes among many users of a value', async () => {
    const adds = [
      ['x', 'z'],
      ['z', 'x'],
    ].map((inputs, at) => ({ opType: 'Add', inputs, outputs: [`s${at}`] }))
    const many = Array.from({ length: 40 }, (_, at) => ({
      opType: 'LeakyRelu',
      inputs: ['x'],
      outputs: [`r${at}`],
      attributes: { alpha: { type: 'FLOAT', value: (at % 20) + 2 } as const },
    }))
    const names = [...adds, ...many].map(({ outputs: [name] }) => name!)
    const sum = { opType: 'Sum', inputs: names, outputs: ['y'] }
    const inputs = { x: float(2, 4), z: float(2, 4) }
    const model = modelOf({ inputs, nodes: [...adds, ...many, sum], outputs: ['y'] })
    const { graph } = await optimized(model, ['merge-equal-nodes'])
    expect(graph.nodes.map(({ opType }) => opType).filter((opType) => opType === 'Add')).toHaveLength(1)
    expect(graph.nodes).toHaveLength(1 + 20 + 1)
  })

  it('does not lead into a subgraph that defines the name itself', async () => {
    const inside = branch({
      nodes: [
        { opType: 'Neg', inputs: ['b'], outputs: ['a'] },
        { opType: 'Abs', inputs: ['a'], outputs: ['t'] },
      ],
      outputs: ['t'],
    })
    const model = modelOf({
      inputs: { x: float(2, 4), c: { kind: 'tensor', dtype: 'bool', shape: [] } },
      nodes: [
        { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
        { opType: 'Relu', inputs: ['x'], outputs: ['b'] },
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['y'],
          attributes: { then_branch: inside, else_branch: inside },
        },
        { opType: 'Add', inputs: ['a', 'b'], outputs: ['z'] },
      ],
      outputs: ['y', 'z'],
    })
    await optimize(model, { only: ['merge-equal-nodes'] })
    expect(textOf(model.graph)).toHaveLength(4)
  })
})

describe('fold-shapes', () => {
  it('replaces arithmetic of a fixed shape by one initializer', async () => {
    const model = modelOf({
      weights: { one: ints(1), last: ints(-1) },
      nodes: [
        { opType: 'Shape', inputs: ['x'], outputs: ['s'] },
        { opType: 'Gather', inputs: ['s', 'one'], outputs: ['g'] },
        { opType: 'Mul', inputs: ['g', 'g'], outputs: ['m'] },
        {
          opType: 'Concat',
          inputs: ['m', 'last'],
          outputs: ['t'],
          attributes: { axis: { type: 'INT', value: 0 } },
        },
        { opType: 'Expand', inputs: ['x', 'unused'], outputs: ['e'] },
        { opType: 'Reshape', inputs: ['x', 't'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    model.graph.removeNode(model.graph.nodes[4]!)
    model.graph.setInitializer('last', ints(-1))
    const { graph } = await optimized(model, ['fold-shapes', 'remove-unused'])
    expect(textOf(graph)).toEqual(['y = Reshape(x,t)'])
    const target = graph.initializer('t')!
    expect(target.kind === 'dense' && (await target.toTypedArray())).toEqual(BigInt64Array.of(16n, -1n))
  })

  it.each<[string, Partial<Parts>]>([
    ['of symbolic extents', { inputs: { x: float('n', 4) } }],
    [
      'of an initializer that a caller may replace',
      { inputs: { x: float('n', 4), one: { kind: 'tensor', dtype: 'int64', shape: [1] } } },
    ],
  ])('keeps arithmetic %s', async (_, parts) => {
    const model = modelOf({
      weights: { one: ints(0) },
      nodes: [
        { opType: 'Shape', inputs: ['x'], outputs: ['s'] },
        { opType: 'Gather', inputs: ['s', 'one'], outputs: ['t'] },
        { opType: 'Expand', inputs: ['x', 't'], outputs: ['y'] },
      ],
      outputs: ['y'],
      ...parts,
    })
    const { graph } = await optimized(model, ['fold-shapes'])
    expect(graph.nodes.map(({ opType }) => opType)).toContain('Gather')
  })

  const INT_CODES = { int32: 6, int64: 7 } as const
  const cast = (from: string, to: keyof typeof INT_CODES | 'uint8', made: string): NewNode => ({
    opType: 'Cast',
    inputs: [from],
    outputs: [made],
    attributes: { to: { type: 'INT', value: to === 'uint8' ? 2 : INT_CODES[to] } },
  })

  it.each<[string, number, 'int32' | 'int64']>([
    ['Add', 2147483647, 'int32'],
    ['Mul', 1 << 30, 'int32'],
    ['Sub', -2147483648, 'int32'],
    ['Add', 2147483644, 'int32'],
    ['Add', 2147483647, 'int64'],
    ['Add', 2 ** 53, 'int64'],
  ])('folds %s of %d and a shape in %s, which wraps', async (opType, operand, dtype) => {
    const value = dtype === 'int32' ? Int32Array.of(operand) : BigInt64Array.of(BigInt(operand))
    const model = modelOf({
      inputs: { x: float(2, 3) },
      weights: { k: tensor(value, { shape: [1] }) },
      nodes: [
        { opType: 'Shape', inputs: ['x'], outputs: ['s'] },
        cast('s', dtype, 'a'),
        { opType, inputs: ['a', 'k'], outputs: ['b'] },
        cast('b', 'int64', 'c'),
        { opType: 'Expand', inputs: ['x', 'c'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    await optimize(model, { only: ['fold-shapes'] })
    expect(model.graph.nodes.map(({ opType: each }) => each)).toEqual(['Expand'])
    const [one, other] = [2n, 3n].map((extent) => {
      const exact = {
        Add: extent + BigInt(operand),
        Sub: extent - BigInt(operand),
        Mul: extent * BigInt(operand),
      }
      return BigInt.asIntN(dtype === 'int32' ? 32 : 64, exact[opType as 'Add'])
    })
    const made = model.graph.initializer('c')!
    expect(made.kind === 'dense' && (await made.toTypedArray())).toEqual(BigInt64Array.of(one!, other!))
  })

  it.each<[string, readonly NewNode[]]>([
    ['a Cast of a number that int32 lacks', [cast('far', 'int32', 'r'), cast('r', 'int64', 'c')]],
    [
      'a product of int32',
      [{ opType: 'ReduceProd', inputs: ['narrow'], outputs: ['r'] }, cast('r', 'int64', 'c')],
    ],
    [
      'a product of three numbers, which engines multiply in any order',
      [{ opType: 'ReduceProd', inputs: ['odd'], outputs: ['r'] }, cast('r', 'int64', 'c')],
    ],
    [
      'a quotient of 0',
      [{ opType: 'Div', inputs: ['narrow', 'zero'], outputs: ['r'] }, cast('r', 'int64', 'c')],
    ],
  ])('keeps %s', async (_, nodes) => {
    const model = modelOf({
      weights: {
        far: floats(2 ** 32),
        zero: tensor(Int32Array.of(0), { shape: [1] }),
        narrow: tensor(Int32Array.of(65536, 65537), { shape: [2] }),
        odd: floats(4097, 4097, 3),
      },
      nodes: [
        ...nodes,
        { opType: 'Identity', inputs: ['c'], outputs: ['t'] },
        { opType: 'Expand', inputs: ['x', 't'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    const before = textOf(model.graph)
    await optimize(model, { only: ['fold-shapes'] })
    expect(textOf(model.graph)).toEqual(before)
  })

  it('folds an integer of 0 without a sign', async () => {
    const model = modelOf({
      weights: { one: ints(-1), two: ints(2) },
      nodes: [
        { opType: 'Div', inputs: ['one', 'two'], outputs: ['q'] },
        { ...cast('q', 'int64', 'f'), attributes: { to: { type: 'INT', value: 1 } } },
        { opType: 'Div', inputs: ['x', 'f'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    await optimize(model, { only: ['fold-shapes'] })
    const found = model.graph.initializer('f')
    expect(found?.kind === 'dense' && (await found.toTypedArray())).toEqual(Float32Array.of(0))
  })

  it('folds products that their type holds', async () => {
    const model = modelOf({
      weights: { narrow: tensor(Int32Array.of(1024, -3), { shape: [2] }), even: floats(4096, 4096) },
      nodes: [
        { opType: 'ReduceProd', inputs: ['narrow'], outputs: ['r'] },
        cast('r', 'int64', 't'),
        { opType: 'Expand', inputs: ['x', 't'], outputs: ['y'] },
        { opType: 'ReduceProd', inputs: ['even'], outputs: ['q'] },
        cast('q', 'int64', 'u'),
        { opType: 'Expand', inputs: ['x', 'u'], outputs: ['z'] },
      ],
      outputs: ['y', 'z'],
    })
    await optimize(model, { only: ['fold-shapes'] })
    expect(textOf(model.graph)).toEqual(['y = Expand(x,t)', 'z = Expand(x,u)'])
  })

  it('does not believe declared types of intermediate values, and leaves long results', async () => {
    const model = modelOf({
      inputs: { x: float('n', 4) },
      weights: {
        zero: tensor(0n, { dtype: 'int64' }),
        hundred: tensor(100n, { dtype: 'int64' }),
        step: tensor(1n, { dtype: 'int64' }),
      },
      nodes: [
        { opType: 'Relu', inputs: ['x'], outputs: ['a'] },
        { opType: 'Shape', inputs: ['a'], outputs: ['s'] },
        { opType: 'Expand', inputs: ['x', 's'], outputs: ['y'] },
        { opType: 'Range', inputs: ['zero', 'hundred', 'step'], outputs: ['r'] },
        { opType: 'Add', inputs: ['r', 'r'], outputs: ['z'] },
      ],
      outputs: ['y', 'z'],
    })
    model.graph.setType('a', float(3, 4))
    const { graph } = await optimized(model, ['fold-shapes'])
    expect(graph.nodes.map(({ opType }) => opType)).toEqual(['Relu', 'Shape', 'Expand', 'Range', 'Add'])
  })

  const many = (seed: number) =>
    tensor(
      Float32Array.from({ length: 40 }, (_, at) => at * seed),
      { shape: [40] },
    )
  const axis0 = { axis: { type: 'INT', value: 0 } } as const

  it('computes small weights where the file does not grow', async () => {
    const model = modelOf({
      inputs: { x: float(40) },
      weights: { a: many(1), b: many(2), c: many(3), kept: many(4), half: ints(20, 20) },
      nodes: [
        { opType: 'Add', inputs: ['a', 'b'], outputs: ['ab'] },
        { opType: 'Mul', inputs: ['ab', 'c'], outputs: ['abc'] },
        { opType: 'Neg', inputs: ['abc'], outputs: ['w'] },
        { opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] },
        // A weight that another node uses would be there twice.
        { opType: 'Neg', inputs: ['kept'], outputs: ['n'] },
        { opType: 'Sub', inputs: ['n', 'kept'], outputs: ['m'] },
        { opType: 'Add', inputs: ['m', 'x'], outputs: ['z'] },
        { opType: 'Add', inputs: ['x', 'kept'], outputs: ['v'] },
      ],
      outputs: ['y', 'z', 'v'],
    })
    const before = (await serialize(model)).length
    const { graph } = await optimized(model, ['fold-shapes'])
    expect(textOf(graph)).toEqual([
      'y = Add(x,w)',
      'n = Neg(kept)',
      'm = Sub(n,kept)',
      'z = Add(m,x)',
      'v = Add(x,kept)',
    ])
    const w = graph.initializer('w')!
    const expected = Float32Array.from({ length: 40 }, (_, at) => -(at * 3 * at * 3))
    expect(w.kind === 'dense' && (await w.toTypedArray())).toEqual(expected)
    expect([...graph.initializerNames].sort()).toEqual(['half', 'kept', 'w'])
    expect((await serialize(model)).length).toBeLessThan(before)
  })

  it('folds nodes with several outputs, where all are known', async () => {
    const model = modelOf({
      inputs: { x: float(40) },
      weights: { a: many(1), half: ints(10, 30) },
      nodes: [
        { opType: 'Split', inputs: ['a', 'half'], outputs: ['one', 'other'], attributes: axis0 },
        { opType: 'Concat', inputs: ['other', 'one'], outputs: ['w'], attributes: axis0 },
        { opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    const { graph } = await optimized(model, ['fold-shapes'])
    expect(textOf(graph)).toEqual(['y = Add(x,w)'])
    const w = graph.initializer('w')!
    const rotated = Float32Array.from({ length: 40 }, (_, at) => (at + 10) % 40)
    expect(w.kind === 'dense' && (await w.toTypedArray())).toEqual(rotated)
  })

  it('leaves quantized weights', async () => {
    const model = modelOf({
      inputs: { x: float(4) },
      weights: {
        q: tensor(Int8Array.of(1, 2, 3, 4)),
        s: tensor(0.5, { dtype: 'float32' }),
        k: ints(0),
      },
      nodes: [
        { opType: 'DequantizeLinear', inputs: ['q', 's'], outputs: ['d'] },
        { opType: 'Neg', inputs: ['d'], outputs: ['n'] },
        { opType: 'Add', inputs: ['x', 'n'], outputs: ['y'] },
        { opType: 'Neg', inputs: ['k'], outputs: ['t'] },
        { opType: 'Unsqueeze', inputs: ['y', 't'], outputs: ['z'] },
      ],
      outputs: ['z'],
    })
    const { graph } = await optimized(model, ['fold-shapes'])
    expect(graph.nodes.map(({ opType }) => opType)).toEqual(['DequantizeLinear', 'Neg', 'Add', 'Unsqueeze'])
  })
})

describe('fold-weights', () => {
  const chain = (weights: Parts['weights'], nodes: readonly NewNode[], outputs = ['y']) =>
    modelOf({
      weights: { two: ints(4, 2), ...weights },
      nodes: [...nodes, { opType: 'MatMul', inputs: ['x', 'w3'], outputs: ['y'] }],
      outputs,
    })
  const perm = (...value: number[]) => ({ perm: { type: 'INTS', value } }) as const

  it('applies a chain to the weight', async () => {
    const model = chain({ w: tensor(new Float64Array([0, 1, 2, 3, 4, 5, 6, 7]), { shape: [1, 2, 1, 4] }) }, [
      { opType: 'Transpose', inputs: ['w'], outputs: ['w1'], attributes: perm(2, 3, 1, 0) },
      { opType: 'Reshape', inputs: ['w1', 'two'], outputs: ['w2'] },
      { opType: 'Cast', inputs: ['w2'], outputs: ['w3'], attributes: { to: { type: 'INT', value: 1 } } },
    ])
    const { graph } = await optimized(model, ['fold-weights'])
    expect(textOf(graph)).toEqual(['y = MatMul(x,w3)'])
    const found = graph.initializer('w3')!
    expect([found.dtype, found.shape]).toEqual(['float32', [4, 2]])
    expect(found.kind === 'dense' && (await found.toTypedArray())).toEqual(
      Float32Array.of(0, 4, 1, 5, 2, 6, 3, 7),
    )
    expect(graph.initializerNames.filter((name) => name !== 'two')).toEqual(['w3'])
  })

  it.each<[string, NewNode['attributes']]>([
    ['an INT', { perm: { type: 'INT', value: 1 } }],
    ['FLOATS', { perm: { type: 'FLOATS', value: [1, 0] } }],
    ['a STRING', { perm: { type: 'STRING', value: '1,0' } }],
    ['too few axes', perm(1)],
    ['too many axes', perm(1, 0, 2)],
    ['one axis twice', perm(1, 1)],
    ['an axis beyond the rank', perm(1, 2)],
    ['an axis below 0', perm(-1, 0)],
  ])('leaves a Transpose alone whose perm is %s', async (_, attributes) => {
    const model = modelOf({
      weights: { w: matrix(2, 4) },
      nodes: [
        { opType: 'Transpose', inputs: ['w'], outputs: ['t'], attributes: attributes! },
        { opType: 'MatMul', inputs: ['x', 't'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    await optimize(model)
    expect(textOf(model.graph)).toEqual(['t = Transpose(w)', 'y = MatMul(x,t)'])
  })

  it('keeps weights that others use, and casts that grow', async () => {
    const grows = tensor(new Uint16Array(256), { dtype: 'float16', shape: [64, 4] })
    const model = chain({ w: matrix(2, 64), grows, e: tensor(new Float32Array(64), { shape: [4, 4, 4] }) }, [
      { opType: 'Transpose', inputs: ['w'], outputs: ['a'] },
      { opType: 'MatMul', inputs: ['w', 'a'], outputs: ['b'] },
      { opType: 'Cast', inputs: ['grows'], outputs: ['c'], attributes: { to: { type: 'INT', value: 1 } } },
      { opType: 'MatMul', inputs: ['b', 'c'], outputs: ['d'] },
      { opType: 'Add', inputs: ['d', 'e'], outputs: ['w3'] },
    ])
    const count = model.graph.nodes.length
    expect((await optimized(model, ['fold-weights'])).graph.nodes).toHaveLength(count)
  })

  it('folds weights of an outer graph inside a subgraph', async () => {
    const inner = (opType: string) =>
      branch({
        nodes: [
          { opType: 'Transpose', inputs: [`w${opType}`], outputs: ['t'] },
          { opType, inputs: ['t'], outputs: ['r'] },
        ],
        outputs: ['r'],
      })
    const model = modelOf({
      inputs: { c: { kind: 'tensor', dtype: 'bool', shape: [] } },
      weights: { wNeg: matrix(2, 4), wAbs: matrix(2, 4) },
      nodes: [
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['y'],
          attributes: { then_branch: inner('Neg'), else_branch: inner('Abs') },
        },
      ],
      outputs: ['y'],
    })
    const { graph } = await optimized(model, ['fold-weights'])
    expect(graph.initializerNames).toEqual([])
    expect([...graph.subgraphs()].map((each) => [textOf(each), each.initializerNames])).toEqual([
      [['r = Neg(t)'], ['t']],
      [['r = Abs(t)'], ['t']],
    ])
  })
})

describe('initializers', () => {
  it('lifts Constant nodes that are not outputs', async () => {
    const value = (at: number) => ({ value: { type: 'TENSOR', value: floats(at) } }) as const
    const model = modelOf({
      nodes: [
        { opType: 'Constant', outputs: ['a'], attributes: value(1) },
        { opType: 'Constant', outputs: ['z'], attributes: value(2) },
        { opType: 'Add', inputs: ['x', 'a'], outputs: ['y'] },
      ],
      outputs: ['y', 'z'],
    })
    const { graph } = await optimized(model, ['lift-constants'], true)
    expect(textOf(graph)).toEqual(['z = Constant()', 'y = Add(x,a)'])
    expect(graph.initializerNames).toEqual(['a'])
  })

  it('lifts those of subgraphs, with other names where they would collide', async () => {
    const inner = (value: number) =>
      branch({
        weights: { w: floats(value), own: floats(7) },
        nodes: [
          { opType: 'Add', inputs: ['x', 'w'], outputs: ['r'] },
          { opType: 'Mul', inputs: ['r', 'own'], outputs: ['s'] },
        ],
        outputs: ['s', 'own'],
      })
    const model = modelOf({
      inputs: { x: float(2, 4), c: { kind: 'tensor', dtype: 'bool', shape: [] } },
      weights: { w: floats(1) },
      nodes: [
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['a', 'b'],
          attributes: { then_branch: inner(2), else_branch: inner(3) },
        },
        { opType: 'Add', inputs: ['a', 'w'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    const { graph } = await optimized(model, ['lift-initializers'], true)
    expect(graph.initializerNames).toEqual(['w', 'w_1', 'w_2'])
    expect([...graph.subgraphs()].map((each) => [textOf(each)[0], each.initializerNames])).toEqual([
      ['r = Add(x,w_1)', ['own']],
      ['r = Add(x,w_2)', ['own']],
    ])
    const values = ['w', 'w_1', 'w_2'].map((name) => graph.initializer(name)!)
    expect(values.map((each) => each.kind === 'dense' && each.at(0))).toEqual([1, 2, 3])
  })

  it('keeps one of equal tensors and strings', async () => {
    const model = modelOf({
      weights: {
        a: stringTensor(['ab', 'c']),
        b: stringTensor(['a', 'bc']),
        c: stringTensor(['ab', 'c']),
        d: floats(0),
        e: floats(-0),
        f: floats(0),
      },
      nodes: [
        {
          opType: 'Concat',
          inputs: ['a', 'b', 'c'],
          outputs: ['s'],
          attributes: { axis: { type: 'INT', value: 0 } },
        },
        { opType: 'Sum', inputs: ['x', 'd', 'e', 'f'], outputs: ['y'] },
      ],
      outputs: ['s', 'y'],
    })
    const { graph } = await optimized(model, ['deduplicate-initializers'])
    expect(textOf(graph)).toEqual(['s = Concat(a,b,a)', 'y = Sum(x,d,e,d)'])
  })

  it('adds none below IR version 4', async () => {
    const model = OnnxModel.create({ irVersion: 3, opset: 8 })
    fill(model.graph, {
      inputs: { x: float(2, 4), w: float(4, 2) },
      weights: { w: matrix(4, 2) },
      nodes: [
        { opType: 'Constant', outputs: ['a'], attributes: { value: { type: 'TENSOR', value: floats(1) } } },
        { opType: 'Transpose', inputs: ['w'], outputs: ['t'] },
        { opType: 'Sum', inputs: ['x', 'a', 't'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    expect(
      (await optimized(model, ['lift-constants', 'lift-initializers', 'fold-shapes', 'fold-weights'])).graph
        .nodes,
    ).toHaveLength(3)
  })

  it('takes no initializer for a constant that is an input, of any IR version', async () => {
    for (const irVersion of [3, 8]) {
      const model = OnnxModel.create({ irVersion, opset: 8 })
      fill(model.graph, {
        inputs: { x: float(2, 4), one: float(), target: { kind: 'tensor', dtype: 'int64', shape: [2] } },
        weights: { one: tensor(1, { dtype: 'float32' }), target: ints(2, 4) },
        nodes: [
          { opType: 'Mul', inputs: ['x', 'one'], outputs: ['a'] },
          { opType: 'Reshape', inputs: ['a', 'target'], outputs: ['y'] },
        ],
        outputs: ['y'],
      })
      await optimize(model)
      expect(textOf(model.graph)).toEqual(['a = Mul(x,one)', 'y = Reshape(a,target)'])
    }
  })
})

describe('defaults and unused parts', () => {
  const conv = (): OnnxModel =>
    modelOf({
      weights: { w: tensor(new Float32Array(1), { shape: [1, 1, 1, 1] }) },
      nodes: [
        {
          opType: 'Conv',
          inputs: ['x', 'w'],
          outputs: ['a'],
          attributes: {
            group: { type: 'INT', value: 1 },
            strides: { type: 'INTS', value: [2, 2] },
            auto_pad: { type: 'STRING', value: 'NOTSET' },
          },
        },
        {
          opType: 'LeakyRelu',
          inputs: ['a'],
          outputs: ['y'],
          attributes: { alpha: { type: 'FLOAT', value: 0.01 } },
        },
      ],
      outputs: ['y'],
    })
  const names = ({ graph }: OnnxModel): string[][] =>
    graph.nodes.map(({ attributes }) => attributes.map(({ name }) => name))

  it('removes attributes that equal their default, and adds missing ones', async () => {
    expect(names(await optimized(conv(), ['remove-default-attributes']))).toEqual([['strides'], []])
    const model = conv()
    model.graph.nodes[0]!.removeAttribute('auto_pad')
    const added = await optimized(model, ['add-default-attributes'], true)
    expect(names(added)).toEqual([['group', 'strides', 'auto_pad'], ['alpha']])
    expect(added.graph.nodes[0]!.attribute('auto_pad')!.text).toBe('NOTSET')
  })

  it('omits optional outputs that nothing uses, and the domains of nothing', async () => {
    const model = modelOf({
      nodes: [
        { opType: 'LSTM', inputs: ['x', 'x', 'x'], outputs: ['a', 'h', 'c'] },
        { opType: 'MaxPool', inputs: ['x'], outputs: ['p', 'indices'] },
        { opType: 'TopK', inputs: ['x', 'x'], outputs: ['k', 'at'] },
        {
          opType: 'BatchNormalization',
          inputs: Array(5).fill('x'),
          outputs: ['n', 'mean', 'var'],
          attributes: { training_mode: { type: 'INT', value: 1 } },
        },
        { opType: 'Sum', inputs: ['h', 'p', 'k', 'n'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    model.setOpsetImport('com.example', 1)
    model.graph.setType('indices', float(1))
    const result = await optimized(model, ['remove-optional-outputs', 'remove-unused-opsets'])
    expect(result.graph.nodes.map(({ outputs }) => outputs)).toEqual([
      ['', 'h'],
      ['p'],
      ['k', 'at'],
      ['n', 'mean', 'var'],
      ['y'],
    ])
    expect(result.graph.valueInfo).toEqual([])
    expect([...result.opsetImports.keys()]).toEqual([''])
  })

  it('names nodes, and renames values of subgraphs that hide others', async () => {
    const hides = branch({
      nodes: [
        { opType: 'Neg', inputs: ['x'], outputs: ['a'] },
        { opType: 'Abs', inputs: ['a'], outputs: ['t'] },
      ],
      outputs: ['t'],
    })
    const model = modelOf({
      inputs: { x: float(2, 4), c: { kind: 'tensor', dtype: 'bool', shape: [] } },
      nodes: [
        { opType: 'Relu', name: 'r', inputs: ['x'], outputs: ['a'] },
        { opType: 'Relu', name: 'r', inputs: ['a'], outputs: ['b'] },
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['y'],
          attributes: { then_branch: hides, else_branch: hides },
        },
      ],
      outputs: ['y', 'b'],
    })
    const { graph } = await optimized(model, ['fix-names'], true)
    const all = [...graph.allNodes()].map(({ name }) => name)
    expect(new Set(all).size).toBe(all.length)
    expect(all.slice(0, 2)).toEqual(['r', 'r_1'])
    expect([...graph.subgraphs()].map((each) => textOf(each)[0])).toEqual(['a_1 = Neg(x)', 'a_2 = Neg(x)'])
  })

  it('gives outputs that are inputs, weights or other outputs a node of their own', async () => {
    const inside = branch({ inputs: { i: float(1) }, nodes: [], outputs: ['i'] })
    const model = modelOf({
      weights: { w: floats(1, 2) },
      nodes: [
        { opType: 'Relu', inputs: ['x'], outputs: ['r'] },
        { opType: 'Body', domain: 'own', inputs: ['r'], outputs: ['s'], attributes: { body: inside } },
      ],
      outputs: ['x', 'w', 'r', 's'],
    })
    // The listing of an output twice is a fault that only files have.
    model.graph.message.insert('output').setText('name', 'r')
    model.setOpsetImport('own', 1)
    addFunction(model, { domain: 'own', name: 'Same', inputs: ['a'], outputs: ['a'], nodes: [] })
    const changes = await optimize(model, { only: ['fix-outputs'] })
    expect(changes).toEqual([{ pass: 'fix-outputs', changes: 5 }])
    expect([...model.graph.inputNames]).toEqual(['x_orig'])
    expect(model.graph.outputs.map(({ name }) => name)).toEqual(['x', 'w', 'r', 's', 'r_alias_4'])
    expect(textOf(model.graph)).toEqual([
      'r = Relu(x_orig)',
      's = Body(r)',
      'r_alias_4 = Identity(r)',
      'x = Identity(x_orig)',
      'w = Identity(w_orig)',
    ])
    expect([...model.graph.subgraphs()].flatMap((each) => textOf(each))).toEqual(['i = Identity(i_orig)'])
    const [same] = model.functions
    expect([same!.inputs, same!.outputs, same!.nodes.map(({ inputs }) => inputs)]).toEqual([
      ['a_orig'],
      ['a'],
      [['a_orig']],
    ])
    expect((await check(await serialize(model))).filter(({ severity }) => severity === 'error')).toEqual([])
    expect(await optimize(model, { only: ['fix-outputs', 'remove-identity'] })).toEqual([
      { pass: 'remove-identity', changes: 0 },
      { pass: 'fix-outputs', changes: 0 },
    ])
  })

  it('clears doc strings and metadata of graphs, nodes and functions', async () => {
    const model = modelOf({
      nodes: [
        {
          opType: 'If',
          inputs: ['x'],
          outputs: ['y'],
          attributes: {
            then_branch: branch({
              nodes: [{ opType: 'Neg', inputs: ['x'], outputs: ['n'] }],
              outputs: ['n'],
            }),
          },
        },
      ],
      outputs: ['y'],
    })
    addFunction(model, {
      domain: 'own',
      name: 'Half',
      inputs: ['a'],
      outputs: ['b'],
      nodes: [{ opType: 'Neg', inputs: ['a'], outputs: ['b'] }],
    })
    const [inner] = [...model.graph.subgraphs()]
    const noted = [model.graph, ...model.graph.allNodes(), inner!, model.functions[0]!.nodes[0]!]
    for (const each of noted) each.setMetadata('from', 'an exporter')
    model.graph.docString = 'a graph'
    model.docString = 'a model'
    model.setMetadata('kept', 'yes')
    expect(await optimize(model, { only: ['clear-metadata'] })).toEqual([
      { pass: 'clear-metadata', changes: 5 },
    ])
    for (const each of noted) expect(each.metadata.size).toBe(0)
    expect([model.graph.docString, model.docString, model.metadata.get('kept')]).toEqual([
      '',
      'a model',
      'yes',
    ])
  })
})

describe('inline-functions', () => {
  function withFunctions(): OnnxModel {
    const model = modelOf({ nodes: [], outputs: [] })
    const inner = branch({
      nodes: [
        { opType: 'LeakyRelu', inputs: ['in'], outputs: ['local'] },
        { opType: 'Add', inputs: ['local', 'mid'], outputs: ['r'] },
      ],
      outputs: ['r'],
    })
    addFunction(model, {
      domain: 'f',
      name: 'Scaled',
      inputs: ['in', 'optional'],
      outputs: ['out', 'in'],
      attributeNames: ['slope', 'other'],
      nodes: [
        {
          opType: 'LeakyRelu',
          name: 'leaky',
          inputs: ['in'],
          outputs: ['mid'],
          attributes: { alpha: { type: 'FLOAT', refName: 'slope' } },
        },
        { opType: 'Clip', inputs: ['mid', 'optional'], outputs: ['clipped'] },
        {
          opType: 'ReduceMax',
          inputs: ['clipped'],
          outputs: ['most'],
          attributes: { keepdims: { type: 'INT', refName: 'other' } },
        },
        { opType: 'Cast', inputs: ['most'], outputs: ['c'], attributes: { to: { type: 'INT', value: 9 } } },
        {
          opType: 'If',
          inputs: ['c'],
          outputs: ['out'],
          attributes: { then_branch: inner, else_branch: inner },
        },
      ],
    })
    addFunction(model, {
      domain: 'f',
      name: 'Twice',
      inputs: ['v'],
      outputs: ['o'],
      attributeNames: ['s'],
      nodes: [
        {
          opType: 'Scaled',
          domain: 'f',
          inputs: ['v'],
          outputs: ['m'],
          attributes: { slope: { type: 'FLOAT', refName: 's' } },
        },
        {
          opType: 'Scaled',
          domain: 'f',
          inputs: ['m'],
          outputs: ['o'],
          attributes: { slope: { type: 'FLOAT', value: 0.25 } },
        },
      ],
    })
    const { graph } = model
    graph.addNode({
      opType: 'Twice',
      domain: 'f',
      name: 'call',
      inputs: ['x'],
      outputs: ['mid'],
      attributes: { s: { type: 'FLOAT', value: 0.5 } },
    })
    graph.addNode({
      opType: 'Scaled',
      domain: 'f',
      inputs: ['mid'],
      outputs: ['y', 'same'],
      attributes: { slope: { type: 'FLOAT', value: 2 } },
    })
    graph.addOutput('y', float(2, 4))
    graph.addOutput('same', float(2, 4))
    return model
  }

  it('replaces calls in calls, with attributes, omitted inputs and names of their own', async () => {
    const model = withFunctions()
    const found = await optimized(
      model,
      ['inline-functions', 'remove-unused-functions', 'remove-unused-opsets'],
      true,
    )
    const { graph } = found
    expect(found.functions).toEqual([])
    expect([...found.opsetImports.keys()]).toEqual([''])
    const leaky = graph.nodes.filter(({ opType }) => opType === 'LeakyRelu')
    expect(leaky.map((node) => node.attribute('alpha')!.value)).toEqual([0.5, 0.25, 2])
    expect(graph.nodes.filter(({ opType }) => opType === 'Clip').map(({ inputs }) => inputs[1])).toEqual([
      '',
      '',
      '',
    ])
    expect(graph.nodes.some((node) => node.attribute('keepdims'))).toBe(false)
    expect(textOf(graph).at(-1)).toBe('same = Identity(mid)')
    expect(leaky[0]!.inputs).toEqual(['x'])
    for (const inside of graph.subgraphs()) expect(inside.outerNames().size).toBe(2)
    const all = [graph, ...graph.subgraphs()].flatMap((each) => each.nodes.flatMap(({ outputs }) => outputs))
    expect(new Set(all).size).toBe(all.length)
  })

  it('leaves functions of another operator set, and refuses those that grow beyond the limit', async () => {
    const model = withFunctions()
    model.setOpsetImport('', 20)
    // Twice has no operator of ONNX itself.
    const { graph } = await optimized(model, ['inline-functions'], true)
    expect(graph.nodes.map(({ opType }) => opType)).toEqual(['Scaled', 'Scaled', 'Scaled'])
    const grown = modelOf({ nodes: [], outputs: [] })
    const level = (at: number) => ({ opType: `L${at}`, domain: 'g' })
    addFunction(grown, {
      domain: 'g',
      name: 'L0',
      inputs: ['a'],
      outputs: ['b'],
      nodes: [{ opType: 'Relu', inputs: ['a'], outputs: ['b'] }],
    })
    for (let at = 1; at <= 30; at++) {
      const nodes = [
        { ...level(at - 1), inputs: ['a'], outputs: ['m'] },
        { ...level(at - 1), inputs: ['m'], outputs: ['b'] },
      ]
      addFunction(grown, { domain: 'g', name: `L${at}`, inputs: ['a'], outputs: ['b'], nodes })
    }
    grown.graph.addNode({ ...level(30), inputs: ['x'], outputs: ['y'] })
    await expect(optimize(grown)).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    expect(grown.graph.nodes).toHaveLength(1)
  })

  it('leaves functions that call themselves', async () => {
    const call = (input: string, output: string): Bytes =>
      join(field(1, input), field(2, output), field(4, 'Self'), field(7, 'f'))
    const self = join(
      field(1, 'Self'),
      field(4, 'a'),
      field(5, 'b'),
      field(7, call('a', 'b')),
      field(10, 'f'),
    )
    const bytes = modelProto({ nodes: [call('x', 'y')], inputs: ['x'], outputs: ['y'] }, field(25, self))
    using file = await open(bytes)
    await optimize(file.onnx!, { only: ['inline-functions', 'remove-unused-functions'] })
    expect(file.onnx!.isChanged).toBe(false)
  })
})

describe('functions', () => {
  /** A model that calls `own.F` of one input, with these nodes and outputs. */
  function called(
    nodes: readonly NewNode[],
    outputs = ['b'],
    attributeNames: readonly string[] = [],
  ): OnnxModel {
    const model = modelOf({
      nodes: [
        {
          opType: 'F',
          domain: 'own',
          inputs: ['x'],
          outputs: outputs.map((name) => `y_${name}`),
          attributes: Object.fromEntries(attributeNames.map((name) => [name, { type: 'FLOAT', value: 0.5 }])),
        },
      ],
      outputs: outputs.map((name) => `y_${name}`),
    })
    addFunction(model, { domain: 'own', name: 'F', inputs: ['a'], outputs, attributeNames, nodes })
    model.setOpsetImport('own', 1)
    return model
  }
  const bodyOf = ({ functions }: OnnxModel): string[] =>
    functions[0]!.nodes.map(({ opType, inputs, outputs }) => `${outputs} = ${opType}(${inputs})`)

  it('lose what their outputs do not need, as graphs do', async () => {
    const model = called([
      { opType: 'Identity', inputs: ['a'], outputs: ['i'] },
      { opType: 'Abs', inputs: ['i'], outputs: ['p'] },
      { opType: 'Abs', inputs: ['a'], outputs: ['q'] },
      { opType: 'Neg', inputs: ['q'], outputs: ['unused'] },
      { opType: 'Dropout', inputs: ['q'], outputs: ['d', 'mask'] },
      { opType: 'Add', inputs: ['p', 'd'], outputs: ['b'] },
    ])
    const again = await optimized(model, [
      'sort',
      'remove-identity',
      'remove-dropout',
      'merge-equal-nodes',
      'remove-unused',
      'remove-optional-outputs',
    ])
    expect(bodyOf(again)).toEqual(['p = Abs(a)', 'b = Add(p,p)'])
    expect(textOf(again.graph)).toEqual(['y_b = F(x)'])
  })

  it('keep nodes whose attributes are different ones of the function', async () => {
    const leaky = (name: string, output: string): NewNode => ({
      opType: 'LeakyRelu',
      inputs: ['a'],
      outputs: [output],
      attributes: { alpha: { type: 'FLOAT', refName: name } },
    })
    const nodes = [leaky('one', 'p'), leaky('two', 'q'), leaky('one', 'r')]
    const sum = { opType: 'Sum', inputs: ['p', 'q', 'r'], outputs: ['b'] }
    const again = await optimized(called([...nodes, sum], ['b'], ['one', 'two']), ['merge-equal-nodes'])
    expect(bodyOf(again)).toEqual(['p = LeakyRelu(a)', 'q = LeakyRelu(a)', 'b = Sum(p,q,p)'])
  })

  it('keep the names and number of outputs, and nodes in subgraphs', async () => {
    const inner = body({ nodes: [{ opType: 'Identity', inputs: ['c'], outputs: ['t'] }], outputs: ['t'] })
    const other = body({ nodes: [{ opType: 'Neg', inputs: ['c'], outputs: ['e'] }], outputs: ['e'] })
    const model = called(
      [
        { opType: 'Identity', inputs: ['a'], outputs: ['c'] },
        { opType: 'Constant', outputs: ['k'], attributes: { value: { type: 'TENSOR', value: truth(true) } } },
        {
          opType: 'If',
          inputs: ['k'],
          outputs: ['b'],
          attributes: {
            then_branch: { type: 'GRAPH', value: inner },
            else_branch: { type: 'GRAPH', value: other },
          },
        },
      ],
      ['b', 'c'],
    )
    const again = await optimized(model, ['remove-identity', 'remove-unused'])
    expect(again.functions[0]!.outputs).toEqual(['b', 'c'])
    expect(bodyOf(again)).toEqual(['c = Identity(a)', 'k = Constant()', 'b = If(k)'])
  })

  it('keep declared types of the values that stay', async () => {
    const model = called([
      { opType: 'Abs', inputs: ['a'], outputs: ['p'] },
      { opType: 'Identity', inputs: ['p'], outputs: ['i'] },
      { opType: 'Neg', inputs: ['i'], outputs: ['b'] },
    ])
    const [made] = model.functions
    for (const name of ['p', 'i']) made!.message.insert('value_info').setText('name', name)
    await optimize(model, { only: ['remove-identity'] })
    expect(bodyOf(model)).toEqual(['p = Abs(a)', 'b = Neg(p)'])
    expect([...model.functions[0]!.valueTypes.keys()]).toEqual(['p'])
  })
})

describe('types are found when a rule asks for them,', () => {
  const cast = (input: string, output: string): NewNode => ({
    opType: 'Cast',
    inputs: [input],
    outputs: [output],
    attributes: { to: { type: 'INT', value: 1 } },
  })

  it('from the file for what an operator without a rule gives, but not its shape', async () => {
    const model = modelOf({
      nodes: [
        { opType: 'Own', domain: 'my.ops', inputs: ['x'], outputs: ['a'] },
        cast('a', 'b'),
        { opType: 'Flatten', inputs: ['b'], outputs: ['c'] },
        { opType: 'Relu', inputs: ['c'], outputs: ['y'] },
      ],
      outputs: ['y'],
    })
    model.graph.setType('a', float(2, 2))
    await optimize(model)
    expect(model.graph.nodes.map(({ opType }) => opType)).toEqual(['Own', 'Flatten', 'Relu'])
  })

  it('through chains that are longer than calls fit on the stack', async () => {
    const count = 20_000
    const model = modelOf({
      nodes: Array.from({ length: count }, (_, at) => ({
        opType: 'Softplus',
        inputs: [at === 0 ? 'x' : `v${at - 1}`],
        outputs: [`v${at}`],
      })),
      outputs: [],
    })
    model.graph.addNode(cast(`v${count - 1}`, 'end'))
    model.graph.addNode({ opType: 'Relu', inputs: ['end'], outputs: ['y'] })
    model.graph.addOutput('y', float(2, 4))
    await optimize(model, { only: ['remove-no-ops'] })
    expect(model.graph.nodes.at(-1)?.inputs).toEqual([`v${count - 1}`])
    expect(model.graph.nodes).toHaveLength(count + 1)
  })

  it('and again after an edit of the graph', async () => {
    const model = modelOf({ nodes: [cast('x', 'a')], outputs: ['a'] })
    await optimize(model)
    model.graph.addNode({ opType: 'Identity', inputs: ['a'], outputs: ['b'] })
    model.graph.addNode({ opType: 'Relu', inputs: ['b'], outputs: ['y'] })
    model.graph.addOutput('y', float(2, 4))
    await optimize(model)
    expect(textsOf(model.graph)).toHaveLength(2)
  })
})
