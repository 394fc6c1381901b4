/** extract and OnnxModel.copy: contents of the part, refused arguments, and that the whole model does not change. */
import { describe, expect, it } from 'vitest'
import {
  check,
  type DenseTensor,
  type OpenFile,
  open,
  serialize,
  TileworkError,
  tensor,
} from '../../../../lib/index.js'
import { addFunction, extract, Graph, OnnxModel, type ValueType } from '../../../../lib/onnx.js'
import { entry, field, join } from '../../../formats/onnx/onnx_bytes.js'

const PAIR: ValueType = { kind: 'tensor', dtype: 'float32', shape: ['N', 2] }

/** x -> Mul(w1) -> a -> Relu -> b -> Add(w2) -> y, and from a -> Neg -> z. */
function chain(options: { irVersion?: number } = {}): OnnxModel {
  const model = OnnxModel.create(options)
  const { graph } = model
  graph.addInput('x', PAIR)
  graph.addNode({ opType: 'Mul', name: 'first', inputs: ['x', 'w1'], outputs: ['a'] })
  graph.addNode({ opType: 'Relu', name: 'second', inputs: ['a'], outputs: ['b'] })
  graph.addNode({ opType: 'Neg', name: 'aside', inputs: ['a'], outputs: ['z'] })
  graph.addNode({ opType: 'Add', name: 'last', inputs: ['b', 'w2'], outputs: ['y'] })
  graph.setInitializer('w1', tensor(Float32Array.of(1, 2), { shape: [2] }))
  graph.setInitializer('w2', tensor(Float32Array.of(3, 4), { shape: [2] }))
  graph.addOutput('y', PAIR)
  graph.addOutput('z', PAIR)
  graph.setType('a', PAIR)
  graph.setType('b', PAIR)
  return model
}

/** Saves a model and opens it again without findings. */
async function written(model: OnnxModel): Promise<OpenFile> {
  const bytes = await serialize(model)
  expect(await check(bytes, { level: 'strict' })).toEqual([])
  return open(bytes)
}

function partsOf({ graph }: OnnxModel): unknown {
  return {
    nodes: graph.nodes.map(({ name }) => name),
    inputs: graph.inputs.map(({ name, type }) => [name, type]),
    outputs: graph.outputs.map(({ name, type }) => [name, type]),
    initializers: graph.initializerNames,
    valueInfo: graph.valueInfo.map(({ name }) => name),
  }
}

