/** Types and shapes that follow: rules of operators, subgraphs and functions, and what changes of inputs affect. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { check, DTYPES, open, serialize, type TileworkError, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  extract,
  Graph,
  inferShapes,
  inferTypes,
  type NewNode,
  OnnxModel,
  setBatch,
  setInputShape,
  type ValueType,
} from '../../../../lib/onnx.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../../shared_fixtures.js'

const float = (...shape: (number | string | null)[]): ValueType => ({
  kind: 'tensor',
  dtype: 'float32',
  shape,
})
const int = (...shape: number[]): ValueType => ({ kind: 'tensor', dtype: 'int64', shape })
const list = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt), { shape: [values.length] })

/** A type as onnx_shapes.py writes it. */
function recordOf(type: ValueType | undefined): unknown {
  if (type?.kind === 'tensor')
    return [typeof type.dtype === 'number' ? type.dtype : DTYPES[type.dtype].onnx, type.shape ?? null]
  return type?.kind === 'sequence' || type?.kind === 'optional' ? { [type.kind]: recordOf(type.of) } : null
}

/** Whether a type is that of the reference wherever both know something. */
function agrees(found: unknown, wanted: unknown): boolean {
  if (found === null || wanted === null) return true
  if (Array.isArray(found) && Array.isArray(wanted))
    return found.length === wanted.length && found.every((each, at) => agrees(each, wanted[at]))
  if (typeof found !== 'object' || typeof wanted !== 'object') return found === wanted
  return Object.entries(found).every(([kind, inner]) =>
    agrees(inner, (wanted as Record<string, unknown>)[kind]),
  )
}

/** A model in base64 and the types that the reference infers. */
interface ShapeRecord {
  readonly name: string
  readonly model: string
  readonly inferred: Readonly<Record<string, unknown>>
}

describe('inferTypes against onnx.shape_inference', () => {
  const path = fileURLToPath(new URL('../../../fixtures/onnx_shapes.jsonl', import.meta.url))
  const lines = readFileSync(path, 'utf8').trim().split('\n')
  const records = lines.map((line) => JSON.parse(line) as ShapeRecord)

  it.each(records.map((record) => [record.name, record] as const))('%s', async (_, { model, inferred }) => {
    const file = await open(Buffer.from(model, 'base64'))
    const types = inferTypes(file.onnx!)
    const wrong = Object.entries(inferred).filter(
      ([name, wanted]) => !agrees(recordOf(types.get(name)), wanted),
    )
    expect(wrong.map(([name]) => name)).toEqual([])
    const unknown = Object.entries(inferred).filter(([name, wanted]) => wanted !== null && !types.has(name))
    expect(unknown.map(([name]) => name)).toEqual([])
  })

  it('agrees with declared outputs of published models', THIRD_PARTY, async () => {
    for (const { path } of thirdPartyFiles('onnx').filter((each) => each.path.endsWith('.onnx'))) {
      const file = await open(thirdPartyPath(path))
      const { conflicts } = inferShapes(file.onnx!.copy())
      expect(
        conflicts.map(({ name }) => name),
        path,
      ).toEqual([])
      file.close()
    }
  })
})

