/** Edits of models: what each changes and keeps, and that the written file is valid. */

import { describe, expect, it } from 'vitest'
import { check, type DenseTensor, open, serialize, tensor as tensorOf } from '../../../../lib/index.js'
import {
  addConstant,
  castWeights,
  createNode,
  cut,
  fillWeights,
  insertNode,
  mergeConstants,
  removeNode,
  removeUnused,
  rename,
  replaceAllUses,
  replaceConstant,
  replaceNode,
  setBatch,
  setInputShape,
  setOutputs,
  stripNames,
  stripWeights,
  type TmfileModel,
  type TmfileNode,
} from '../../../../lib/tmfile.js'
import { constant, node, smallModel, variable } from '../../../formats/tmfile/tmfile_bytes.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../../shared_fixtures.js'

/** Writes the model, checks the file in strict mode, and reads it back. */
async function written(model: TmfileModel): Promise<TmfileModel> {
  const bytes = await serialize(model)
  expect((await check(bytes, { level: 'strict' })).filter(({ severity }) => severity === 'error')).toEqual([])
  return (await open(bytes, { level: 'strict' })).tmfile!
}

const modelOf = async (name: string): Promise<TmfileModel> => (await open(thirdPartyPath(name))).tmfile!
const names = (list: readonly { readonly name: string | null }[]) => list.map(({ name }) => name)
const named = (nodes: readonly TmfileNode[], name: string): TmfileNode =>
  nodes.find((each) => each.name === name)!

describe('names', () => {
  it('renames a tensor and its node together', async () => {
    const model = smallModel()
    expect(rename(model, 'conv/w', 'weights')).toBe(2)
    const { graph } = await written(model)
    expect(names(graph.tensors)).toEqual(['data', 'weights', 'conv/b', 'conv'])
    expect(names(graph.nodes)).toEqual(['data', 'weights', 'conv/b', 'conv'])
  })

  it('rejects a taken name and a missing one', () => {
    expect(() => rename(smallModel(), 'conv', 'data')).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
    expect(() => rename(smallModel(), 'nobody', 'x')).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
  })

  it('rejects every edit that would duplicate a name, and leaves the model unchanged', async () => {
    const refused = expect.objectContaining({ code: 'ERR_GRAPH' })
    const model = smallModel()
    const before = await serialize(model)
    const [data, , , conv] = model.graph.tensors
    const twin = (name: string) => node(name, 'ReLu', [conv!], [variable('new')])
    expect(() => insertNode(model, twin('conv'))).toThrow(refused)
    expect(() => insertNode(model, node('r', 'ReLu', [data!], [variable('conv')]))).toThrow(refused)
    const pair = [variable('twice'), variable('twice')]
    expect(() => insertNode(model, node('r', 'Split', [data!], pair))).toThrow(refused)
    expect(() => replaceNode(model, 'conv', node('data', 'ReLu', [data!], [conv!]))).toThrow(refused)
    expect(() => replaceNode(model, 'conv', node('conv', 'ReLu', [variable('data')], [conv!]))).toThrow(
      refused,
    )
    expect(() => addConstant(model, 'conv', tensorOf([1], { dtype: 'float32' }) as DenseTensor)).toThrow(
      refused,
    )
    expect(await serialize(model)).toEqual(before)
    named(model.graph.nodes, 'conv').name = 'c'
    expect(() => rename(model, 'c', 'data')).toThrow(refused)
    expect(() => addConstant(model, 'c', tensorOf([1], { dtype: 'float32' }) as DenseTensor)).toThrow(refused)
  })

  it('a cut duplicates no tensor and no name', () => {
    const refused = expect.objectContaining({ code: 'ERR_GRAPH' })
    const model = smallModel()
    const [left, right] = [variable('left'), variable('right')]
    insertNode(model, node('left', 'Split', [model.graph.tensors[3]!], [left, right]))
    insertNode(model, node('sum', 'Eltwise', [left, right], [variable('sum')]))
    expect(() => cut(model, ['left', 'data'], ['sum'])).toThrow(refused)
    named(model.graph.nodes, 'sum').name = 'conv'
    named(model.graph.nodes, 'conv').name = 'c'
    named(model.graph.nodes, 'left').name = 'conv'
    expect(() => cut(model, ['conv', 'conv'], ['sum'])).toThrow(refused)
    named(model.graph.nodes, 'conv').name = 'l'
    named(model.graph.nodes, 'conv').name = 's'
    cut(model, ['conv', 'conv'], ['sum'])
    expect(names(model.graph.nodes)).toEqual(['conv', 'l', 's'])
  })

  it('a replacement may reuse the names of the old node and its constants', async () => {
    const model = smallModel()
    const [data, , , conv] = model.graph.tensors
    const scale = constant('conv/w', [3], [1, 2, 3])
    insertNode(model, node('gamma', 'Const', [], [{ ...scale, name: 'gamma' }]))
    replaceNode(
      model,
      'conv',
      node('conv', 'Scale', [data!, scale], [variable('conv', conv!.shape)], { axis: 1 }),
    )
    insertNode(model, node('conv/w', 'Const', [], [scale]), 0)
    expect(names(model.graph.tensors)).toEqual(['data', 'gamma', 'conv/w', 'conv'])
  })

  it.each(['', 'a\0b', '\ud800'])('rejects %j as a name', (name) => {
    const refused = expect.objectContaining({ code: 'ERR_ARGUMENT' })
    const model = smallModel()
    const inputs = ['data']
    expect(() => rename(model, 'conv', name)).toThrow(refused)
    expect(() => addConstant(model, name, tensorOf([1], { dtype: 'float32' }) as DenseTensor)).toThrow(
      refused,
    )
    expect(() => createNode(model, { operator: 'ReLu', name, inputs })).toThrow(refused)
    expect(() => createNode(model, { operator: 'ReLu', outputs: [name], inputs })).toThrow(refused)
    expect(() => insertNode(model, node(name, 'ReLu', [model.graph.tensors[0]!], [variable('r')]))).toThrow(
      refused,
    )
    expect(() => insertNode(model, node('r', 'ReLu', [model.graph.tensors[0]!], [variable(name)]))).toThrow(
      refused,
    )
  })

  it('strips names', async () => {
    const model = smallModel()
    stripNames(model)
    const { graph } = await written(model)
    expect(names([...graph.tensors, ...graph.nodes])).toEqual(new Array(8).fill(null))
  })
})