describe('extract', () => {
  it('extracts the nodes between values, with types and initializers', async () => {
    using whole = await open(await serialize(chain()))
    const before = await serialize(whole)
    const part = extract(whole.onnx!, ['a'], ['y'])
    expect(partsOf(part)).toEqual({
      nodes: ['second', 'last'],
      inputs: [['a', PAIR]],
      outputs: [['y', PAIR]],
      initializers: ['w2'],
      valueInfo: ['b'],
    })
    using file = await written(part)
    expect(await file.dense('w2').toTypedArray()).toEqual(Float32Array.of(3, 4))
    expect(partsOf(file.onnx!)).toEqual(partsOf(part))
    expect(whole.onnx!.isChanged).toBe(false)
    expect(await serialize(whole)).toEqual(before)
  })

  it('extracts the whole model between its inputs and outputs, in the given order', async () => {
    const whole = chain()
    const part = extract(whole, ['x'], ['z', 'y'])
    expect(part.graph.outputs.map(({ name }) => name)).toEqual(['z', 'y'])
    expect(part.graph.nodes.length).toBe(4)
    expect(part.opsetImports).toEqual(whole.opsetImports)
    using file = await written(part)
    expect(file.tensors.length).toBe(2)
  })

  it('extracts the edited model, and both are independent afterwards', async () => {
    using whole = await open(await serialize(chain()))
    whole.onnx!.graph.setInitializer('w2', tensor(Float32Array.of(7, 8), { shape: [2] }))
    whole.onnx!.graph.nodes[1]!.opType = 'Tanh'
    const part = extract(whole.onnx!, ['a'], ['y'])
    part.graph.rename('b', 'renamed')
    part.producerName = 'somebody'
    expect(whole.onnx!.graph.value('renamed')).toBeUndefined()
    expect(whole.onnx!.producerName).toBe('')
    using file = await written(part)
    expect(file.onnx!.graph.nodes.map(({ opType }) => opType)).toEqual(['Tanh', 'Add'])
    expect(await file.dense('w2').toTypedArray()).toEqual(Float32Array.of(7, 8))
  })

  it('turns an initializer into an input without a value, and needs no inputs otherwise', async () => {
    const whole = chain()
    const part = extract(whole, ['b', 'w2'], ['y'])
    expect(part.graph.inputs).toMatchObject([
      { name: 'b', type: PAIR },
      { name: 'w2', type: { kind: 'tensor', dtype: 'float32', shape: [2] } },
    ])
    expect(part.graph.initializerNames).toEqual([])
    await written(part)
    whole.graph.addNode({ opType: 'Abs', inputs: ['w1'], outputs: ['constant'] })
    const constant = extract(whole, [], ['constant'])
    expect(partsOf(constant)).toMatchObject({ inputs: [], initializers: ['w1'] })
  })

  it('keeps the type of an output that becomes an intermediate value', async () => {
    const whole = chain()
    whole.graph.addNode({ opType: 'Abs', inputs: ['z'], outputs: ['behind'] })
    whole.graph.setType('behind', PAIR)
    const part = extract(whole, ['a'], ['behind'])
    expect(partsOf(part)).toMatchObject({
      nodes: ['aside', ''],
      valueInfo: ['z'],
      outputs: [['behind', PAIR]],
    })
    expect(part.graph.typeOf('z')).toEqual(PAIR)
    await written(part)
  })

  it('allows an input as an output', async () => {
    const part = extract(chain(), ['a'], ['a', 'z'])
    expect(partsOf(part)).toMatchObject({ nodes: ['aside'], initializers: [], valueInfo: [] })
    await written(part)
  })

  it('follows names that subgraphs take from outside', async () => {
    const whole = chain()
    const inner = Graph.create('inner')
    inner.addNode({ opType: 'Mul', inputs: ['b', 'w1'], outputs: ['inside'] })
    inner.addOutput('inside', PAIR)
    whole.graph.setInitializer('c', tensor([1], { dtype: 'bool', shape: [] }))
    const branch = { type: 'GRAPH', value: inner } as const
    const attributes = { then_branch: branch, else_branch: branch }
    whole.graph.addNode({ opType: 'If', name: 'if', inputs: ['c'], outputs: ['chosen'], attributes })
    whole.graph.addOutput('chosen', PAIR)
    const part = extract(whole, ['a'], ['chosen'])
    expect(partsOf(part)).toMatchObject({ nodes: ['second', 'if'], initializers: ['w1', 'c'] })
    await written(part)
    expect(() => extract(whole, ['c'], ['chosen'])).toThrow(/"x".* not among the inputs/)
  })

  /** An If, in whose branches a Loop runs: `deep` is in the body, `shallow` beside it. */
  function nested(): OnnxModel {
    const whole = chain()
    const body = Graph.create('body')
    body.addInput('i', { kind: 'tensor', dtype: 'int64', shape: [] })
    body.addInput('go', { kind: 'tensor', dtype: 'bool', shape: [] })
    body.addInput('state', PAIR)
    body.setInitializer('k', tensor(Float32Array.of(3, 4)))
    body.addNode({ opType: 'Mul', inputs: ['state', 'k'], outputs: ['scaled'] })
    body.addNode({ opType: 'Add', inputs: ['scaled', 'shallow'], outputs: ['deep'] })
    body.addNode({ opType: 'Identity', inputs: ['go'], outputs: ['again'] })
    body.addOutput('again', { kind: 'tensor', dtype: 'bool', shape: [] })
    body.addOutput('deep', PAIR)
    const inner = Graph.create('inner')
    inner.addNode({ opType: 'Abs', inputs: ['b'], outputs: ['shallow'] })
    const loop = { body: { type: 'GRAPH', value: body } } as const
    const inputs = ['times', '', 'shallow']
    inner.setInitializer('times', tensor([3n], { dtype: 'int64', shape: [] }))
    inner.addNode({ opType: 'Loop', name: 'loop', inputs, outputs: ['chosen'], attributes: loop })
    inner.addOutput('chosen', PAIR)
    whole.graph.setInitializer('c', tensor([1], { dtype: 'bool', shape: [] }))
    const branch = { type: 'GRAPH', value: inner } as const
    const attributes = { then_branch: branch, else_branch: branch }
    whole.graph.addNode({ opType: 'If', name: 'if', inputs: ['c'], outputs: ['chosen'], attributes })
    whole.graph.addOutput('chosen', PAIR)
    return whole
  }

  it.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ['a value of a branch', ['x'], ['shallow'], ['Mul', 'Relu', 'Abs']],
    [
      'a value of a branch and the output of its node',
      ['x'],
      ['shallow', 'chosen'],
      ['Mul', 'Relu', 'If', 'Abs'],
    ],
    ['one iteration of a body in a branch', ['x', 'state'], ['deep'], ['Mul', 'Relu', 'Abs', 'Mul', 'Add']],
    ['a part of a body', ['shallow', 'state'], ['deep'], ['Mul', 'Add']],
    ['a part of a body behind one of its values', ['scaled', 'x'], ['deep'], ['Mul', 'Relu', 'Abs', 'Add']],
    ['an input of a body', ['go'], ['again'], ['Identity']],
  ])('cuts %s', async (_, inputs, outputs, operators) => {
    const part = extract(nested(), inputs, outputs)
    expect(part.graph.nodes.map(({ opType }) => opType)).toEqual(operators)
    expect([[...part.graph.inputNames], [...part.graph.outputNames]]).toEqual([inputs, outputs])
    expect((await check(await serialize(part), { level: 'strict' })).map(({ message }) => message)).toEqual(
      [],
    )
  })

  it('refuses what no value of a branch or body explains, and needs the inputs of a body', () => {
    const whole = nested()
    expect(() => extract(whole, ['shallow', 'x'], ['chosen'])).toThrow(
      'The input "shallow" is inside the node "if" (If); the outputs must be values inside it, too.',
    )
    expect(() => extract(whole, ['x'], ['deep'])).toThrow(
      'The outputs need "state", an input of the graph, which is not among the inputs.',
    )
    expect(() => extract(whole, ['x'], ['shallo'])).toThrow(/^The graph has no value "shallo"/)
  })

  it('keeps functions that are called, also indirectly, and drops training', async () => {
    const model = chain()
    const body = { inputs: ['p'], outputs: ['q'], domain: 'own' }
    const node = (opType: string, domain = '') => ({ opType, domain, inputs: ['p'], outputs: ['q'] })
    addFunction(model, { ...body, name: 'Inner', nodes: [node('Abs')] })
    addFunction(model, { ...body, name: 'Outer', nodes: [node('Inner', 'own')] })
    addFunction(model, { ...body, name: 'Unused', nodes: [node('Abs')] })
    model.graph.addNode({ opType: 'Outer', domain: 'own', inputs: ['a'], outputs: ['called'] })
    model.graph.addOutput('called', PAIR)
    const training = field(20, field(2, field(2, 'training')))
    using whole = await open(join(await serialize(model), training))
    const named = (part: OnnxModel): string[] => part.functions.map(({ name }) => name)
    expect(named(extract(whole.onnx!, ['a'], ['called']))).toEqual(['Inner', 'Outer'])
    expect(named(extract(whole.onnx!, ['a'], ['z']))).toEqual([])
    expect(whole.onnx!.trainingInfo.length).toBe(1)
    expect(extract(whole.onnx!, ['a'], ['z']).trainingInfo).toEqual([])
    await written(extract(whole.onnx!, ['a'], ['called']))
  })

  it('keeps quantization annotations with the tensors that they name', async () => {
    const plain = chain()
    plain.graph.setInitializer('scale', tensor(Float32Array.of(0.5), { shape: [] }))
    for (const [value, parameter] of [
      ['b', 'scale'],
      ['x', 'w1'],
    ]) {
      const annotation = plain.graph.message.insert('quantization_annotation')
      annotation.setText('tensor_name', value!)
      const named = annotation.insert('quant_parameter_tensor_names')
      named.setText('key', 'SCALE_TENSOR')
      named.setText('value', parameter!)
    }
    const part = extract(plain, ['a'], ['y'])
    expect(part.graph.initializerNames).toEqual(['w2', 'scale'])
    expect(part.graph.message.messages('quantization_annotation').length).toBe(1)
  })

  it('keeps initializers of old models among the inputs', async () => {
    const whole = chain({ irVersion: 3 })
    for (const name of ['w1', 'w2'])
      whole.graph.addInput(name, { kind: 'tensor', dtype: 'float32', shape: [2] })
    const part = extract(whole, ['a'], ['y'])
    expect(part.graph.inputs.map(({ name }) => name)).toEqual(['a', 'w2'])
    expect(extract(chain(), ['a'], ['y']).graph.inputs.length).toBe(1)
  })

  it.each<[string, string[], string[], RegExp]>([
    ['no output', ['x'], [], /at least one output/],
    ['an unknown input', ['nobody'], ['y'], /no value "nobody"/],
    ['an unknown output', ['x'], ['nobody'], /no value "nobody"/],
    ['an input twice', ['a', 'a'], ['y'], /twice among the inputs/],
    ['an output twice', ['a'], ['y', 'y'], /twice among the outputs/],
    ['a missing input', ['b'], ['z'], /need "x", an input of the graph/],
    ['an input without a type', ['untyped', 'x'], ['y'], /setType/],
    ['a needed node that produces an input', ['left'], ['both'], /produces "left"/],
    ['a string for a list', 'a' as never, ['y'], /array/],
    ['a number for a name', [5 as never], ['y'], /takes a string; 5 was given/],
  ])('refuses %s, and changes nothing', async (_, inputs, outputs, message) => {
    const whole = chain()
    whole.graph.addNode({ opType: 'Unknown', inputs: ['a'], outputs: ['untyped'] })
    whole.graph.addNode({ opType: 'Split', inputs: ['a'], outputs: ['left', 'right'] })
    whole.graph.addNode({ opType: 'Add', inputs: ['left', 'right'], outputs: ['both'] })
    whole.graph.setType('left', PAIR)
    const before = await serialize(whole)
    const attempt = (): unknown => extract(whole, inputs, outputs)
    expect(attempt).toThrow(TileworkError)
    expect(attempt).toThrow(message)
    expect(await serialize(whole)).toEqual(before)
  })
})

