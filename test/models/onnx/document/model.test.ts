/** ONNX models as objects: what is read, what edits change, and that they change nothing else. */

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { check, open, save, serialize, tensor } from '../../../../lib/index.js'
import {
  constantsToInitializers,
  initializersToConstants,
  removeUnused,
  sortNodes,
} from '../../../../lib/models/onnx/edit/graph_passes.js'
import { Graph, OnnxModel } from '../../../../lib/onnx.js'
import type { AnyTensor, DenseTensor, SparseTensor } from '../../../../lib/tensor/tensor.js'
import {
  type Bytes,
  entry,
  field,
  fixed,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  raw,
  sparseProto,
  tensorProto,
  varint,
} from '../../../formats/onnx/onnx_bytes.js'
import { THIRD_PARTY, thirdPartyBytes, thirdPartyFiles, thirdPartyPath } from '../../../shared_fixtures.js'

const folder = mkdtempSync(joinPath(tmpdir(), 'tilework-model-'))
afterAll(() => rmSync(folder, { recursive: true }))

const MODELS = thirdPartyFiles('onnx')
  .map(({ path }) => path)
  .filter((path) => path.endsWith('.onnx'))

const one = (value: number, name = ''): Bytes => tensorProto({ dims: [1], type: 2, name, values: raw(value) })
const float = (value: number): Bytes => new Uint8Array(Float32Array.of(value).buffer)
const typed = (name: string, type: Bytes): Bytes => join(field(1, name), field(2, type))

/** Unknown fields: a length-delimited one, a fixed64 and a group. */
const UNKNOWN = join(
  field(900, 'future'),
  fixed(901, new Uint8Array(8)),
  varint((902 << 3) | 3),
  int(1, 7),
  varint((902 << 3) | 4),
)

const attribute = (name: string, type: number, value: Bytes): Bytes =>
  join(field(1, name), value, int(20, type))

const ATTRIBUTES: readonly Bytes[] = [
  attribute('float', 1, fixed(2, float(1.5))),
  attribute('int', 2, int(3, -5)),
  attribute('string', 3, field(4, 'größer')),
  attribute('bytes', 3, field(4, [0xff, 0])),
  attribute('floats', 6, join(fixed(7, float(1)), field(7, join(float(2), float(3))))),
  attribute('ints', 7, join(int(8, 2n ** 62n), field(8, join(varint(3), varint(-1))))),
  attribute('strings', 8, join(field(9, 'a'), field(9, ''))),
  attribute('tensor', 4, field(5, one(7, 't'))),
  attribute('tensors', 9, join(field(10, one(8)), field(10, one(9)))),
  attribute('type', 13, field(14, field(4, field(1, field(1, int(1, 8)))))),
  join(field(1, 'reference'), field(21, 'outer'), int(20, 2)),
]

/** The int64 index 1, little-endian. */
const BYTES_OF_INDEX_1 = [1, 0, 0, 0, 0, 0, 0, 0]

const inner = graphProto({
  nodes: [nodeProto({ inputs: ['mid', 'w'], outputs: ['in'] })],
  outputs: ['in'],
  initializers: [one(5, 'own')],
})

/** A model with every feature, and unknown fields in every message that the tests edit. */
function sample(): Bytes {
  const nodes = [
    join(
      nodeProto({ inputs: ['x', 'w'], outputs: ['mid'], attributes: ATTRIBUTES }),
      field(3, 'first'),
      UNKNOWN,
    ),
    join(
      nodeProto({ inputs: ['mid', ''], outputs: ['y'], attributes: [attribute('body', 5, field(6, inner))] }),
      field(3, 'second'),
    ),
    join(nodeProto({ inputs: ['mid'], outputs: ['unused'] }), field(3, 'third')),
  ]
  const shape = field(2, join(field(1, int(1, 4)), field(1, field(2, 'batch')), field(1, new Uint8Array(0))))
  const graph = join(
    ...nodes.map((node) => field(1, node)),
    UNKNOWN,
    field(2, 'main'),
    field(5, join(one(1, 'w'), UNKNOWN)),
    field(5, one(2, 'v')),
    field(11, typed('x', field(1, join(int(1, 1), shape)))),
    field(
      12,
      typed(
        'y',
        field(5, join(int(1, 7), field(2, field(9, field(1, field(7, join(field(1, 'd'), field(2, 'n')))))))),
      ),
    ),
    field(13, typed('mid', field(8, int(1, 99)))),
    field(14, field(1, 'w')),
    field(
      15,
      sparseProto(
        tensorProto({ dims: [1], type: 2, name: 's', values: raw(3) }),
        tensorProto({ dims: [1], type: 7, values: field(7, [2]) }),
        [4],
      ),
    ),
  )
  const body = join(
    field(1, 'F'),
    field(4, 'a'),
    field(5, 'b'),
    field(6, 'alpha'),
    field(7, nodeProto({ inputs: ['a'], outputs: ['b'] })),
    field(10, 'own'),
    field(11, ATTRIBUTES[7]!),
  )
  return join(
    modelProto(graph),
    field(2, 'somebody'),
    field(14, entry('k', 'v')),
    field(20, field(2, graphProto({ initializers: [one(6, 'lr')] }))),
    field(25, body),
    UNKNOWN,
  )
}