describe('shapes', () => {
  it('a batch size propagates through the graph and into Reshape targets', async () => {
    const model = smallModel()
    const flat = variable('flat', [1, 32])
    insertNode(model, node('flat', 'Reshape', [model.graph.tensors[3]!], [flat], { re_shape: [1, 32] }))
    setOutputs(model, ['flat'])
    expect(names(setBatch(model, 4).reshaped)).toEqual(['flat'])
    const { graph } = await written(model)
    expect(graph.tensors.map(({ shape }) => shape)).toEqual([
      [4, 3, 4, 4],
      [2, 3, 1, 1],
      [2],
      [4, 2, 4, 4],
      [4, 32],
    ])
    expect(named(graph.nodes, 'flat').params).toMatchObject({ re_shape: [4, 32] })
  })

  it('a Reshape with -1 does not fit where the other dimensions do not divide the elements', async () => {
    const model = smallModel()
    const flat = variable('flat', [1, 32])
    insertNode(model, node('flat', 'Reshape', [model.graph.tensors[3]!], [flat], { re_shape: [-1, 32] }))
    expect(names(setInputShape(model, 'data', [1, 3, 5, 5]).blocked)).toEqual(['flat'])
    expect(setInputShape(model, 'data', [1, 3, 8, 8]).blocked).toEqual([])
    expect(flat.shape).toEqual([4, 32])
  })

  it('a FullyConnected does not fit where its weights take another number of inputs', () => {
    const model = smallModel()
    const out = variable('out', [1, 3, 1, 1])
    const weights = constant(
      'fc/w',
      [3, 32],
      Array.from({ length: 96 }, () => 0),
    )
    insertNode(
      model,
      node('fc', 'FullyConnected', [model.graph.tensors[3]!, weights], [out], { num_output: 3 }),
    )
    expect(names(setInputShape(model, 'data', [1, 3, 5, 5]).blocked)).toEqual(['fc'])
    expect(out.shape).toBe(null)
    expect(setInputShape(model, 'data', [1, 3, 2, 8]).blocked).toEqual([])
    expect(out.shape).toEqual([1, 3, 1, 1])
  })

  it('another size changes the shapes that follow, and lists Reshape nodes that do not fit', async () => {
    const model = smallModel()
    const flat = variable('flat', [1, 32])
    insertNode(model, node('flat', 'Reshape', [model.graph.tensors[3]!], [flat], { re_shape: [1, 32] }))
    const { blocked, reshaped, unknown } = setInputShape(model, 'data', [1, 3, 8, 8])
    expect([names(blocked), reshaped, unknown]).toEqual([['flat'], [], [flat]])
    const { graph } = await written(model)
    expect(graph.tensors.map(({ shape }) => shape)).toEqual([
      [1, 3, 8, 8],
      [2, 3, 1, 1],
      [2],
      [1, 2, 8, 8],
      null,
    ])
  })

  it.each([
    ['conv', [1, 2, 4, 4], 'ERR_GRAPH'],
    ['nobody', [1], 'ERR_ARGUMENT'],
    ['data', [0, 3, 4, 4], 'ERR_ARGUMENT'],
    ['data', [1.5], 'ERR_ARGUMENT'],
    ['data', [1, 3, 4], 'ERR_ARGUMENT'],
    ['data', [1, 3, 4, 4, 1], 'ERR_ARGUMENT'],
    ['data', new Array(9).fill(1), 'ERR_RANK'],
  ])('%s cannot be %j', (name, shape, code) => {
    expect(() => setInputShape(smallModel(), name, shape)).toThrow(expect.objectContaining({ code }))
  })
})