describe('extract, edge cases', () => {
  it('handles more inputs per node than a call has arguments, and many outputs', () => {
    const model = OnnxModel.create()
    model.graph.addInput('x', PAIR)
    const outputs = Array.from({ length: 20_000 }, (_, at) => `y${at}`)
    model.graph.addNode({ opType: 'Concat', inputs: Array(200_000).fill('x'), outputs: ['a'] })
    model.graph.addNode({ opType: 'Split', inputs: ['a'], outputs })
    expect(extract(model, ['x'], outputs).graph.outputs).toHaveLength(outputs.length)
  })

  it('knows the type of an initializer that becomes an output', () => {
    const { graph } = extract(chain(), [], ['w1'])
    expect(graph.outputs.map(({ name, type }) => [name, type])).toEqual([
      ['w1', { kind: 'tensor', dtype: 'float32', shape: [2] }],
    ])
  })

  it.each(['a', 'b'])('gives %s the shape that follows, where its declaration has none', (name) => {
    const model = chain()
    for (const each of ['a', 'b']) model.graph.setType(each, { kind: 'tensor', dtype: 'float32' })
    expect(extract(model, ['x'], [name]).graph.outputs[0]!.type).toEqual(PAIR)
    expect(extract(model, [name], ['y']).graph.inputs[0]!.type).toEqual(PAIR)
  })

  it('keeps a declaration without a shape where none follows', () => {
    const model = chain()
    const open: ValueType = { kind: 'tensor', dtype: 'float32' }
    model.graph.addNode({ opType: 'Unknown', domain: 'other', inputs: ['a'], outputs: ['u'] })
    model.graph.setType('u', open)
    expect(extract(model, ['x'], ['u']).graph.outputs[0]!.type).toEqual(open)
  })

  it('refuses lists that throw while they are read', () => {
    const broken = new Proxy(['a'], {
      get() {
        throw new Error('out of order')
      },
    })
    for (const attempt of [() => extract(chain(), broken, ['y']), () => extract(chain(), ['a'], broken)]) {
      expect(attempt).toThrow(expect.objectContaining({ name: 'TileworkError', code: 'ERR_ARGUMENT' }))
    }
  })
})