describe('inferShapes', () => {
  it('declares intermediate values and outputs, and writes a model without findings', async () => {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', float('N', 3, 8))
    graph.addNode({ opType: 'Flatten', inputs: ['x'], outputs: ['flat'] })
    graph.addNode({ opType: 'Shape', inputs: ['flat'], outputs: ['shape'] })
    graph.addNode({
      opType: 'Concat',
      inputs: ['flat', 'flat'],
      outputs: ['y'],
      attributes: { axis: { type: 'INT', value: 0 } },
    })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
    expect(inferShapes(model)).toEqual({ changed: 3, conflicts: [] })
    expect(graph.typeOf('flat')).toEqual(float('N', 24))
    expect(graph.typeOf('shape')).toEqual(int(2))
    expect(graph.typeOf('y')).toEqual(float('2*N', 24))
    expect(inferShapes(model).changed).toBe(0)
    expect(await check(await serialize(model), { level: 'strict' })).toEqual([])
  })

  it('reports declared types that contradict their node, and keeps them', () => {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', float(2, 3))
    graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['y'] })
    graph.addOutput('y', float(2, 4))
    const { conflicts } = inferShapes(model)
    expect(conflicts).toMatchObject([{ name: 'y', declared: float(2, 4), inferred: float(2, 3) }])
    expect(conflicts[0]!.graph).toBe(graph)
    expect(graph.typeOf('y')).toEqual(float(2, 4))
  })

  it('follows Min and Max of any number of inputs', () => {
    const model = OnnxModel.create()
    const { graph } = model
    for (const [name, value] of Object.entries({ a: 5, b: 6, c: 1 })) graph.setInitializer(name, list(value))
    graph.addNode({ opType: 'Min', inputs: ['a', 'b', 'c'], outputs: ['least'] })
    graph.addNode({ opType: 'Max', inputs: ['c'], outputs: ['most'] })
    for (const name of ['least', 'most'])
      graph.addNode({ opType: 'ConstantOfShape', inputs: [name], outputs: [`${name} of`] })
    const types = inferTypes(model)
    expect(['least of', 'most of'].map((name) => types.get(name))).toEqual([float(1), float(1)])
  })

  it('takes the number of channels from any parameter of a BatchNormalization', () => {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', float(2, 'c', 4))
    for (const name of ['scale', 'bias', 'mean']) graph.addInput(name, float('c'))
    graph.addInput('variance', float(3))
    graph.addNode({
      opType: 'BatchNormalization',
      inputs: ['x', 'scale', 'bias', 'mean', 'variance'],
      outputs: ['y', 'running_mean', 'running_variance'],
      attributes: { training_mode: { type: 'INT', value: 1 } },
    })
    graph.addOutput('y', { kind: 'none' })
    expect(inferTypes(model).get('running_mean')).toEqual(float(3))
  })

  it('knows nothing of the present keys of an Attention whose past has another rank', () => {
    const model = OnnxModel.create({ opset: 23 })
    const { graph } = model
    for (const name of ['q', 'k', 'v']) graph.addInput(name, float(1, 2, 3, 4))
    for (const name of ['past_key', 'past_value']) graph.addInput(name, float(5))
    graph.addNode({
      opType: 'Attention',
      inputs: ['q', 'k', 'v', '', 'past_key', 'past_value'],
      outputs: ['y', 'present_key', 'present_value'],
    })
    graph.addOutput('y', { kind: 'none' })
    const types = inferTypes(model)
    expect(types.get('y')).toEqual(float(1, 2, 3, 4))
    expect(types.get('present_key')).toEqual({ kind: 'tensor', dtype: 'float32' })
  })

  it('takes as many features from a list of ArrayFeatureExtractor as there are indices', () => {
    const model = OnnxModel.create()
    model.setOpsetImport('ai.onnx.ml', 3)
    const { graph } = model
    graph.addInput('list', float(60))
    graph.addInput('rows', float(2, 4))
    graph.addInput('indices', int(5, 3))
    for (const data of ['list', 'rows'])
      graph.addNode({
        opType: 'ArrayFeatureExtractor',
        domain: 'ai.onnx.ml',
        inputs: [data, 'indices'],
        outputs: [`of ${data}`],
      })
    const types = inferTypes(model)
    expect(['of list', 'of rows'].map((name) => types.get(name))).toEqual([float(1, 15), float(2, 15)])
  })

  it('does not follow functions that call others twice forever', () => {
    const model = OnnxModel.create()
    model.graph.addInput('x', float(1))
    const depth = 40
    for (let level = 0; level < depth; level++) {
      const inner = level === 0 ? { opType: 'Relu' } : { opType: `f${level - 1}`, domain: 'local' }
      addFunction(model, {
        domain: 'local',
        name: `f${level}`,
        inputs: ['a'],
        outputs: ['c'],
        opsetImports: { '': 21, local: 1 },
        nodes: [
          { ...inner, inputs: ['a'], outputs: ['b'] },
          { ...inner, inputs: ['b'], outputs: ['c'] },
        ],
      })
    }
    model.graph.addNode({ opType: `f${depth - 1}`, domain: 'local', inputs: ['x'], outputs: ['y'] })
    expect(inferTypes(model).has('x')).toBe(true)
  }, 60_000)

  it('widens what a loop changes', () => {
    const body = Graph.create('body')
    body.addInput('i', int())
    body.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    body.addInput('s', { kind: 'tensor', dtype: 'float32' })
    body.addNode({
      opType: 'Concat',
      inputs: ['s', 's'],
      outputs: ['t'],
      attributes: { axis: { type: 'INT', value: 0 } },
    })
    body.addNode({ opType: 'Identity', inputs: ['c'], outputs: ['d'] })
    body.addOutput('d', { kind: 'none' })
    body.addOutput('t', { kind: 'none' })
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', float(2, 5))
    graph.addInput('n', int())
    graph.addNode({
      opType: 'Loop',
      inputs: ['n', '', 'x'],
      outputs: ['y'],
      attributes: { body: { type: 'GRAPH', value: body } },
    })
    expect(inferTypes(model).get('y')).toEqual(float(null, 5))
  })
})