async function edited(bytes: Bytes, edit: (model: OnnxModel) => void): Promise<Bytes> {
  using file = await open(bytes)
  edit(file.onnx!)
  return await serialize(file)
}

/** The bytes with one fragment replaced, which is all that an edit may change besides enclosing lengths. */
function fragmentsKept(before: Bytes, after: Bytes, fragments: readonly Bytes[]): void {
  for (const fragment of fragments) {
    expect(Buffer.from(before).includes(Buffer.from(fragment))).toBe(true)
    expect(Buffer.from(after).includes(Buffer.from(fragment))).toBe(true)
  }
}

describe('file.tensors and graph.initializers()', () => {
  const contents = async (tensors: Iterable<AnyTensor>) =>
    Promise.all(
      [...tensors].map(async (each) => {
        const dense = each.kind === 'sparse' ? await each.toDense({ maxBytes: 3 }) : (each as DenseTensor)
        return [each.kind, each.name, await dense.bytes()]
      }),
    )
  const model = modelProto({
    initializers: [one(1, 'a'), one(2, 'b')],
    sparse: [
      sparseProto(one(7, 's'), tensorProto({ dims: [1], type: 7, values: raw(...BYTES_OF_INDEX_1) }), [3]),
    ],
  })

  it('list the same tensors of a model without edits', async () => {
    using file = await open(model)
    expect(await contents(file.onnx!.graph.initializers())).toEqual(await contents(file.tensors))
    expect(file.tensors).toHaveLength(3)
  })

  it('differ after an edit: the file stays as it was opened, the graph is current', async () => {
    using file = await open(model)
    const before = await contents(file.tensors)
    const { graph } = file.onnx!
    graph.setInitializer('a', tensor([9], { dtype: 'uint8' }))
    graph.removeInitializer('b')
    graph.setInitializer('c', tensor([4], { dtype: 'uint8' }))
    expect(await contents(file.tensors)).toEqual(before)
    expect((await contents(graph.initializers())).map(([, name]) => name)).toEqual(['a', 'c', 's'])
    expect(JSON.parse(JSON.stringify(graph.initializer('a')))).toMatchObject({ name: 'a', dtype: 'uint8' })
    using saved = await open(await serialize(file))
    expect(await contents(saved.tensors)).toEqual(await contents(graph.initializers()))
  })
})