it('a copy is the model as it is now, and independent', async () => {
  using file = await open(join(await serialize(chain()), field(14, entry('key', 'value'))))
  const copy = file.onnx!.copy()
  expect(await serialize(copy)).toEqual(await serialize(file))
  copy.setMetadata('key', 'other')
  expect(file.onnx!.metadata.get('key')).toBe('value')
  const again = copy.copy()
  copy.setMetadata('key', 'third')
  expect(again.metadata.get('key')).toBe('other')
  expect(file.onnx!.isChanged).toBe(false)
})

it('a copy and its model replace and remove initializers that both have got, each its own', async () => {
  const model = OnnxModel.create({ opset: 17 })
  const valued = (value: number) => tensor(Float32Array.of(value), { shape: [1] })
  for (const name of ['a', 'b']) model.graph.setInitializer(name, valued(1))
  const copy = model.copy()
  const valuesOf = ({ graph }: OnnxModel) =>
    Promise.all(
      Array.from(graph.initializers(), async (each) => [
        each.name,
        await (each as DenseTensor).toTypedArray(),
      ]),
    )
  copy.graph.removeInitializer('b')
  model.graph.setInitializer('a', valued(2))
  model.graph.setInitializer('b', valued(3))
  expect(await valuesOf(copy)).toEqual([['a', Float32Array.of(1)]])
  expect(await valuesOf(model)).toEqual([
    ['a', Float32Array.of(2)],
    ['b', Float32Array.of(3)],
  ])
})