describe('setInputShape', () => {
  /** x [1, 4, 6] -> Relu -> Reshape to [1, 24] -> MatMul [24, 5] -> y, with all types declared. */
  function flattened(target = [1, 24]): OnnxModel {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('x', float(1, 4, 6))
    graph.setInitializer('to', list(...target))
    graph.setInitializer('w', tensor(new Float32Array(120), { shape: [24, 5] }))
    graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['a'] })
    graph.addNode({ opType: 'Reshape', name: 'flatten', inputs: ['a', 'to'], outputs: ['b'] })
    graph.addNode({ opType: 'MatMul', name: 'dense', inputs: ['b', 'w'], outputs: ['y'] })
    graph.addOutput('y', float(1, 5))
    inferShapes(model)
    return model
  }

  it.each([['N'], [8]])('follows the batch %s into Reshape and declared types', async (batch) => {
    const model = flattened()
    const { reshaped, blocked, unknown } = setBatch(model, batch)
    expect([reshaped.map(({ name }) => name), blocked, unknown]).toEqual([['flatten'], [], []])
    const { graph } = model
    expect(['x', 'a', 'b', 'y'].map((name) => graph.typeOf(name))).toEqual([
      float(batch, 4, 6),
      float(batch, 4, 6),
      float(batch, 24),
      float(batch, 5),
    ])
    expect(await check(await serialize(model), { level: 'strict' })).toEqual([])
  })

  it('keeps a target that other nodes use', () => {
    const model = flattened()
    const { graph } = model
    graph.addNode({ opType: 'Identity', inputs: ['to'], outputs: ['same'] })
    setBatch(model, 3)
    expect(graph.value('to')!.uses.map(({ node }) => node.opType)).toEqual(['Identity'])
    expect(inferTypes(model).get('b')).toEqual(float(3, 24))
  })

  it('names nodes that do not fit', () => {
    expect(() => setInputShape(flattened([0, -1]), 'x', [1, 4, 7])).toThrow(
      'Nodes do not fit the new shape: MatMul "dense". edit --allow-partial',
    )
    const { blocked, unknown } = setInputShape(flattened([0, -1]), 'x', [1, 4, 7], { allowPartial: true })
    expect(blocked.map(({ name }) => name)).toEqual(['dense'])
    expect(unknown).toEqual(['y'])
  })

  it('follows into subgraphs', () => {
    const model = OnnxModel.create()
    const { graph } = model
    graph.addInput('c', { kind: 'tensor', dtype: 'bool', shape: [] })
    graph.addInput('x', float(1, 4))
    const branch = (opType: string, name: string): Graph => {
      const made = Graph.create(name)
      made.addNode({ opType, inputs: ['x'], outputs: [name] })
      made.addOutput(name, float(1, 4))
      return made
    }
    const attributes = {
      then_branch: { type: 'GRAPH', value: branch('Relu', 'r') },
      else_branch: { type: 'GRAPH', value: branch('Neg', 's') },
    } as const
    const node = graph.addNode({ opType: 'If', inputs: ['c'], outputs: ['y'], attributes })
    graph.addOutput('y', float(1, 4))
    setInputShape(model, 'x', ['N', 4])
    expect(node.subgraphs.map((each) => each.outputs[0]!.type)).toEqual([float('N', 4), float('N', 4)])
    expect(graph.typeOf('y')).toEqual(float('N', 4))
  })

  it.each<[string, readonly unknown[], TileworkError['code'], RegExp]>([
    ['y', [1, 2, 3], 'ERR_GRAPH', /not an input/],
    ['x', [1, 2], 'ERR_ARGUMENT', /rank 2; input "x" has rank 3/],
    ['x', [1, -2, 3], 'ERR_ARGUMENT', /-2; a dimension is/],
    ['x', [1, '', 3], 'ERR_ARGUMENT', /a dimension is/],
    ['x', [1, 1.5, 3], 'ERR_ARGUMENT', /a dimension is/],
  ])('refuses %s as %s', (name, shape, code, message) => {
    const model = flattened()
    const edit = () => setInputShape(model, name, shape as number[])
    expect(edit).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }))
    expect(model.graph.typeOf('x')).toEqual(float(1, 4, 6))
  })

  it('asks for a shape before a batch', () => {
    const model = OnnxModel.create()
    model.graph.addInput('x', { kind: 'tensor', dtype: 'float32' })
    expect(() => setBatch(model, 2)).toThrow(/"x" has no shape/)
  })
})