it('an input of unknown shape accepts any rank', () => {
  for (const shape of [null, []]) {
    const model = smallModel()
    model.graph.tensors[0]!.shape = shape
    setInputShape(model, 'data', [1, 3, 4])
    expect(model.graph.tensors[0]!.shape).toEqual([1, 3, 4])
  }
})

describe('nodes', () => {
  it('removing a node connects its input to its consumers, and removes its constants', async () => {
    const model = smallModel()
    const result = variable('relu', [1, 2, 4, 4])
    insertNode(model, node('relu', 'ReLu', [model.graph.tensors[3]!], [result]))
    setOutputs(model, ['relu'])
    removeNode(model, 'conv')
    const { graph } = await written(model)
    expect(names(graph.nodes)).toEqual(['data', 'relu'])
    expect(names(named(graph.nodes, 'relu').inputs)).toEqual(['data'])
    expect(graph.buffers).toEqual([])
  })

  it('removing an output makes the previous node the output', async () => {
    const model = smallModel()
    const result = variable('relu', [1, 2, 4, 4])
    insertNode(model, node('relu', 'ReLu', [model.graph.tensors[3]!], [result]))
    setOutputs(model, ['relu'])
    removeNode(model, 'relu')
    expect(names((await written(model)).graph.outputs)).toEqual(['conv'])
  })

  it('inserts a node after the producers of its inputs, with its tensors and buffers', async () => {
    const model = smallModel()
    const scale = constant('scale', [2], [1, 2])
    const scaled = variable('scaled', [1, 2, 4, 4])
    insertNode(model, node('scale', 'Const', [], [scale]))
    insertNode(model, node('scaled', 'Scale', [model.graph.tensors[3]!, scale], [scaled], { axis: 1 }))
    setOutputs(model, ['scaled'])
    const { graph } = await written(model)
    expect(names(graph.nodes)).toEqual(['scale', 'data', 'conv/w', 'conv/b', 'conv', 'scaled'])
    expect(names(graph.outputs)).toEqual(['scaled'])
    expect(graph.buffers).toHaveLength(3)
  })

  it('rejects a node before its producers, and a second producer', () => {
    const model = smallModel()
    const early = node('early', 'ReLu', [model.graph.tensors[3]!], [variable('early')])
    expect(() => insertNode(model, early, 0)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
    const twice = node('twice', 'ReLu', [model.graph.tensors[0]!], [model.graph.tensors[3]!])
    expect(() => insertNode(model, twice)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
  })

  it('replaces a node', async () => {
    const model = smallModel()
    const { tensors } = model.graph
    replaceNode(
      model,
      'conv',
      node('average', 'Pooling', [tensors[0]!], [tensors[3]!], { alg: 1, global: 1 }),
    )
    const { graph } = await written(model)
    expect(graph.nodes.map(({ operator }) => operator)).toEqual(['InputOp', 'Pooling'])
    expect(names(graph.outputs)).toEqual(['average'])
    expect(graph.buffers).toEqual([])
  })

  it('rejects a replacement that does not produce a used output', () => {
    const model = smallModel()
    insertNode(model, node('relu', 'ReLu', [model.graph.tensors[3]!], [variable('relu')]))
    const other = node('other', 'ReLu', [model.graph.tensors[0]!], [variable('other')])
    expect(() => replaceNode(model, 'conv', other)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
  })
})

describe('new nodes and constants', () => {
  it('a new node has the defaults of its operator and a new output', async () => {
    const model = smallModel()
    insertNode(
      model,
      createNode(model, { operator: 'Clip', name: 'clip', inputs: ['conv'], params: { max: 6 } }),
    )
    replaceAllUses(model, 'conv', 'clip')
    const { graph } = await written(model)
    const clip = named(graph.nodes, 'clip')
    expect([clip.params, names(clip.inputs), names(graph.outputs)]).toEqual([
      { max: 6, min: 0 },
      ['conv'],
      ['clip'],
    ])
    expect(clip.outputs[0]).toMatchObject({ dtype: 'float32', shape: null, role: 'variable' })
  })

  it('operatorNumber selects one of two operators with the same name', () => {
    const model = smallModel()
    const resize = { operator: 'Resize', name: 'resize' } as const
    expect(createNode(model, resize).operatorNumber).toBe(54)
    expect(createNode(model, { ...resize, operatorNumber: 2 }).operatorNumber).toBe(2)
  })

  it('adds a constant with its node and its scales', async () => {
    const model = smallModel()
    const numbers = tensorOf([1, 2], { dtype: 'int8' }) as DenseTensor
    const scales = { scales: Float32Array.of(0.5), zeroPoints: Int32Array.of(1), widths: Int32Array.of(0) }
    const added = addConstant(model, 'more', numbers, scales)
    expect(added.quantization).toEqual(scales)
    expect(() => addConstant(model, 'more', numbers)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
    const count = model.graph.tensors.length
    expect(() => addConstant(model, 'wide', tensorOf([1n], { dtype: 'int64' }) as DenseTensor)).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
    expect(model.graph.tensors).toHaveLength(count)
    expect(named((await written(model)).graph.nodes, 'more').operator).toBe('Const')
  })

  it.each<[string, object]>([
    ['an unknown operator', { operator: 'Relu', name: 'x' }],
    ['another number', { operator: 'ReLu', operatorNumber: 5, name: 'x' }],
    ['an unknown parameter', { operator: 'ReLu', name: 'x', params: { slope: 1 } }],
    ['an unknown field', { operator: 'ReLu', name: 'x', input: [] }],
    ['an input that is nowhere', { operator: 'ReLu', name: 'x', inputs: ['nobody'] }],
    ['neither name nor outputs', { operator: 'ReLu' }],
  ])('%s makes no node', (_, description) => {
    expect(() => createNode(smallModel(), description as never)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })

  it('rejects a consumer before its producer', () => {
    const model = smallModel()
    insertNode(model, node('relu', 'ReLu', [model.graph.tensors[3]!], [variable('relu')]))
    expect(() => replaceAllUses(model, 'data', 'relu')).toThrow(
      expect.objectContaining({ code: 'ERR_GRAPH' }),
    )
    const late = node('conv', 'ReLu', [model.graph.tensors.at(-1)!], [model.graph.tensors[3]!])
    expect(() => replaceNode(model, 'conv', late)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
  })
})

describe('constants', () => {
  it('replaces data, dtype and quantization parameters', async () => {
    const model = smallModel()
    const numbers = tensorOf([1, -2, 3, -4, 5, -6], { dtype: 'int8', shape: [2, 3, 1, 1] }) as DenseTensor
    const quantization = {
      scales: Float32Array.of(0.5, 0.25),
      zeroPoints: new Int32Array(2),
      widths: new Int32Array(2),
    }
    replaceConstant(model, 'conv/w', numbers, quantization)
    // A strict read refuses one constant of another type.
    const bytes = await serialize((await open(await serialize(model))).tmfile!)
    const file = await open(bytes)
    const weight = file.dense('conv/w')
    expect([weight.dtype, weight.shape]).toEqual(['int8', [2, 3, 1, 1]])
    expect([...(await weight.toTypedArray())]).toEqual([1, -2, 3, -4, 5, -6])
    expect([...file.tmfile!.graph.tensors[1]!.quantization!.scales]).toEqual([0.5, 0.25])
    expect(file.tmfile!.graph.buffers).toHaveLength(2)
  })

  it('rejects data that a tmfile cannot hold', () => {
    const numbers = tensorOf([1], { dtype: 'float64' }) as DenseTensor
    expect(() => replaceConstant(smallModel(), 'conv/w', numbers)).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
    expect(() => replaceConstant(smallModel(), 'conv', numbers)).toThrow(
      expect.objectContaining({ code: 'ERR_GRAPH' }),
    )
  })

  it('strips weights, keeps their sizes, and fills them again', async () => {
    const model = smallModel()
    stripWeights(model)
    const stripped = await written(model)
    expect(stripped.graph.buffers).toEqual([
      { byteLength: 24, data: null },
      { byteLength: 8, data: null },
    ])
    fillWeights(stripped, ({ shape }) => {
      const count = shape!.reduce((product, extent) => product * extent, 1)
      return tensorOf(new Array<number>(count).fill(0.5), { dtype: 'float32', shape: shape! }) as DenseTensor
    })
    const filled = await open(await serialize(await written(stripped)))
    expect([...(await filled.dense('conv/b').toTypedArray())]).toEqual([0.5, 0.5])
    const wrong = () => tensorOf([1], { dtype: 'int8' }) as DenseTensor
    stripWeights(stripped)
    expect(() => fillWeights(stripped, wrong)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
  })

  it('merges constants with equal bytes', async () => {
    const model = smallModel()
    const twin = constant('twin', [1, 2], [7, 8])
    const other = constant('other', [2], [8, 7])
    const sums = [variable('sum 1'), variable('sum 2')]
    for (const each of [twin, other]) insertNode(model, node(each.name!, 'Const', [], [each]))
    insertNode(model, node('sum 1', 'Eltwise', [model.graph.tensors[3]!, twin], [sums[0]!], { type: 2 }))
    insertNode(model, node('sum 2', 'Eltwise', [sums[0]!, other], [sums[1]!], { type: 2 }))
    setOutputs(model, ['sum 2'])
    const before = (await serialize(model)).length
    expect(await mergeConstants(model)).toBe(8)
    const merged = await written(model)
    expect(merged.graph.buffers).toHaveLength(3)
    expect(merged.graph.tensors.find(({ name }) => name === 'twin')!.buffer).toBe(
      merged.graph.tensors[2]!.buffer,
    )
    expect((await serialize(merged)).length).toBeLessThan(before)
  })
})

/** Calls with invalid arguments; each must leave the model unchanged. */
const INVALID_CALLS: readonly (readonly [string, (model: TmfileModel) => unknown])[] = [
  ['no shape', (model) => setInputShape(model, 'data', null as never)],
  ['an empty shape', (model) => setInputShape(model, 'data', [])],
  ['text for a shape', (model) => setInputShape(model, 'data', '1,3' as never)],
  ['a negative batch', (model) => setBatch(model, -1)],
  ['no batch', (model) => setBatch(model, null as never)],
  ['no ends', (model) => cut(model, null as never, null as never)],
  ['text for ends', (model) => cut(model, 'data' as never, 'conv' as never)],
  ['no outputs', (model) => setOutputs(model, null as never)],
  ['numbers for outputs', (model) => setOutputs(model, [3] as never)],
  ['no node', (model) => insertNode(model, null as never)],
  ['a node without fields', (model) => insertNode(model, {} as never)],
  [
    'a node with half a tensor',
    (model) => insertNode(model, node('x', 'ReLu', [{ name: 'y' } as never], [])),
  ],
  ['half an index', (model) => insertNode(model, node('x', 'ReLu', [], []), 1.5)],
  ['nothing in place of a node', (model) => replaceNode(model, 'conv', null as never)],
  ['half a node in place of one', (model) => replaceNode(model, 'conv', { outputs: [] } as never)],
  ['nothing in place of a constant', (model) => replaceConstant(model, 'conv/w', null as never)],
  [
    'scales without zero points',
    (model) => replaceConstant(model, 'conv/w', tensorOf([1], { dtype: 'int8' }), { scales: [1] } as never),
  ],
  [
    'fewer zero points than scales',
    (model) =>
      replaceConstant(model, 'conv/w', tensorOf([1], { dtype: 'int8' }), {
        scales: Float32Array.of(1, 2),
        zeroPoints: Int32Array.of(0),
        widths: new Int32Array(2),
      }),
  ],
  ['no name', (model) => rename(model, 'conv', null as never)],
  ['a node that is nowhere', (model) => removeNode(model, { name: 'x' } as never)],
]

describe('invalid arguments', () => {
  it.each(INVALID_CALLS)('%s throws a TileworkError', async (_, act) => {
    const model = smallModel()
    const before = await serialize(model)
    expect(() => act(model)).toThrow(expect.objectContaining({ name: 'TileworkError', code: 'ERR_ARGUMENT' }))
    expect(Buffer.compare(await serialize(model), before)).toBe(0)
  })

  it('fillWeights rejects a function that does not return tensors', () => {
    for (const numbersFor of [null, () => undefined, () => ({})]) {
      const model = smallModel()
      stripWeights(model)
      expect(() => fillWeights(model, numbersFor as never)).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
    }
  })

  it('a rejected cut keeps the outputs', async () => {
    const model = smallModel()
    insertNode(model, node('relu', 'ReLu', [model.graph.tensors[3]!], [variable('relu')]))
    const { graph } = model
    graph.nodes[0]!.outputs[0]!.role = 'constant'
    expect(() => cut(model, ['data'], ['relu'])).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
    expect(names(model.graph.outputs)).toEqual(['conv'])
  })

  it.each<[string, (graph: TmfileModel['graph']) => unknown]>([
    ['graph.nodes', (graph) => Object.assign(graph, { nodes: 3 })],
    ['nodes[3].inputs', (graph) => Object.assign(graph.nodes[3]!, { inputs: null })],
    ['nodes[3].params', (graph) => Object.assign(graph.nodes[3]!, { params: null })],
    ['nodes[0].attributes[0].value', (graph) => graph.nodes[0]!.attributes.push({ name: 'a' } as never)],
    ['tensors[0].shape', (graph) => Object.assign(graph.tensors[0]!, { shape: 'x' })],
    ['tensors[0].dtype', (graph) => Object.assign(graph.tensors[0]!, { dtype: 'int64' })],
    ['tensors[1].role', (graph) => Object.assign(graph.tensors[1]!, { role: 'weight' })],
    ['tensors[1].quantization.scales', (graph) => Object.assign(graph.tensors[1]!, { quantization: {} })],
    ['tensors[1].buffer.data', (graph) => Object.assign(graph.tensors[1]!.buffer!, { data: {} })],
    ['devices[0].id', (graph) => Object.assign(graph, { devices: [{}] })],
  ])('a model whose %s is nonsense is not written, and the error says where', async (path, spoil) => {
    const model = smallModel()
    spoil(model.graph)
    await expect(serialize(model)).rejects.toMatchObject({
      name: 'TileworkError',
      code: 'ERR_ARGUMENT',
      path,
    })
  })
})

/** Operators with one input and one output of the same shape. */
const UNARY: ReadonlySet<string> = new Set(['ReLu', 'PReLU', 'Dropout', 'Clip', 'Sigmoid', 'HardSwish'])

/** A convolution in the middle of the graph. */
function middleOf({ graph }: TmfileModel): TmfileNode {
  const convolutions = graph.nodes.filter(({ operator }) => operator === 'Convolution')
  return convolutions[Math.floor(convolutions.length / 2)]!
}

/** Inserts a node between a node and all its consumers. */
function insertRelu(model: TmfileModel, before: TmfileNode): void {
  const made = before.outputs[0]!
  const { consumers } = model.links().get(made)!
  const result = { ...made, name: 'inserted', quantization: null }
  insertNode(model, node('inserted', 'ReLu', [made], [result]))
  for (const consumer of consumers) {
    consumer.inputs = consumer.inputs.map((tensor) => (tensor === made ? result : tensor))
  }
}

function replaceByNoop(model: TmfileModel): void {
  const old = middleOf(model)
  replaceNode(model, old, node('replaced', 'Noop', [old.inputs[0]!], [old.outputs[0]!]))
}

const FILLED_BYTES = 2_000_000

function fillWithZeros(model: TmfileModel): void {
  stripWeights(model)
  if (model.graph.buffers.reduce((sum, { byteLength }) => sum + byteLength, 0) > FILLED_BYTES) return
  fillWeights(model, ({ dtype, shape }) => {
    const count = shape!.reduce((product, extent) => product * extent, 1)
    return tensorOf(new Uint8Array(count), { dtype, shape: shape! }) as DenseTensor
  })
}

describe('real models', THIRD_PARTY, () => {
  it('an edit that changes no length keeps every other byte', async () => {
    const file = await open(thirdPartyPath('tmfile/FaceLandmark2d.tmfile'))
    const before = await serialize(file)
    const convolution = file.tmfile!.graph.nodes.find(({ operator }) => operator === 'Convolution')!
    Object.assign(convolution.params, { activation: 6 })
    const after = await serialize(file)
    const changed = [...after.keys()].filter((at) => after[at] !== before[at])
    expect(changed.length).toBeGreaterThan(0)
    expect(changed.at(-1)! - changed[0]!).toBeLessThan(4)
  })

  it('cuts a part of a model with its weights', async () => {
    const file = await open(thirdPartyPath('tmfile/mnist.tmfile'))
    const model = file.tmfile!
    const variables = model.graph.nodes.filter(
      ({ operator }) => operator !== 'Const' && operator !== 'InputOp',
    )
    const [first, second] = [variables[0]!.outputs[0]!, variables[2]!.outputs[0]!]
    const inside = variables.slice(1, 3)
    const weights = new Map<string, Uint8Array>()
    for (const { inputs } of inside) {
      for (const { name } of inputs) {
        const dense = file.dense(name!)
        if (dense.hasData) weights.set(name!, new Uint8Array(await dense.bytes()))
      }
    }
    cut(model, [first], [second])
    const part = await written(model)
    expect(names(part.graph.inputs)).toEqual([first.name])
    expect(names(part.graph.outputs)).toEqual(names(inside.slice(-1)))
    expect(part.graph.buffers).toHaveLength(weights.size)
    const again = await open(await serialize(part))
    for (const [name, bytes] of weights)
      expect(Buffer.compare(await again.dense(name).bytes(), bytes)).toBe(0)
  })

  it('a cut without a required input names it', async () => {
    const model = await modelOf('tmfile/retinaface_benchmark.tmfile')
    const sum = model.graph.nodes.find(({ operator }) => operator === 'Eltwise')!
    expect(() => cut(model, [sum.inputs[0]!], [sum.outputs[0]!])).toThrow(
      /also depend on the graph input "data"/,
    )
  })

  it('removes what a new output does not depend on', async () => {
    const model = await modelOf('tmfile/retinaface_benchmark.tmfile')
    const { nodes } = model.graph
    const end = nodes.find(({ operator }) => operator === 'Eltwise')!
    setOutputs(model, [end.outputs[0]!])
    removeUnused(model)
    const { graph } = await written(model)
    expect(graph.nodes.length).toBeLessThan(nodes.length)
    expect(graph.outputs.map(({ name }) => name)).toEqual([end.name])
    expect(graph.buffers.length).toBe(graph.nodes.filter(({ operator }) => operator === 'Const').length)
  })

  it('sets the batch of a tensor with more consumers than a call can have arguments', () => {
    const model = smallModel()
    const [input] = model.graph.inputs
    const far = variable('far', [1, 2])
    insertNode(model, node('far', 'ReLu', [input!.outputs[0]!], [far]))
    const relus = Array.from({ length: 200_000 }, (_, at) =>
      node(`r${at}`, 'ReLu', [far], [variable(`r${at}`)]),
    )
    Object.assign(model.graph, { nodes: [...model.graph.nodes, ...relus] })
    expect(names(setBatch(model, 2).reshaped)).toEqual([])
  })

  it.each(['tmfile/mssd_benchmark.tmfile', 'tmfile/from_onnx_UINT8.tmfile'])(
    'a batch of %s',
    async (name) => {
      const model = await modelOf(name)
      setBatch(model, 2)
      const { graph } = await written(model)
      for (const { outputs } of graph.inputs) expect(outputs[0]!.shape![0]).toBe(2)
    },
  )

  it('a batch size also changes the constant that stores the target of a Reshape', async () => {
    const model = await modelOf('tmfile/FaceLandmark2d.tmfile')
    expect(names(setBatch(model, 4).reshaped)).toEqual(['475'])
    const bytes = await serialize(model)
    expect((await check(bytes, { level: 'strict' })).filter(({ severity }) => severity === 'error')).toEqual(
      [],
    )
    const file = await open(bytes)
    const reshape = named(file.tmfile!.graph.nodes, '475')
    expect(reshape.params).toMatchObject({ re_shape: [4, 128] })
    // The file keeps the leading words of the original 64-bit values.
    expect([...(await file.dense(reshape.inputs[1]!.name!).toTypedArray())]).toEqual([4, 0])
    expect(reshape.outputs[0]!.shape).toEqual([4, 128])
  })

  it.each(thirdPartyFiles('tmfile').map(({ path }) => path))('every edit leaves %s right', async (name) => {
    const edits: readonly ((model: TmfileModel) => unknown)[] = [
      (model) => rename(model, model.graph.inputs[0]!.outputs[0]!.name!, 'renamed'),
      (model) => setInputShape(model, model.graph.inputs[0]!.outputs[0]!, [2, 3, 64, 64]),
      (model) => setOutputs(model, [middleOf(model).outputs[0]!]),
      (model) => removeNode(model, model.graph.nodes.find(({ operator }) => UNARY.has(operator))!),
      (model) => insertRelu(model, middleOf(model)),
      (model) => replaceByNoop(model),
      (model) => cut(model, [middleOf(model).inputs[0]!], [middleOf(model).outputs[0]!]),
      (model) => stripNames(model),
      (model) => stripWeights(model),
      (model) => fillWithZeros(model),
      (model) => castWeights(model, 'float16'),
      (model) => mergeConstants(model),
    ]
    for (const [at, edit] of edits.entries()) {
      const model = await modelOf(name)
      const hasNone = at === 3 && !model.graph.nodes.some(({ operator }) => UNARY.has(operator))
      if (hasNone) continue
      await edit(model)
      for (const mode of ['exact', 'upgrade'] as const) {
        const bytes = await serialize(model, { mode })
        const findings = await check(bytes, { level: 'strict' })
        expect([at, findings.filter(({ severity }) => severity === 'error')]).toEqual([at, []])
      }
    }
  })

  it('renumbers device subgraphs with the nodes', async () => {
    const model = await modelOf('tmfile/FaceLandmark2d.tmfile')
    const before = model.graph.devices!.map(({ nodes }) => names(nodes))
    const removed = model.graph.nodes.find(({ operator }) => operator === 'Eltwise')!
    removeNode(model, removed)
    const { graph } = await written(model)
    const after = graph.devices!.map(({ nodes }) => names(nodes))
    expect(after).toEqual(before.map((list) => list.filter((name) => name !== removed.name)))
  })
})

it('rejects an inconsistent model before anything is written', async () => {
  const stray = smallModel()
  stray.graph.nodes[3]!.inputs.push(variable('stray'))
  await expect(serialize(stray)).rejects.toMatchObject({ code: 'ERR_GRAPH', path: 'nodes[3].inputs' })

  const deep = smallModel()
  deep.graph.tensors[3]!.shape = new Array<number>(9).fill(1)
  await expect(serialize(deep)).rejects.toMatchObject({ code: 'ERR_RANK', path: 'tensors[3]' })

  const wrong = smallModel()
  Object.assign(wrong.graph.nodes[3]!.params, { stride_h: 2 ** 31 })
  await expect(serialize(wrong)).rejects.toMatchObject({
    code: 'ERR_ARGUMENT',
    path: 'nodes[3].params.stride_h',
  })

  const unknown = smallModel()
  Object.assign(unknown.graph.nodes[3]!.params, { strides: 2 })
  await expect(serialize(unknown)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })

  const large = smallModel()
  const { tensor } = large.graph.buffers[0]!.data as { tensor: DenseTensor }
  const storage = { ...tensor.storage, byteLength: 2 ** 32 - 64 }
  large.graph.buffers[0]! = {
    byteLength: 2 ** 32 - 64,
    data: { tensor: { ...tensor, storage } as DenseTensor },
  }
  large.graph.tensors[1]!.buffer = large.graph.buffers[0]!
  await expect(serialize(large)).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_/) })
})