describe('reading', () => {
  it('reads all properties of a model', async () => {
    using file = await open(sample())
    const model = file.onnx!
    expect([model.irVersion, model.producerName, [...model.opsetImports], [...model.metadata]]).toEqual([
      8,
      'somebody',
      [['', 17]],
      [['k', 'v']],
    ])
    const { graph } = model
    expect([graph.name, graph.nodes.map(({ name }) => name)]).toEqual(['main', ['first', 'second', 'third']])
    expect(graph.inputs).toEqual([
      { name: 'x', docString: '', type: { kind: 'tensor', dtype: 'float32', shape: [4, 'batch', null] } },
    ])
    expect(graph.outputs[0]!.type).toEqual({
      kind: 'map',
      key: 'int64',
      value: { kind: 'optional', of: { kind: 'opaque', domain: 'd', name: 'n' } },
    })
    expect(graph.valueInfo[0]!.type).toEqual({ kind: 'sparse', dtype: 99 })
    expect(graph.initializerNames).toEqual(['w', 'v', 's'])
    expect(graph.initializer('s')).toMatchObject({ kind: 'sparse', shape: [4] })
    expect(graph.nodes[0]).toBe(graph.nodes[0])
    expect(graph.producerOf('mid')).toBe(graph.nodes[0])
    expect(graph.usersOf('mid').map(({ name }) => name)).toEqual(['second', 'third', ''])
    const [body] = model.functions
    expect(body).toMatchObject({
      name: 'F',
      domain: 'own',
      inputs: ['a'],
      outputs: ['b'],
      attributeNames: ['alpha'],
    })
    expect(model.trainingInfo[0]!.algorithm!.initializerNames).toEqual(['lr'])
    expect(model.isChanged).toBe(false)
  })

  it('reports a truncated varint in an attribute', async () => {
    const ints = attribute('ints', 7, field(8, new Uint8Array(12).fill(0xff)))
    const node = join(field(2, 'y'), field(4, 'Op'), field(5, ints))
    using file = await open(join(int(1, 8), field(7, field(1, node))), { format: 'onnx' })
    const [first] = file.onnx!.graph.nodes
    expect(() => first!.attribute('ints')!.value).toThrow(expect.objectContaining({ code: 'ERR_HEADER' }))
  })

  it('refuses a name that a subgraph defines, which would hide the value there', async () => {
    const inner = graphProto({ nodes: [nodeProto({ inputs: ['a'], outputs: ['x'] })] })
    const node = nodeProto({ outputs: ['y'], attributes: [attribute('body', 5, field(6, inner))] })
    const maker = nodeProto({ outputs: ['a'] })
    using file = await open(modelProto(graphProto({ nodes: [maker, node] })))
    const { graph } = file.onnx!
    expect(() => graph.rename('a', 'x')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    expect(() => graph.rename('a', 'x')).toThrow('The name "x" is taken')
    expect(() => graph.rename('a', '')).toThrow('The name is empty')
    expect(graph.uniqueName('x')).toBe('x_1')
    expect(file.onnx!.isChanged).toBe(false)
  })

  it('replaces no uses in a subgraph that defines the new name itself', async () => {
    const inside = (outputs: string[], inputs: string[] = []) =>
      nodeProto({
        outputs: ['out'],
        attributes: [
          attribute(
            'body',
            5,
            field(6, graphProto({ nodes: [nodeProto({ inputs, outputs: ['x'] })], outputs })),
          ),
        ],
      })
    const makers = [nodeProto({ outputs: ['a'] }), nodeProto({ outputs: ['x0'] })]
    for (const user of [inside(['x'], ['a']), inside(['a'])]) {
      using file = await open(modelProto(graphProto({ nodes: [...makers, user] })))
      const { graph } = file.onnx!
      expect(() => graph.replaceAllUses('a', 'x')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
      expect(file.onnx!.isChanged).toBe(false)
      graph.replaceAllUses('a', 'x0')
      expect(graph.usersOf('a')).toEqual([])
    }
    using unused = await open(modelProto(graphProto({ nodes: [...makers, inside(['x'])] })))
    unused.onnx!.graph.replaceAllUses('a', 'x')
  })

  it('refuses a packed run that is not a multiple of its element size', async () => {
    const floats = attribute('floats', 6, field(7, new Uint8Array(7)))
    const bytes = modelProto({ nodes: [nodeProto({ outputs: ['y'], attributes: [floats] })] })
    using file = await open(bytes)
    const found = file.onnx!.graph.nodes[0]!.attribute('floats')!
    expect(() => found.value).toThrow(expect.objectContaining({ code: 'ERR_HEADER' }))
    await expect(open(bytes, { level: 'strict' })).rejects.toMatchObject({
      code: 'ERR_HEADER',
      path: 'graph.node[0].attribute[0].floats',
    })
  })

  it('reads attributes of every type', async () => {
    using file = await open(sample())
    const node = file.onnx!.graph.nodes[0]!
    const valueFor = (name: string) => node.attribute(name)!.value
    expect(valueFor('float')).toBe(1.5)
    expect(valueFor('int')).toBe(-5)
    expect(node.attribute('string')!.text).toBe('größer')
    expect(valueFor('bytes')).toEqual(Uint8Array.of(0xff, 0))
    expect(() => node.attribute('bytes')!.text).toThrow(expect.objectContaining({ code: 'ERR_DTYPE' }))
    expect(() => node.attribute('int')!.text).toThrow(expect.objectContaining({ code: 'ERR_DTYPE' }))
    expect(valueFor('floats')).toEqual([1, 2, 3])
    expect(valueFor('ints')).toEqual([2n ** 62n, 3, -1])
    expect(valueFor('strings')).toEqual([Uint8Array.of(97), new Uint8Array(0)])
    expect((valueFor('tensor') as DenseTensor).at(0)).toBe(7)
    expect((valueFor('tensors') as DenseTensor[]).map((each) => each.at(0))).toEqual([8, 9])
    expect(valueFor('type')).toEqual({ kind: 'sequence', of: { kind: 'tensor', dtype: 'string' } })
    expect([node.attribute('reference')!.refName, valueFor('reference')]).toEqual(['outer', 0])
    const [graph] = file.onnx!.graph.nodes[1]!.attribute('body')!.graphs
    expect(graph!.nodes[0]!.inputs).toEqual(['mid', 'w'])
  })

  it('finds every tensor', async () => {
    using file = await open(sample())
    const found = [...file.onnx!.allTensors()].map(({ path, tensor: each }) => [path, each.name])
    expect(found).toEqual([
      ['graph.node[0].attribute[7].t', 't'],
      ['graph.node[0].attribute[8].tensors[0]', ''],
      ['graph.node[0].attribute[8].tensors[1]', ''],
      ['graph.node[1].attribute[0].g.initializer[0]', 'own'],
      ['graph.initializer[0]', 'w'],
      ['graph.initializer[1]', 'v'],
      ['graph.sparse_initializer[0]', 's'],
      ['training_info[0].algorithm.initializer[0]', 'lr'],
      ['functions[0].attribute_proto[0].t', 't'],
    ])
  })

  it('stops at the depth limit', async () => {
    let graph = graphProto({})
    for (let level = 0; level < 40; level++)
      graph = graphProto({ nodes: [nodeProto({ attributes: [field(6, graph)] })] })
    using file = await open(modelProto(graph))
    expect(() => [...file.onnx!.allTensors()]).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
  })

  it('keeps a number in a message field as an unknown field', async () => {
    const graph = join(
      int(1, 7),
      graphProto({ nodes: [nodeProto({ inputs: ['x'], outputs: ['y'] })], inputs: ['x'], outputs: ['y'] }),
      int(5, 1),
      int(13, 2),
    )
    const after = await edited(modelProto(graph), (model) => {
      expect(model.graph.nodes.length).toBe(1)
      sortNodes(model.graph)
      removeUnused(model.graph)
      constantsToInitializers(model.graph)
      model.graph.rename('x', 'z')
    })
    using file = await open(after)
    expect(file.onnx!.graph.nodes[0]!.inputs).toEqual(['z'])
    expect(Buffer.from(after).includes(Buffer.from(int(13, 2)))).toBe(true)
  })

  it('reports a model without a graph', async () => {
    using file = await open(join(int(1, 8), field(8, int(2, 17))))
    expect(() => file.onnx!.graph).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
  })
})

describe('values', () => {
  it('know their producer, users and type', async () => {
    using file = await open(sample())
    const { graph } = file.onnx!
    const mid = graph.value('mid')!
    expect([mid.producer, mid.outputIndex, mid.type]).toEqual([
      graph.nodes[0],
      0,
      { kind: 'sparse', dtype: 99 },
    ])
    const inside = graph.nodes[1]!.attribute('body')!.graphs[0]!
    expect(mid.uses).toEqual([
      { node: graph.nodes[1], index: 0 },
      { node: graph.nodes[2], index: 0 },
      { node: inside.nodes[0], index: 0 },
    ])
    expect([mid.isInput, mid.isOutput, mid.isInitializer, mid.constant]).toEqual([
      false,
      false,
      false,
      undefined,
    ])
    const w = graph.value('w')!
    expect([w.isInitializer, w.outputIndex, (w.constant as DenseTensor).at(0)]).toEqual([true, -1, 1])
    expect([graph.value('x')!.isInput, graph.value('y')!.isOutput]).toEqual([true, true])
    expect([graph.value('own'), graph.value('')]).toEqual([undefined, undefined])
    expect(
      graph
        .values()
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['mid', 's', 'unused', 'v', 'w', 'x', 'y'])
    const renamed = mid.rename('middle')
    expect([renamed.uses.length, mid.uses.length, graph.value('mid')]).toEqual([3, 0, undefined])
    renamed.replaceAllUses(w)
    expect([renamed.uses, w.uses.length]).toEqual([[], 5])
  })

  it('follow every kind of edit', async () => {
    using file = await open(sample())
    const { graph } = file.onnx!
    const usersOf = (name: string) => graph.usersOf(name).map(({ name: user }) => user)
    expect(usersOf('v')).toEqual([])
    const [, , third] = graph.nodes
    third!.inputs = ['v', 'v']
    expect([usersOf('v'), graph.usesOf('v').map(({ index }) => index)]).toEqual([['third'], [0, 1]])
    third!.outputs = ['other']
    expect([graph.producerOf('other'), graph.producerOf('unused')]).toEqual([third, undefined])
    third!.setAttribute('body', { type: 'INT', value: 1 })
    graph.removeNode(third!)
    expect([usersOf('v'), graph.producerOf('other')]).toEqual([[], undefined])
    const added = graph.addNode({ opType: 'Neg', inputs: ['v'], outputs: ['new'] })
    expect([graph.usersOf('v'), graph.producerOf('new')]).toEqual([[added], added])
    graph.setInitializer('late', tensor([1], { dtype: 'int8' }))
    expect(graph.hasInitializer('late')).toBe(true)
    initializersToConstants(file.onnx!, ['late'])
    expect([graph.producerOf('late')!.opType, graph.hasInitializer('late')]).toEqual(['Constant', false])
    expect((graph.value('late')!.constant as DenseTensor).at(0)).toBe(1)
  })

  it('of many nodes are found without visiting all nodes', async () => {
    using file = await open(modelProto({ inputs: ['v0'] }))
    const { graph } = file.onnx!
    for (let at = 0; at < 2000; at++) {
      graph.addNode({ opType: 'Neg', inputs: [`v${at}`], outputs: [`v${at + 1}`] })
    }
    expect(graph.usersOf('v1999')).toEqual([graph.nodes[1999]])
    using again = await open(await serialize(file))
    expect(again.onnx!.graph.producerOf('v2000')!.inputs).toEqual(['v1999'])
  })
})

describe('graphs and nodes', () => {
  it('can be traversed into subgraphs, forwards and backwards', async () => {
    using file = await open(sample())
    const model = file.onnx!
    const { graph } = model
    const [first, second, third] = graph.nodes
    const [inside] = [...graph.subgraphs()]
    expect([...model.graphs()]).toEqual([graph, inside, model.trainingInfo[0]!.algorithm])
    expect([...graph.allNodes()]).toEqual([first, second, inside!.nodes[0], third])
    expect([...inside!.outerNames()]).toEqual(['mid', 'w'])
    expect([...graph.outerNames()]).toEqual([])
    expect([second!.predecessors, first!.predecessors]).toEqual([[first], []])
    expect(first!.successors).toEqual([second, third, inside!.nodes[0]])
    expect([graph.uniqueName('fresh'), graph.uniqueName('mid'), graph.uniqueName('')]).toEqual([
      'fresh',
      'mid_1',
      '_1',
    ])
    expect([third!.graph, inside!.nodes[0]!.graph, model.functions[0]!.nodes[0]!.graph]).toEqual([
      graph,
      inside,
      undefined,
    ])
    graph.removeNode(third!)
    expect([third!.graph, third!.predecessors]).toEqual([undefined, []])
    first!.setMetadata('k', 'v')
    expect([...first!.metadata]).toEqual([['k', 'v']])
  })

  it('can be created from scratch', async () => {
    const model = OnnxModel.create({ opset: 20, graphName: 'made' })
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['N', 2] })
    graph.setInitializer('w', tensor([[1, 2]], { dtype: 'float32' }))
    graph.addNode({ opType: 'Add', inputs: ['x', 'w'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: ['N', 2] })
    model.setOpsetImport('custom', 1)
    const bytes = await serialize(model)
    expect(await check(bytes, { level: 'strict' })).toEqual([])
    using file = await open(bytes)
    expect([...file.onnx!.opsetImports]).toEqual([
      ['', 20],
      ['custom', 1],
    ])
    expect([file.onnx!.graph.name, file.onnx!.graph.inputs.length, file.dense('w').shape]).toEqual([
      'made',
      1,
      [1, 2],
    ])
  })
})

describe('an edit', () => {
  it('shows in subgraphs and ends that were asked for before, with and without an index of names', () => {
    for (const isIndexed of [false, true]) {
      const { graph } = OnnxModel.create()
      if (isIndexed) graph.value('x')
      const seen = (): unknown[] => [
        [...graph.subgraphs()].map(({ name }) => name),
        [...graph.inputNames],
        [...graph.outputNames],
      ]
      expect(seen()).toEqual([[], [], []])
      const node = graph.addNode({ opType: 'If', inputs: ['x'], outputs: ['y'] })
      graph.message.insert('input').setText('name', 'x')
      graph.message.insert('output').setText('name', 'y')
      expect(seen()).toEqual([[], ['x'], ['y']])
      node.setAttribute('then_branch', { type: 'GRAPH', value: Graph.create('then') })
      expect(seen()).toEqual([['then'], ['x'], ['y']])
      graph.message.messages('output')[0]!.setText('name', 'z')
      node.removeAttribute('then_branch')
      expect(seen()).toEqual([[], ['x'], ['z']])
    }
  })

  const before = sample()
  /** Messages that no edit below touches. */
  const others = [
    field(20, field(2, graphProto({ initializers: [one(6, 'lr')] }))),
    field(14, entry('k', 'v')),
    UNKNOWN,
  ]

  it('writes every other byte unchanged, also beside an edited message', async () => {
    expect(await edited(before, () => undefined)).toEqual(before)
    const read = (model: OnnxModel): void => void [...model.allTensors()].length
    expect(await edited(before, read)).toEqual(before)
    const same = await edited(before, ({ graph }) => {
      graph.name = 'main'
    })
    expect(same).toEqual(before)
  })

  it('of an initializer replaces its message and the enclosing lengths', async () => {
    const after = await edited(before, ({ graph }) =>
      graph.setInitializer('w', tensor([9, 8, 7], { dtype: 'int16' })),
    )
    const made = join(int(1, 3), int(2, 5), field(8, 'w'), raw(9, 0, 8, 0, 7, 0))
    const old = field(5, join(one(1, 'w'), UNKNOWN))
    const at = Buffer.from(before).indexOf(Buffer.from(old))
    expect(Buffer.from(after).subarray(-(before.length - at - old.length))).toEqual(
      Buffer.from(before).subarray(at + old.length),
    )
    expect(Buffer.from(after).includes(Buffer.from(field(5, made)))).toBe(true)
    using file = await open(after)
    expect([...(await file.dense('w').toTypedArray())]).toEqual([9, 8, 7])
    fragmentsKept(before, after, others)
  })

  it('of a node keeps its unknown fields', async () => {
    const after = await edited(before, ({ graph }) => {
      const [node] = graph.nodes
      node!.opType = 'Add'
      node!.setAttribute('int', { type: 'INT', value: 6 })
      node!.setAttribute('new', { type: 'STRINGS', value: ['p', Uint8Array.of(255)] })
      expect(node!.removeAttribute('floats')).toBe(true)
      expect(node!.removeAttribute('floats')).toBe(false)
    })
    fragmentsKept(before, after, [
      ...others,
      ...[0, 2, 3, 5, 6, 7, 8, 9, 10].map((at) => field(5, ATTRIBUTES[at]!)),
    ])
    using file = await open(after)
    const [node] = file.onnx!.graph.nodes
    expect([node!.opType, node!.attribute('int')!.value, node!.attribute('floats')]).toEqual([
      'Add',
      6,
      undefined,
    ])
    expect(node!.attribute('new')).toMatchObject({
      type: 'STRINGS',
      value: [Uint8Array.of(0x70), Uint8Array.of(255)],
    })
  })

  it('sets attributes of every type that can be set', async () => {
    const values = [
      { type: 'FLOAT', value: 0.5 },
      { type: 'INT', value: -(2n ** 40n) },
      { type: 'STRING', value: 'x' },
      { type: 'TENSOR', value: tensor([3], { dtype: 'int8', name: 'c' }) },
      { type: 'FLOATS', value: [1, 2] },
      { type: 'INTS', value: [1, -2] },
    ] as const
    const after = await edited(before, ({ graph }) => {
      for (const [at, value] of values.entries()) graph.nodes[2]!.setAttribute(`a${at}`, value)
    })
    using file = await open(after)
    const read = file.onnx!.graph.nodes[2]!.attributes
    expect(read.map(({ type }) => type)).toEqual(values.map(({ type }) => type))
    expect([0, 1, 4, 5].map((at) => read[at]!.value)).toEqual([0.5, -(2 ** 40), [1, 2], [1, -2]])
    expect((read[3]!.value as DenseTensor).at(0)).toBe(3)
    for (const wrong of [
      { type: 'GRAPH' },
      { type: 'UNDEFINED', value: 1 },
      { type: 'TENSORS', value: [1] },
      { type: 'SPARSE_TENSOR', value: tensor([1], { dtype: 'int8' }) },
    ]) {
      expect(() => file.onnx!.graph.nodes[2]!.setAttribute('g', wrong as never)).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
    }
  })

  it('sets graphs, types, sparse tensors and lists of tensors, also from another model', async () => {
    using source = await open(sample())
    const body = source.onnx!.graph.nodes[1]!.attribute('body')!.graphs[0]!
    const sparse = source.onnx!.graph.initializer('s') as SparseTensor
    const types = [
      {
        kind: 'tensor',
        dtype: 'float32',
        shape: ['N', 3, null],
        denotation: 'IMAGE',
        denotations: ['', 'C', ''],
      },
      { kind: 'sparse', dtype: 99 },
      { kind: 'sequence', of: { kind: 'optional', of: { kind: 'tensor', dtype: 'string', shape: [] } } },
      { kind: 'map', key: 'int64', value: { kind: 'opaque', domain: 'd', name: 'n' } },
    ] as const
    const after = await edited(before, ({ graph }) => {
      const [, , node] = graph.nodes
      body.name = 'copied'
      node!.setAttribute('then', { type: 'GRAPH', value: body })
      body.name = 'changed later'
      node!.setAttribute('all', { type: 'GRAPHS', value: [body, Graph.create('empty')] })
      node!.setAttribute('type', { type: 'TYPE_PROTO', value: types[0] })
      node!.setAttribute('types', { type: 'TYPE_PROTOS', value: types })
      node!.setAttribute('sparse', { type: 'SPARSE_TENSOR', value: sparse })
      node!.setAttribute('sparses', { type: 'SPARSE_TENSORS', value: [sparse, sparse] })
      node!.setAttribute('list', { type: 'TENSORS', value: [tensor([3], { dtype: 'int8' })] })
      expect(graph.usersOf('mid').length).toBe(5)
      const own = graph.nodes[1]!.attribute('body')!.graphs[0]!
      expect(() => own.nodes[0]!.setAttribute('g', { type: 'GRAPH', value: own })).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
      expect(() => node!.setAttribute('t', { type: 'TYPE_PROTO', value: { kind: 'x' } as never })).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
      node!.removeAttribute('t')
    })
    using file = await open(after)
    const node = file.onnx!.graph.nodes[2]!
    const [inside] = node.attribute('then')!.graphs
    expect([inside!.name, inside!.nodes[0]!.inputs, inside!.initializerNames]).toEqual([
      'copied',
      ['mid', 'w'],
      ['own'],
    ])
    expect(node.attribute('all')!.graphs.map(({ name }) => name)).toEqual(['changed later', 'empty'])
    expect([node.attribute('type')!.value, node.attribute('types')!.value]).toEqual([types[0], types])
    expect(node.attribute('sparse')!.value).toMatchObject({ kind: 'sparse', name: 's', entryCount: 1 })
    expect((node.attribute('sparses')!.value as SparseTensor[]).length).toBe(2)
    expect((node.attribute('list')!.value as DenseTensor[])[0]!.at(0)).toBe(3)
    expect((await check(after)).filter(({ severity }) => severity === 'error')).toEqual([])
    fragmentsKept(before, after, others)
  })

  it('refuses a graph with external data of another model', async () => {
    const far = graphProto({
      initializers: [tensorProto({ dims: [1], type: 2, name: 'f', external: { location: 'w' } })],
    })
    const holder = nodeProto({ attributes: [attribute('body', 5, field(6, far))] })
    using other = await open(modelProto({ nodes: [holder] }))
    const value = other.onnx!.graph.nodes[0]!.attribute('body')!.graphs[0]!
    using file = await open(before)
    expect(() => file.onnx!.graph.nodes[0]!.setAttribute('g', { type: 'GRAPH', value })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
    other.onnx!.graph.nodes[0]!.setAttribute('again', { type: 'GRAPH', value })
    expect(other.onnx!.graph.nodes[0]!.attribute('again')!.graphs.length).toBe(1)
  })

  it('declares inputs, outputs and types', async () => {
    const after = await edited(before, ({ graph }) => {
      graph.addInput('extra', { kind: 'tensor', dtype: 'int4', shape: [2, 'n'] })
      graph.addOutput('mid', { kind: 'tensor', dtype: 'float32' })
      graph.setType('mid', { kind: 'tensor', dtype: 'bfloat16', shape: [] })
      graph.setType('unused', { kind: 'none' })
      for (const name of ['', 'x', 'y']) {
        expect(() => graph.addInput(name, { kind: 'none' })).toThrow(
          expect.objectContaining({ code: 'ERR_ARGUMENT' }),
        )
      }
      for (const deed of ['addOutput', 'setType'] as const) {
        expect(() => graph[deed]('nobody', { kind: 'none' })).toThrow(
          expect.objectContaining({ code: 'ERR_ARGUMENT' }),
        )
      }
      expect(() => graph.setType('x', { kind: 'tensor', dtype: 'float31' as never })).toThrow(
        expect.objectContaining({ code: 'ERR_DTYPE' }),
      )
    })
    using file = await open(after)
    const { graph } = file.onnx!
    expect(graph.inputs.map(({ name }) => name)).toEqual(['x', 'extra'])
    expect(graph.typeOf('extra')).toEqual({ kind: 'tensor', dtype: 'int4', shape: [2, 'n'] })
    expect(graph.outputs.map(({ name }) => name)).toEqual(['y', 'mid'])
    expect(graph.typeOf('mid')).toEqual({ kind: 'tensor', dtype: 'bfloat16', shape: [] })
    expect(graph.valueInfo.map(({ name }) => name)).toEqual(['mid', 'unused'])
  })

  it('renames a value everywhere, subgraphs included', async () => {
    const after = await edited(before, ({ graph }) => {
      graph.rename('mid', 'middle')
      graph.rename('w', 'weights')
      graph.rename('s', 'sparse')
      expect(() => graph.rename('x', 'v')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
      expect(() => graph.rename('gone', 'z')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    })
    using file = await open(after)
    const { graph } = file.onnx!
    expect(graph.nodes.map(({ inputs, outputs }) => [inputs, outputs])).toEqual([
      [['x', 'weights'], ['middle']],
      [['middle', ''], ['y']],
      [['middle'], ['unused']],
    ])
    expect(graph.nodes[1]!.attributes[0]!.graphs[0]!.nodes[0]!.inputs).toEqual(['middle', 'weights'])
    expect([graph.valueInfo[0]!.name, graph.initializerNames]).toEqual(['middle', ['weights', 'v', 'sparse']])
    expect((file.tensors.get('weights') as DenseTensor).at(0)).toBe(1)
    fragmentsKept(before, after, [...others, field(5, one(2, 'v'))])
  })

  it('adds, removes and sorts nodes', async () => {
    const after = await edited(before, ({ graph }) => {
      expect(() => graph.removeNode(graph.nodes[0]!)).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
      graph.removeNode(graph.nodes[2]!)
      const added = graph.addNode(
        {
          opType: 'Relu',
          name: 'fourth',
          inputs: ['y'],
          outputs: ['z'],
          attributes: { k: { type: 'INT', value: 1 } },
        },
        0,
      )
      expect(graph.nodes.map(({ name }) => name)).toEqual(['fourth', 'first', 'second'])
      expect(() => graph.addNode({ opType: 'Relu', outputs: ['y'] })).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
      const before = graph.insertBefore(graph.nodes[1]!, { opType: 'A', name: 'before', outputs: ['p'] })
      const after = graph.insertAfter(graph.nodes[2]!, { opType: 'A', name: 'after', outputs: ['q'] })
      expect(graph.nodes.map(({ name }) => name)).toEqual(['fourth', 'before', 'first', 'after', 'second'])
      graph.insertAfter(graph.nodes.at(-1)!, { opType: 'A', name: 'last', outputs: ['r'] })
      expect(graph.nodes.at(-1)!.name).toBe('last')
      for (const node of [before, after, graph.nodes.at(-1)!]) graph.removeNode(node)
      for (const method of ['insertBefore', 'insertAfter'] as const) {
        const refused = expect.objectContaining({ code: 'ERR_ARGUMENT' })
        expect(() => graph[method](before, { opType: 'A' })).toThrow(refused)
        expect(() => graph[method](file2Node, { opType: 'A' })).toThrow(refused)
        expect(() => graph[method](7 as never, { opType: 'A' })).toThrow(
          `${method} takes a node; 7 was given`,
        )
      }
      sortNodes(graph)
      expect(graph.nodes.map(({ name }) => name)).toEqual(['first', 'second', 'fourth'])
      expect(graph.nodes[2]).toBe(added)
      added.inputs = ['z']
      expect(() => sortNodes(graph)).toThrow(expect.objectContaining({ code: 'ERR_GRAPH' }))
      added.inputs = ['y']
      expect(() => graph.removeNode(file2Node)).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
    })
    fragmentsKept(before, after, others)
    expect((await check(after)).filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('replaces uses, and removes unused initializers', async () => {
    const after = await edited(before, ({ graph }) => {
      expect(() => graph.removeInitializer('w')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
      graph.replaceAllUses('w', 'v')
      graph.removeInitializer('w')
      expect(() => graph.removeInitializer('w')).toThrow(expect.objectContaining({ code: 'ERR_ARGUMENT' }))
      graph.setInitializer('added', tensor([1], { dtype: 'int8' }))
      expect(() => graph.setInitializer('mid', tensor([1], { dtype: 'int8' }))).toThrow(
        expect.objectContaining({ code: 'ERR_ARGUMENT' }),
      )
    })
    using file = await open(after)
    expect(file.onnx!.graph.initializerNames).toEqual(['v', 'added', 's'])
    expect(file.onnx!.graph.nodes[0]!.inputs).toEqual(['x', 'v'])
  })

  it('sets metadata of the model', async () => {
    const after = await edited(before, (model) => {
      model.setMetadata('k', 'w')
      model.setMetadata('new', '1')
      model.docString = 'about'
      model.irVersion = 9
    })
    using file = await open(after)
    const { metadata, docString, irVersion } = file.onnx!
    expect([[...metadata], docString, irVersion]).toEqual([
      [
        ['k', 'w'],
        ['new', '1'],
      ],
      'about',
      9,
    ])
  })
})

/** A node of another graph. */
using other = await open(sample())
const file2Node = other.onnx!.graph.nodes[0]!

describe('the real models', THIRD_PARTY, () => {
  it.each(MODELS)('%s: finds all tensors, and an edit keeps every other message', async (name) => {
    const bytes = thirdPartyBytes(name)
    using file = await open(thirdPartyPath(name))
    const tensors = [...file.onnx!.allTensors()]
    for (const { tensor: each } of tensors) if (each.kind === 'dense') await each.bytes()
    expect(Buffer.from(await serialize(file)).equals(bytes)).toBe(true)
    const { graph } = file.onnx!
    const nodes = graph.nodes.length
    file.onnx!.producerName = 'somebody else'
    graph.addNode({ opType: 'Identity', outputs: ['tilework_added'] })
    const after = await serialize(file)
    using again = await open(after)
    expect(again.onnx!.graph.nodes.length).toBe(nodes + 1)
    again.onnx!.graph.removeNode(again.onnx!.graph.nodes.at(-1)!)
    using original = await open(bytes)
    again.onnx!.producerName = original.onnx!.producerName
    expect(Buffer.from(await serialize(again)).equals(bytes)).toBe(true)
  })
})

describe('saving', () => {
  it('keeps the graph with a writer option, and writes its only initializer as a bare tensor', async () => {
    const bytes = modelProto({
      nodes: [nodeProto({ inputs: ['w'], outputs: ['y'] })],
      initializers: [one(4, 'w')],
    })
    using file = await open(bytes)
    expect(await serialize(file, { message: 'ModelProto' })).toEqual(bytes)
    expect(await serialize(file.onnx!)).toEqual(bytes)
    const bare = joinPath(folder, 'w.pb')
    await save(bare, file, { message: 'TensorProto' })
    using read = await open(bare)
    expect([read.onnx, read.dense('w').at(0)]).toEqual([undefined, 4])
    file.onnx!.graph.setInitializer('w', tensor([6], { dtype: 'uint8', name: 'other' }))
    await save(bare, file)
    using again = await open(bare)
    expect(again.dense(0).at(0)).toBe(6)
    const btf = await serialize(file, { format: 'btf' })
    using converted = await open(btf)
    expect(converted.dense(0).at(0)).toBe(6)
  })
})

describe('a model with external data', () => {
  const model = modelProto({
    initializers: [
      tensorProto({ dims: [4], type: 2, name: 'w', external: { location: './w.bin', offset: '2' } }),
      one(1, 'v'),
    ],
  })

  it('includes its data when it is edited, and does not move it', async () => {
    const from = joinPath(folder, 'from')
    const to = joinPath(folder, 'to')
    for (const each of [from, to]) mkdirSync(each)
    writeFileSync(joinPath(from, 'm.onnx'), model)
    writeFileSync(joinPath(from, 'w.bin'), Uint8Array.of(0, 0, 1, 2, 3, 4))
    using file = await open(joinPath(from, 'm.onnx'))
    expect(await (file.onnx!.graph.initializer('w') as DenseTensor).bytes()).toEqual(
      Uint8Array.of(1, 2, 3, 4),
    )
    file.onnx!.graph.setInitializer('v', tensor([5], { dtype: 'uint8' }))
    await save(joinPath(to, 'm.onnx'), file)
    await save(joinPath(from, 'copy.onnx'), file)
    expect(readdirSync(to).sort()).toEqual(['m.onnx', 'w.bin'])
    expect(readdirSync(from).sort()).toEqual(['copy.onnx', 'm.onnx', 'w.bin'])
    using copy = await open(joinPath(to, 'm.onnx'), { level: 'strict' })
    expect(await copy.dense('w').bytes()).toEqual(Uint8Array.of(1, 2, 3, 4))
    expect(copy.dense('v').at(0)).toBe(5)
    await expect(serialize(file)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
  })
})