it('extract declares inferred types of inputs and outputs', () => {
  const model = OnnxModel.create()
  const { graph } = model
  graph.addInput('x', float('N', 4))
  graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['a'] })
  graph.addNode({ opType: 'Neg', inputs: ['a'], outputs: ['b'] })
  graph.addNode({ opType: 'Exp', inputs: ['b'], outputs: ['y'] })
  graph.addOutput('y', float('N', 4))
  const part = extract(model, ['a'], ['b']).graph
  expect(part.inputs.map(({ type }) => type)).toEqual([float('N', 4)])
  expect(part.outputs.map(({ type }) => type)).toEqual([float('N', 4)])
})

describe('rules of versions', () => {
  /** The type of the output of one node with a float input x and constants. */
  function inferred(
    opset: number,
    node: Omit<NewNode, 'outputs'>,
    shape: readonly number[],
    axes?: number[],
  ): unknown {
    const model = OnnxModel.create({ opset })
    model.graph.addInput('x', float(...shape))
    if (axes) model.graph.setInitializer('axes', list(...axes))
    model.graph.addNode({ ...node, outputs: ['y'] })
    const type = inferTypes(model).get('y')
    return type?.kind === 'tensor' ? type.shape : type
  }
  const ints = (...value: number[]) => ({ type: 'INTS', value }) as const
  const int1 = (value: number) => ({ type: 'INT', value }) as const

  it('takes axes from the attribute or from the input', () => {
    const byAttribute = { opType: 'ReduceMean', inputs: ['x'], attributes: { axes: ints(1) } }
    const byInput = { opType: 'ReduceMean', inputs: ['x', 'axes'] }
    expect(inferred(13, byAttribute, [2, 3])).toEqual([2, 1])
    expect(inferred(18, byInput, [2, 3], [1])).toEqual([2, 1])
    // The input is an error in version 13, which implementations take differently.
    expect(inferred(13, byInput, [2, 3], [1])).toEqual([null, null])
    expect(inferred(13, { opType: 'ReduceSum', inputs: ['x', 'axes'] }, [2, 3], [1])).toEqual([2, 1])
  })

  it('leaves out a last window in the padding since version 22', () => {
    const attributes = { kernel_shape: ints(1, 1), strides: ints(2, 2), ceil_mode: int1(1) }
    const pool = { opType: 'MaxPool', inputs: ['x'], attributes }
    expect(inferred(22, pool, [1, 1, 2, 2])).toEqual([1, 1, 1, 1])
    expect(inferred(20, pool, [1, 1, 2, 2])).toEqual([1, 1, 2, 2])
  })

  it('takes parts of a shape since version 15', () => {
    const shape = { opType: 'Shape', inputs: ['x'], attributes: { start: int1(1) } }
    expect(inferred(14, shape, [2, 3, 4])).toEqual([3])
    expect(inferred(15, shape, [2, 3, 4])).toEqual([2])
  })

  it('takes attributes of any length', () => {
    const value = Array.from({ length: 300_000 }, (_, index) => index)
    const ngrams = {
      opType: 'TfIdfVectorizer',
      inputs: ['x'],
      attributes: { ngram_indexes: { type: 'INTS', value } },
    }
    expect(inferred(9, ngrams as NewNode, [2, 3])).toEqual([2, 300_000])
  })
})
