/**
 * setBatch and setInputShape on models whose constants hold the old batch: each row of a batch gives what it gave alone, in
 * onnxruntime where it is installed; what cannot follow is an error.
 */
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  Graph,
  inferTypes,
  type NewAttribute,
  type NewNode,
  OnnxModel,
  setBatch,
  setInputShape,
} from '../../../../lib/onnx.js'
import { outputsOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'

const FLOAT = { kind: 'tensor', dtype: 'float32' } as const
const int = (value: number): NewAttribute => ({ type: 'INT', value })
const ints = (...value: readonly number[]): NewAttribute => ({ type: 'INTS', value })
const graph = (value: Graph): NewAttribute => ({ type: 'GRAPH', value })

type Constants = Readonly<Record<string, readonly number[] | { readonly shape: readonly number[] }>>

/** Lists of integers, and floats of a shape, as initializers. */
function addConstants(to: Graph, constants: Constants): void {
  for (const [name, given] of Object.entries(constants)) {
    const value = Array.isArray(given)
      ? tensor(BigInt64Array.from(given as number[], BigInt), { shape: [given.length] })
      : tensor(randomFloats((given as { shape: number[] }).shape, name.length), {
          shape: (given as { shape: number[] }).shape,
        })
    to.setInitializer(name, value)
  }
}

interface Described {
  readonly x?: readonly number[]
  readonly constants?: Constants
  readonly nodes: readonly NewNode[]
  /** Axis of the batch in the input and output. */
  readonly batchAxis?: number
  readonly opset?: number
  readonly irVersion?: number
}

function modelOf({ x = [1, 4, 6], constants = {}, nodes, opset = 17, irVersion = 8 }: Described): OnnxModel {
  const model = OnnxModel.create({ opset, irVersion })
  model.graph.addInput('x', { ...FLOAT, shape: x })
  addConstants(model.graph, constants)
  if (irVersion < 4) {
    for (const name of model.graph.initializerNames) {
      const { dtype, shape } = model.graph.initializer(name)!
      model.graph.addInput(name, { kind: 'tensor', dtype: dtype as 'float32', shape })
    }
  }
  for (const node of nodes) model.graph.addNode(node)
  model.graph.addOutput('y', FLOAT)
  return model
}

const op = (
  opType: string,
  inputs: string,
  outputs: string,
  attributes: NewNode['attributes'] = {},
): NewNode => ({
  opType,
  inputs: inputs === '' ? [] : inputs.split(' ').map((name) => (name === '-' ? '' : name)),
  outputs: outputs.split(' '),
  attributes,
})

function body(name: string, constants: Constants, nodes: readonly NewNode[], output: string): Graph {
  const made = Graph.create(name)
  addConstants(made, constants)
  for (const node of nodes) made.addNode(node)
  made.addOutput(output, FLOAT)
  return made
}

function loopBody(): Graph {
  const made = Graph.create('body')
  made.addInput('i', { kind: 'tensor', dtype: 'int64', shape: [] })
  made.addInput('go', { kind: 'tensor', dtype: 'bool', shape: [] })
  made.addInput('state', { ...FLOAT, shape: [1, 4, 6] })
  addConstants(made, { flat: [1, 24], back: [1, 4, 6], w: { shape: [24, 24] } })
  for (const node of [
    op('Identity', 'go', 'still'),
    op('Reshape', 'state flat', 'f'),
    op('MatMul', 'f w', 'm'),
    op('Tanh', 'm', 't'),
    op('Reshape', 't back', 'next'),
  ])
    made.addNode(node)
  made.addOutput('still', { kind: 'tensor', dtype: 'bool', shape: [] })
  made.addOutput('next', { ...FLOAT, shape: [1, 4, 6] })
  return made
}

const FOLLOW: Readonly<Record<string, Described>> = {
  'Reshape to [1, 24]': { constants: { s: [1, 24] }, nodes: [op('Reshape', 'x s', 'y')] },
  'Reshape to [1, -1]': { constants: { s: [1, -1] }, nodes: [op('Reshape', 'x s', 'y')] },
  'Reshape to [1, 4, 2, 3]': { constants: { s: [1, 4, 2, 3] }, nodes: [op('Reshape', 'x s', 'y')] },
  'Reshape to [1, -1, 2, 3]': { constants: { s: [1, -1, 2, 3] }, nodes: [op('Reshape', 'x s', 'y')] },
  'Reshape to [2, -1, 6]': {
    constants: { s: [2, -1, 6], t: [1, 24] },
    nodes: [op('Reshape', 'x s', 'a'), op('Softmax', 'a', 'b'), op('Reshape', 'b t', 'y')],
  },
  'Reshape to [4, 6] and back': {
    constants: { s: [4, 6], t: [1, 4, 6], w: { shape: [6, 6] } },
    nodes: [op('Reshape', 'x s', 'a'), op('MatMul', 'a w', 'b'), op('Reshape', 'b t', 'y')],
  },
  'Reshape with allowzero': {
    constants: { s: [1, 24] },
    nodes: [op('Reshape', 'x s', 'y', { allowzero: int(1) })],
  },
  'Reshape by a folded list': {
    constants: { one: [1], rest: [24] },
    nodes: [op('Concat', 'one rest', 's', { axis: int(0) }), op('Reshape', 'x s', 'y')],
  },
  'Reshape by a shared list': {
    constants: { s: [1, 24] },
    nodes: [
      op('Reshape', 'x s', 'a'),
      op('Identity', 's', 'unused'),
      op('Tanh', 'a', 'b'),
      op('Reshape', 'b s', 'y'),
    ],
  },
  'Reshape by an attribute (version 1)': {
    nodes: [op('Reshape', 'x', 'y', { shape: ints(1, 24) })],
    opset: 4,
    irVersion: 3,
  },
  'Reshape by an initializer that is an input': {
    constants: { s: [1, 24], w: { shape: [24, 3] } },
    nodes: [op('Reshape', 'x s', 'a'), op('MatMul', 'a w', 'y')],
    opset: 9,
    irVersion: 3,
  },
  'heads of attention': {
    x: [1, 4, 6],
    constants: { split: [1, 4, 2, 3], merge: [2, 4, 3], back: [1, 2, 4, 3], join: [1, 4, 6] },
    nodes: [
      op('Reshape', 'x split', 'a'),
      op('Transpose', 'a', 'b', { perm: ints(0, 2, 1, 3) }),
      op('Reshape', 'b merge', 'c'),
      op('Transpose', 'c', 'd', { perm: ints(0, 2, 1) }),
      op('MatMul', 'c d', 'e'),
      op('Softmax', 'e', 'f'),
      op('MatMul', 'f c', 'g'),
      op('Reshape', 'g back', 'h'),
      op('Transpose', 'h', 'k', { perm: ints(0, 2, 1, 3) }),
      op('Reshape', 'k join', 'y'),
    ],
  },
  'heads behind a transposition': {
    x: [1, 4, 6],
    constants: { heads: [4, 2, 3], join: [4, 1, 6] },
    nodes: [
      op('Transpose', 'x', 'a', { perm: ints(1, 0, 2) }),
      op('Reshape', 'a heads', 'b'),
      op('Softmax', 'b', 'c'),
      op('Reshape', 'c join', 'd'),
      op('Transpose', 'd', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'rows behind a transposition, and back': {
    constants: { flat: [4, 6], back: [4, 1, 3], w: { shape: [6, 3] } },
    nodes: [
      op('Transpose', 'x', 'a', { perm: ints(1, 0, 2) }),
      op('Reshape', 'a flat', 'b'),
      op('MatMul', 'b w', 'c'),
      op('Tanh', 'c', 'd'),
      op('Reshape', 'd back', 'e'),
      op('Transpose', 'e', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'open rows behind a transposition, and back': {
    constants: { flat: [-1, 6], back: [4, 1, 3], w: { shape: [6, 3] } },
    nodes: [
      op('Transpose', 'x', 'a', { perm: ints(1, 0, 2) }),
      op('Reshape', 'a flat', 'b'),
      op('MatMul', 'b w', 'c'),
      op('Reshape', 'c back', 'e'),
      op('Transpose', 'e', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'a class token by Expand': {
    constants: { token: { shape: [1, 1, 6] }, s: [1, 1, 6] },
    nodes: [op('Expand', 'token s', 'e'), op('Concat', 'e x', 'y', { axis: int(1) })],
  },
  'a class token that is an initializer': {
    constants: { token: { shape: [1, 1, 6] } },
    nodes: [op('Concat', 'token x', 'y', { axis: int(1) })],
  },
  'class tokens on both sides': {
    constants: { token: { shape: [1, 1, 6] }, end: { shape: [1, 2, 6] } },
    nodes: [op('Concat', 'token x end token', 'y', { axis: int(-2) })],
  },
  'a class token by Tile': {
    constants: { token: { shape: [1, 1, 6] }, n: [1, 1, 1] },
    nodes: [op('Tile', 'token n', 'e'), op('Concat', 'x e', 'y', { axis: int(1) })],
  },
  'padding by ConstantOfShape': {
    constants: { s: [1, 2, 6] },
    nodes: [op('ConstantOfShape', 's', 'e'), op('Concat', 'x e', 'y', { axis: int(1) })],
  },
  'a class token that a node computes': {
    constants: { token: { shape: [6] }, axes: [0, 1] },
    nodes: [
      op('Unsqueeze', 'token axes', 't'),
      op('Tanh', 't', 'e'),
      op('Concat', 'e x', 'y', { axis: int(1) }),
    ],
  },
  'Expand of the data': {
    constants: { s: [1, 3, 4, 6], axes: [1] },
    nodes: [op('Unsqueeze', 'x axes', 'u'), op('Expand', 'u s', 'y')],
  },
  'positions that are added': { constants: { p: { shape: [1, 4, 6] } }, nodes: [op('Add', 'x p', 'y')] },
  'LSTM with initial states': {
    x: [1, 4, 6],
    constants: {
      w: { shape: [1, 8, 6] },
      r: { shape: [1, 8, 2] },
      h: { shape: [1, 1, 2] },
      c: { shape: [1, 1, 2] },
    },
    nodes: [
      op('Transpose', 'x', 'seq', { perm: ints(1, 0, 2) }),
      op('LSTM', 'seq w r - - h c', 'all last', { hidden_size: int(2) }),
      op('Transpose', 'last', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'GRU with initial states of zeros': {
    x: [1, 4, 6],
    constants: { w: { shape: [1, 6, 6] }, r: { shape: [1, 6, 2] }, s: [1, 1, 2] },
    nodes: [
      op('Transpose', 'x', 'seq', { perm: ints(1, 0, 2) }),
      op('ConstantOfShape', 's', 'h'),
      op('GRU', 'seq w r - - h', 'all last', { hidden_size: int(2) }),
      op('Transpose', 'last', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'RNN in two directions': {
    x: [1, 4, 6],
    constants: { w: { shape: [2, 2, 6] }, r: { shape: [2, 2, 2] }, h: { shape: [2, 1, 2] } },
    nodes: [
      op('Transpose', 'x', 'seq', { perm: ints(1, 0, 2) }),
      op('RNN', 'seq w r - - h', 'all last', {
        hidden_size: int(2),
        direction: { type: 'STRING', value: 'bidirectional' },
      }),
      op('Transpose', 'last', 'y', { perm: ints(1, 0, 2) }),
    ],
  },
  'sizes of Resize': {
    x: [1, 2, 4, 4],
    constants: { s: [1, 2, 8, 8] },
    nodes: [op('Resize', 'x - - s', 'y', { mode: { type: 'STRING', value: 'nearest' } })],
  },
  'a slice of the whole batch': {
    constants: { a: [0, 1], b: [1, 3] },
    nodes: [op('Slice', 'x a b', 'y')],
  },
  'both branches of If': {
    constants: {},
    nodes: [
      {
        ...op('Constant', '', 'c'),
        attributes: { value: { type: 'TENSOR', value: tensor(true, { dtype: 'bool' }) } },
      },
      {
        ...op('If', 'c', 'y'),
        attributes: {
          then_branch: graph(body('then', { s: [1, 24] }, [op('Reshape', 'x s', 'a')], 'a')),
          else_branch: graph(
            body('else', { t: [1, 24] }, [op('Neg', 'x', 'n'), op('Reshape', 'n t', 'b')], 'b'),
          ),
        },
      },
    ],
  },
  'the body of a Loop': {
    constants: {},
    nodes: [
      {
        ...op('Constant', '', 'n'),
        attributes: { value: { type: 'TENSOR', value: tensor(3n, { dtype: 'int64' }) } },
      },
      { ...op('Loop', 'n - x', 'y'), attributes: { body: graph(loopBody()) } },
    ],
  },
}

function firstDim({ graph }: OnnxModel): unknown {
  const { type } = graph.inputs[0]!
  return type.kind === 'tensor' ? type.shape?.[0] : undefined
}

async function followed(described: Described, batch: number | string): Promise<OnnxModel> {
  const model = modelOf(described)
  setBatch(model, batch)
  const findings = await check(await serialize(model))
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(firstDim(model)).toBe(batch)
  return model
}

const BATCH = 3

/** Each row of the batch gives what the model before gives for it. */
async function expectRows(described: Described, model: OnnxModel): Promise<void> {
  await expectRowsOf(modelOf(described), model, described.x ?? [1, 4, 6])
}

async function expectRowsOf(before: OnnxModel, model: OnnxModel, shape: readonly number[]): Promise<void> {
  const data = randomFloats(shape.with(0, BATCH), 11)
  const { y } = await outputsOf(model, { x: { data, shape: shape.with(0, BATCH) } })
  const length = data.length / BATCH
  expect(y!.dims[0]! % BATCH).toBe(0)
  for (let row = 0; row < BATCH; row++) {
    const feed = { x: { data: data.subarray(row * length, (row + 1) * length), shape } }
    const alone = Array.from((await outputsOf(before, feed)).y!.data)
    const found = Array.from(y!.data).slice(row * alone.length, (row + 1) * alone.length)
    for (const [at, value] of alone.entries()) expect(found[at]).toBeCloseTo(value, 5)
  }
}

describe.each(Object.entries(FOLLOW))('%s', (name, described) => {
  it.each([BATCH, 'N'])('follows a batch of %s', async (batch) => {
    const model = await followed(described, batch)
    // onnxruntime has no Reshape of version 1.
    if (runtime && described.opset !== 4) await expectRows(described, model)
  })

  it('stays as it is where the batch stays', async () => {
    const model = modelOf(described)
    const nodes = () => [...model.graph.allNodes()].map(({ opType, inputs }) => [opType, ...inputs])
    const before = nodes()
    expect(setBatch(model, 1).reshaped).toEqual([])
    expect(nodes()).toEqual(before)
    expect(name).not.toBe('')
  })
})

const REFUSED: Readonly<Record<string, Described & { readonly by: string }>> = {
  'a fixed row of the batch': { constants: { i: [0] }, nodes: [op('Gather', 'x i', 'y')], by: 'Gather' },
  'fixed rows that are changed': {
    constants: { i: [0, 1], u: { shape: [1, 6] }, s: [1, 2] },
    nodes: [op('Reshape', 'i s', 'at'), op('ScatterND', 'x at u', 'y')],
    by: 'ScatterND',
  },
  'all elements in a row': {
    constants: { s: [24], w: { shape: [24, 3] } },
    nodes: [op('Reshape', 'x s', 'a'), op('MatMul', 'a w', 'y')],
    by: 'MatMul',
  },
  'all elements in a row of Gemm': {
    constants: { s: [24, 1], w: { shape: [24, 3] } },
    nodes: [op('Reshape', 'x s', 'a'), op('Gemm', 'a w', 'y', { transA: int(1) })],
    by: 'Gemm',
  },
  'a batch that is squeezed': {
    constants: { axes: [0] },
    nodes: [op('Squeeze', 'x axes', 'y')],
    by: 'Squeeze',
  },
  'a Resize whose axes are no list': {
    constants: { sizes: [1, 8, 6] },
    nodes: [op('Resize', 'x - - sizes', 'y', { axes: int(0) })],
    by: 'Resize',
  },
  'any dimension of 1 that is squeezed': { nodes: [op('Squeeze', 'x', 'y')], by: 'Squeeze' },
  'a batch that Flatten puts into columns': {
    constants: { w: { shape: [24, 3] } },
    nodes: [op('Flatten', 'x', 'f', { axis: int(0) }), op('MatMul', 'f w', 'y')],
    by: 'MatMul',
  },
  'parts of the batch': {
    constants: { s: [1] },
    nodes: [op('Split', 'x s', 'y', { axis: int(0) })],
    by: 'Split',
  },
  'rows that are joined and follow the data': {
    constants: { a: [0], b: [1], i: [0] },
    nodes: [op('Gather', 'x i', 'g'), op('Concat', 'g x', 'y', { axis: int(1) })],
    by: 'Gather',
  },
  'a Reshape behind an operator that is not known': {
    constants: { s: [1, 24] },
    nodes: [
      { ...op('Custom', 'x', 'c'), domain: 'my.own' },
      op('Cast', 'c', 'f', { to: int(1) }),
      op('Reshape', 'f s', 'y'),
    ],
    by: '',
  },
}

describe.each(Object.entries(REFUSED).filter(([, { by }]) => by !== ''))('%s', (_, { by, ...described }) => {
  it.each([BATCH, 'N'])('cannot follow a batch of %s', async (batch) => {
    const model = modelOf(described)
    const bytes = await serialize(model)
    expect(() => setBatch(model, batch)).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED', message: expect.stringContaining(`: ${by} `) }),
    )
    expect(await serialize(model)).toEqual(bytes)
    const { blocked } = setBatch(model, batch, { allowPartial: true })
    expect(blocked.map(({ opType }) => opType)).toContain(by)
    expect(firstDim(model)).toBe(batch)
  })
})

/** `R` reshapes to a list of its attribute `to`, or to a constant; `Outer` calls it behind a node that follows by itself. */
function callsOf(nodes: readonly NewNode[], { opset = 17, constant = [1, 24] } = {}): OnnxModel {
  const model = modelOf({ constants: { k: { shape: [1, 4, 6] } }, nodes })
  const list = tensor(BigInt64Array.from(constant, BigInt), { shape: [constant.length] })
  const value = { type: 'TENSOR', value: list } as const
  const opsetImports = { '': opset }
  const reshape = [op('Constant', '', 's', { value }), op('Reshape', 'a s', 'b')]
  addFunction(model, {
    domain: 'own',
    name: 'R',
    inputs: ['a'],
    outputs: ['b'],
    opsetImports,
    nodes: reshape,
  })
  addFunction(model, {
    domain: 'own',
    name: 'Outer',
    inputs: ['a'],
    outputs: ['b'],
    opsetImports: { ...opsetImports, own: 1 },
    nodes: [op('Neg', 'a', 't'), call('R', 't', 'b')],
  })
  return model
}

const call = (name: string, input: string, output: string): NewNode => ({
  ...op(name, input, output),
  domain: 'own',
})

describe('functions', () => {
  it.each(['R', 'Outer'])('follow the batch where %s is called', async (name) => {
    const make = (): OnnxModel => callsOf([call(name, 'x', 'y')])
    for (const batch of [BATCH, 'N']) {
      const model = make()
      const { reshaped } = setBatch(model, batch)
      expect(reshaped.map(({ opType }) => opType)).toEqual(['Reshape'])
      expect((await check(await serialize(model), { level: 'strict' })).filter(isError)).toEqual([])
      if (runtime) await expectRowsOf(make(), model, [1, 4, 6])
    }
  })

  it('follow for one call and stay for another', async () => {
    const make = (): OnnxModel =>
      callsOf([call('R', 'x', 'one'), call('R', 'k', 'other'), op('Add', 'one other', 'y')])
    const model = make()
    expect(setBatch(model, BATCH).reshaped).toHaveLength(1)
    if (runtime) await expectRowsOf(make(), model, [1, 4, 6])
  })

  it('stay calls where nothing in them has to follow', () => {
    const model = callsOf([call('Outer', 'x', 'y')], { constant: [0, 24] })
    expect(setBatch(model, BATCH).reshaped).toEqual([])
    expect([...model.graph.allNodes()].map(({ opType }) => opType)).toEqual(['Outer'])
  })

  it('of other operator sets cannot follow', async () => {
    const model = callsOf([call('R', 'x', 'y')], { opset: 13 })
    const bytes = await serialize(model)
    expect(() => setBatch(model, BATCH)).toThrow(
      expect.objectContaining({
        code: 'ERR_UNSUPPORTED',
        message: expect.stringContaining(': Reshape that makes "y"'),
      }),
    )
    expect(await serialize(model)).toEqual(bytes)
    setBatch(model, BATCH, { allowPartial: true })
    expect(firstDim(model)).toBe(BATCH)
    const open = callsOf([call('R', 'x', 'y')], { opset: 13, constant: [0, 24] })
    expect(setBatch(open, BATCH).reshaped).toEqual([])
  })
})

it('leaves a Reshape alone where another dimension than the batch changes', () => {
  const model = modelOf({ x: [1, 3, 4, 4], constants: { s: [1, 48] }, nodes: [op('Reshape', 'x s', 'y')] })
  expect(() => setInputShape(model, 'x', [1, 3, 8, 8])).toThrow(
    /^Nodes do not fit the new shape: Reshape that makes "y"/,
  )
  const { blocked, reshaped } = setInputShape(model, 'x', [1, 3, 8, 8], { allowPartial: true })
  expect([blocked.length, reshaped.length]).toEqual([1, 0])
})

it('sets inputs that share a batch at once', () => {
  const model = modelOf({
    constants: { s: [1, 24] },
    nodes: [op('Reshape', 'x s', 'a'), op('Identity', 'a', 'y')],
  })
  model.graph.addInput('z', { ...FLOAT, shape: [1, 1, 6] })
  model.graph.addNode(op('Concat', 'x z', 'joined', { axis: int(1) }))
  expect(() => setInputShape(model, 'x', [3, 4, 6])).toThrow(/Concat/)
  setInputShape(model, { x: [3, 4, 6], z: [3, 1, 6] })
  expect(inferTypes(model).get('joined')).toEqual({ ...FLOAT, shape: [3, 5, 6] })
})

it('refuses an option that is no boolean', () => {
  const model = modelOf({ nodes: [op('Identity', 'x', 'y')] })
  for (const options of [{ allowPartial: 1 }, { allowpartial: true }])
    expect(() => setBatch(model, 2, options as never)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
})

it('takes -1 of exporters for an extent that is open', async () => {
  const model = OnnxModel.create()
  model.graph.addInput('x', { ...FLOAT, shape: ['N', 3, 'H'] })
  model.graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['y'] })
  model.graph.addOutput('y', { ...FLOAT, shape: ['N', 3, 'H'] })
  const [input] = model.graph.message.messages('input')
  const shape = input!.message('type')!.message('tensor_type')!.message('shape')!
  for (const at of [0, 2]) shape.messages('dim')[at]!.setInt('dim_value', -1)
  expect(model.graph.typeOf('x')).toMatchObject({ shape: [-1, 3, -1] })
  setBatch(model, 4)
  expect(model.graph.typeOf('x')).toMatchObject({ shape: [4, 3, null] })
  expect((await check(await serialize(model), { level: 'strict' })).filter(isError)).toEqual([])
})

function isError({ severity }: { readonly severity: string }): boolean {
  return severity === 'error'
}
