/** mergeModels, addPrefix, expandOutputDims, and the inputs and outputs of a graph. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { check, type DenseTensor, open, save, serialize, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  addPrefix,
  expandOutputDims,
  Graph,
  inferShapes,
  inferTypes,
  mergeModels,
  type NewNode,
  OnnxModel,
  type ValueType,
} from '../../../../lib/onnx.js'

const FLOAT: ValueType = { kind: 'tensor', dtype: 'float32', shape: ['N', 'M'] }

/** A model of nodes given as `[operator, inputs, output]`. */
function model(
  inputs: readonly string[],
  outputs: readonly string[],
  nodes: readonly (readonly [string, readonly string[], string])[],
  { irVersion = 7, opset = 10 } = {},
): OnnxModel {
  const made = OnnxModel.create({ irVersion, opset, graphName: 'agraph' })
  for (const name of inputs) made.graph.addInput(name, FLOAT)
  for (const [opType, used, output] of nodes)
    made.graph.addNode({ opType, name: `n_${output}`, inputs: used, outputs: [output] })
  for (const name of outputs) made.graph.addOutput(name, FLOAT)
  return made
}

const first = (): OnnxModel =>
  model(
    ['A0', 'A1', '_A'],
    ['B00', 'B10', 'B20'],
    [
      ['Add', ['A0', 'A1'], 'B00'],
      ['Sub', ['A0', 'A1'], 'B10'],
      ['Mul', ['A0', 'A1'], 'B20'],
    ],
  )

const second = (): OnnxModel =>
  model(
    ['B01', 'B11', 'B21'],
    ['D0'],
    [
      ['Add', ['B01', 'B11'], 'C0'],
      ['Sub', ['B11', 'B21'], 'C1'],
      ['Mul', ['C0', 'C1'], 'D0'],
    ],
  )

/** Inputs, outputs and operators of a model, after it was written and read. */
async function partsOf(made: OnnxModel): Promise<readonly (readonly string[])[]> {
  const bytes = await serialize(made)
  const findings = await check(bytes, { level: 'strict' })
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
  using file = await open(bytes)
  const { graph } = file.onnx!
  return [[...graph.inputNames], [...graph.outputNames], graph.nodes.map(({ opType }) => opType)]
}

const shaped = (...shape: readonly (number | string | null)[]): ValueType => ({
  kind: 'tensor',
  dtype: 'float32',
  shape,
})

describe('mergeModels', () => {
  it('connects all outputs to all inputs', async () => {
    const ioMap = [
      ['B00', 'B01'],
      ['B10', 'B11'],
      ['B20', 'B21'],
    ] as const
    const [one, other] = [first(), second()]
    const merged = mergeModels(one, other, { ioMap })
    expect(await partsOf(merged)).toEqual([
      ['A0', 'A1', '_A'],
      ['D0'],
      ['Add', 'Sub', 'Mul', 'Add', 'Sub', 'Mul'],
    ])
    expect(merged.graph.nodes[4]!.inputs).toEqual(['B10', 'B20'])
    expect(merged.graph.typeOf('B10')).toEqual(FLOAT)
    expect([merged.graph.name, merged.producerName, merged.modelVersion]).toEqual([
      'agraph_agraph',
      'tilework',
      1,
    ])
    expect([one.graph.nodes.length, [...other.graph.inputNames]]).toEqual([3, ['B01', 'B11', 'B21']])
  })

  it('connects one output to several inputs, and keeps the outputs asked for', async () => {
    const ioMap = [
      ['B00', 'B01'],
      ['B00', 'B11'],
      ['B00', 'B21'],
    ] as const
    expect(await partsOf(mergeModels(first(), second(), { ioMap }))).toEqual([
      ['A0', 'A1', '_A'],
      ['B10', 'B20', 'D0'],
      ['Add', 'Sub', 'Mul', 'Add', 'Sub', 'Mul'],
    ])
    expect(await partsOf(mergeModels(first(), second(), { ioMap, outputs: ['D0'] }))).toEqual([
      ['A0', 'A1', '_A'],
      ['D0'],
      ['Add', 'Add', 'Sub', 'Mul'],
    ])
    const both = mergeModels(first(), second(), { ioMap, outputs: ['D0', 'B00'] })
    expect((await partsOf(both))[1]).toEqual(['D0', 'B00'])
  })

  it('connects some outputs, and none', async () => {
    const ioMap = [
      ['B00', 'B01'],
      ['B10', 'B11'],
    ] as const
    const [inputs, outputs] = await partsOf(mergeModels(first(), second(), { ioMap }))
    expect([inputs, outputs]).toEqual([
      ['A0', 'A1', '_A', 'B21'],
      ['B20', 'D0'],
    ])
    const apart = mergeModels(first(), second())
    expect((await partsOf(apart))[0]).toEqual(['A0', 'A1', '_A', 'B01', 'B11', 'B21'])
  })

  it('connects an output and an input of the same name', async () => {
    const one = model(['A'], ['B'], [['Add', ['A', 'A'], 'B']])
    const other = model(['B'], ['C'], [['Add', ['B', 'B'], 'C']])
    expect(await partsOf(mergeModels(one, other, { ioMap: [['B', 'B']] }))).toEqual([
      ['A'],
      ['C'],
      ['Add', 'Add'],
    ])
  })

  it('keeps the inputs and outputs of the options', async () => {
    const one = model(
      ['A0', 'B0'],
      ['A1', 'B1'],
      [
        ['Add', ['A0', 'A0'], 'A1'],
        ['Sub', ['B0', 'B0'], 'B1'],
      ],
    )
    const other = model(
      ['A2', 'B2'],
      ['A3', 'B3'],
      [
        ['Add', ['A2', 'A2'], 'A3'],
        ['Sub', ['B2', 'B2'], 'B3'],
      ],
    )
    const ioMap = [['A1', 'B2']] as const
    const merged = mergeModels(one, other, { ioMap, inputs: ['A0'], outputs: ['B3'] })
    expect(await partsOf(merged)).toEqual([['A0'], ['B3'], ['Add', 'Sub']])
    const wrong = { ioMap, inputs: ['A2'], outputs: ['B3'] }
    expect(() => mergeModels(one, other, wrong)).toThrow('"A0" is used by the node "n_A1" (Add)')
  })

  it('puts prefixes before names of both models', async () => {
    const one = model(['A', 'B'], ['C'], [['Add', ['A', 'B'], 'C']])
    const options = { ioMap: [['C', 'A']], prefix1: 'm1/', prefix2: 'm2/' } as const
    const merged = mergeModels(one, one, options)
    expect(await partsOf(merged)).toEqual([['m1/A', 'm1/B', 'm2/B'], ['m2/C'], ['Add', 'Add']])
    expect(merged.graph.nodes.map(({ name }) => name)).toEqual(['m1/n_C', 'm2/n_C'])
    expect(() => mergeModels(one, one, { ioMap: [['C', 'A']] })).toThrow(
      'Both models have values of the names "B", "C"',
    )
  })

  it('joins metadata, operator sets and texts', () => {
    const [one, other] = [first(), second()]
    one.setMetadata('p1', 'v1')
    one.setMetadata('p2', 'v2')
    other.setMetadata('p1', 'v1')
    other.setMetadata('p4', 'v4')
    other.setOpsetImport('com.microsoft', 1)
    one.graph.docString = 'one'
    other.graph.docString = 'other'
    one.graph.setMetadata('k', '1')
    other.graph.setMetadata('k', '2')
    const merged = mergeModels(one, other)
    expect(Object.fromEntries(merged.metadata)).toEqual({ p1: 'v1', p2: 'v2', p4: 'v4' })
    expect([...merged.opsetImports]).toEqual([
      ['', 10],
      ['com.microsoft', 1],
    ])
    expect([merged.graph.docString, merged.graph.metadata.get('k')]).toEqual(['one\n\nother', '1'])
    const texts = {
      name: 'g',
      docString: 'd',
      producerName: 'p',
      producerVersion: '2',
      domain: 'x',
      modelVersion: 3,
    }
    const named = mergeModels(one, other, texts)
    const { producerName, producerVersion, domain, modelVersion, graph } = named
    expect({
      name: graph.name,
      docString: graph.docString,
      producerName,
      producerVersion,
      domain,
      modelVersion,
    }).toEqual(texts)
    other.setMetadata('p1', 'v5')
    expect(() => mergeModels(one, other)).toThrow('"v1" and "v5" as the metadata "p1"')
  })

  const otherIr = (): OnnxModel => model(['X'], ['Y'], [['Relu', ['X'], 'Y']], { irVersion: 6 })
  const otherOpset = (): OnnxModel => model(['X'], ['Y'], [['Relu', ['X'], 'Y']], { opset: 15 })
  it.each<[string, () => OnnxModel, object, string]>([
    ['an unknown output', second, { ioMap: [['wrong', 'B01']] }, '"wrong" is no output of the first model'],
    ['an unknown input', second, { ioMap: [['B00', 'wrong']] }, '"wrong" is no input of the second model'],
    [
      'an input twice',
      second,
      {
        ioMap: [
          ['B00', 'B01'],
          ['B10', 'B01'],
        ],
      },
      '"B01" occurs twice',
    ],
    ['another IR version', otherIr, {}, 'IR versions 7 and 6'],
    ['another operator set', otherOpset, {}, 'versions 10 and 15 of the operator set "ai.onnx"'],
    ['no pair', second, { ioMap: [['B00']] }, 'must have pairs'],
    ['an unknown kept output', second, { outputs: ['B0'] }, '"B0" is no output of the models'],
    ['an unknown kept input', second, { inputs: ['B0'] }, '"B0" is no input of the models'],
    ['an output twice', second, { outputs: ['D0', 'D0'] }, 'twice'],
    ['an unknown option', second, { prefix: 'a' }, 'unknown option "prefix"'],
  ])('refuses %s', (_, other, options, text) => {
    expect(() => mergeModels(first(), other(), options as never)).toThrow(text)
  })

  it.each<[string, ValueType, ValueType, boolean]>([
    ['another rank', shaped(2, 3), shaped(2, 3, 1), false],
    ['another extent', shaped(2, 3), shaped(2, 4), false],
    ['an open extent', shaped('N', 3), shaped(2, 3), true],
    ['another name of an extent', shaped('N', 3), shaped('M', null), true],
    ['any rank', { kind: 'tensor', dtype: 'float32' }, shaped(2), true],
    ['a sequence', { kind: 'sequence', of: shaped(2) }, shaped(2), false],
    [
      'sequences of other tensors',
      { kind: 'sequence', of: shaped(2) },
      { kind: 'sequence', of: shaped(3) },
      false,
    ],
    ['equal sequences', { kind: 'sequence', of: shaped(2) }, { kind: 'sequence', of: shaped(2) }, true],
  ])('connects an output to an input that may have its shape: %s', (_, from, to, isPossible) => {
    const [one, other] = [OnnxModel.create(), OnnxModel.create()]
    one.graph.addInput('a', from)
    one.graph.addNode({ opType: 'Identity', inputs: ['a'], outputs: ['b'] })
    one.graph.addOutput('b', from)
    other.graph.addInput('c', to)
    other.graph.addNode({ opType: 'Identity', inputs: ['c'], outputs: ['d'] })
    other.graph.addOutput('d', to)
    const merged = () => mergeModels(one, other, { ioMap: [['b', 'c']] })
    if (isPossible) expect([...merged().graph.outputNames]).toEqual(['d'])
    else expect(merged).toThrow(/^The output "b" is .*, and the input "c" takes .*\.$/)
  })

  it('refuses an output of another type', () => {
    const other = second()
    other.graph.setType('B01', { ...FLOAT, dtype: 'int64' } as ValueType)
    expect(() => mergeModels(first(), other, { ioMap: [['B00', 'B01']] })).toThrow(
      'The output "B00" is float32 [N, M], and the input "B01" takes int64 [N, M].',
    )
  })

  it('drops initializers and types of connected inputs, and renames uses in subgraphs', async () => {
    const one = model(['x'], ['y'], [['Identity', ['x'], 'y']])
    const other = model(['x'], [], [])
    const inner = Graph.create('inner')
    inner.addNode({ opType: 'Neg', inputs: ['x'], outputs: ['z'] })
    inner.addOutput('z', FLOAT)
    const branch = { type: 'GRAPH', value: inner } as const
    other.graph.setInitializer('x', tensor(Float32Array.of(0)))
    other.graph.setInitializer('c', tensor([true], { dtype: 'bool', shape: [] }))
    const attributes: NewNode['attributes'] = { then_branch: branch, else_branch: branch }
    other.graph.addNode({ opType: 'If', inputs: ['c'], outputs: ['w'], attributes })
    other.graph.addOutput('w', FLOAT)
    const merged = mergeModels(one, other, { ioMap: [['y', 'x']], prefix1: 'm1/' })
    await partsOf(merged)
    expect(merged.graph.initializerNames).toEqual(['c'])
    expect(merged.graph.valueInfo.map(({ name }) => name)).toEqual(['m1/y'])
    const [graph] = merged.graph.nodes[1]!.subgraphs
    expect(graph!.nodes[0]!.inputs).toEqual(['m1/y'])
  })

  it('refuses a name that a subgraph of the other model hides', () => {
    const one = model(['x'], ['z'], [['Identity', ['x'], 'z']])
    const other = model(['b'], [], [])
    const inner = Graph.create()
    inner.addNode({ opType: 'Neg', inputs: ['b'], outputs: ['z'] })
    const body = { body: { type: 'GRAPH', value: inner } } as const
    other.graph.addNode({ opType: 'Own', domain: 'own', outputs: ['w'], attributes: body })
    expect(() => mergeModels(one, other, { ioMap: [['z', 'b']] })).toThrow('"z"; set prefix1')
  })

  it('renames functions and their calls, and refuses equal keys', async () => {
    const caller = (opType: string): OnnxModel => {
      const made = OnnxModel.create({ opset: 17 })
      for (const name of ['x0', 'x1']) made.graph.addInput(name, FLOAT)
      const inputs = ['x0', 'x1']
      const add = { opType: 'Add', inputs, outputs: ['y'] }
      addFunction(made, { domain: 'local', name: 'f1', inputs, outputs: ['y'], nodes: [add] })
      const call = { opType: 'f1', domain: 'local', inputs, outputs: ['y'] }
      addFunction(made, { domain: 'local', name: 'f2', inputs, outputs: ['y'], nodes: [call] })
      made.graph.addNode({ opType, domain: 'local', inputs, outputs: ['y'] })
      made.graph.addOutput('y', FLOAT)
      return made
    }
    const ioMap = [
      ['y', 'x0'],
      ['y', 'x1'],
    ] as const
    const merged = mergeModels(caller('f1'), caller('f2'), { ioMap, prefix1: 'm1/', prefix2: 'm2/' })
    expect((await partsOf(merged))[2]).toEqual(['m1/f1', 'm2/f2'])
    expect(merged.functions.map(({ name, nodes }) => [name, nodes[0]!.opType])).toEqual([
      ['m1/f1', 'Add'],
      ['m1/f2', 'm1/f1'],
      ['m2/f1', 'Add'],
      ['m2/f2', 'm2/f1'],
    ])
    const other = caller('f1')
    addPrefix(other, 'm2/', { functions: false })
    expect(() => mergeModels(caller('f1'), other)).toThrow(
      'Both models have a function "f1" in the domain "local"',
    )
  })
})

describe('mergeModels of files', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tilework-compose-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const valuesOf = (graph: Graph, name: string) => (graph.initializer(name) as DenseTensor).toTypedArray()

  it('copies external data, and renames a file whose name both models use', async () => {
    const weights = (value: number): Float32Array => new Float32Array(600).fill(value)
    const at = (...names: readonly string[]): string => join(folder, ...names)
    const write = async (name: string, value: number): Promise<void> => {
      const made = model(['x'], ['y'], [['Add', ['x', 'w'], 'y']])
      made.graph.setInitializer('w', tensor(weights(value), { shape: [600] }))
      await save(at(name, 'm.onnx'), made, { external: { location: 'w.bin' } })
    }
    for (const name of ['a', 'b', 'out']) mkdirSync(at(name))
    await write('a', 1)
    await write('b', 2)
    {
      using one = await open(at('a', 'm.onnx'))
      using other = await open(at('b', 'm.onnx'))
      const options = { ioMap: [['y', 'x']], prefix1: '1/', prefix2: '2/' } as const
      const merged = mergeModels(one.onnx!, other.onnx!, options)
      expect(await valuesOf(merged.graph, '2/w')).toEqual(weights(2))
      await save(at('out', 'm.onnx'), merged)
      await save(at('out', 'whole.onnx'), merged, { external: false })
    }
    expect(readdirSync(at('out')).sort()).toEqual(['m.onnx', 'w-1.bin', 'w.bin', 'whole.onnx'])
    for (const name of ['m.onnx', 'whole.onnx']) {
      using file = await open(at('out', name))
      const { graph } = file.onnx!
      expect(await valuesOf(graph, '1/w')).toEqual(weights(1))
      expect(await valuesOf(graph, '2/w')).toEqual(weights(2))
      expect(await check(at('out', name), { level: 'strict' })).toEqual([])
    }
  })
})

describe('addPrefix', () => {
  const nested = (): OnnxModel => {
    const made = model(['b', 'X', 'unused'], [], [['Mul', ['X', 'w'], 'XY']], { opset: 13 })
    const inner = Graph.create('then')
    inner.addNode({ opType: 'Add', name: 'add', inputs: ['XY', ''], outputs: ['z'] })
    inner.setInitializer('c', tensor(Float32Array.of(1)))
    inner.addOutput('z', FLOAT)
    const branch = { type: 'GRAPH', value: inner } as const
    made.graph.setInitializer('w', tensor(Float32Array.of(1)))
    made.graph.addNode({ opType: 'If', inputs: ['b'], outputs: ['Z'], attributes: { then_branch: branch } })
    made.graph.setType('XY', FLOAT)
    made.graph.addOutput('Z', FLOAT)
    return made
  }
  const namesOf = ({ graph }: OnnxModel): unknown => {
    const [mul, branch] = graph.nodes
    const [inner] = branch!.subgraphs
    return [
      [
        [...graph.inputNames],
        [...graph.outputNames],
        graph.initializerNames,
        graph.valueInfo.map(({ name }) => name),
      ],
      [mul!.name, mul!.inputs, mul!.outputs, branch!.inputs, branch!.outputs],
      [
        inner!.nodes[0]!.name,
        inner!.nodes[0]!.inputs,
        inner!.nodes[0]!.outputs,
        [...inner!.outputNames],
        inner!.initializerNames,
      ],
    ]
  }

  it('renames all names', async () => {
    const made = nested()
    addPrefix(made, 'p/')
    expect(namesOf(made)).toEqual([
      [['p/b', 'p/X', 'p/unused'], ['p/Z'], ['p/w'], ['p/XY']],
      ['p/n_XY', ['p/X', 'p/w'], ['p/XY'], ['p/b'], ['p/Z']],
      ['p/add', ['p/XY', ''], ['p/z'], ['p/z'], ['p/c']],
    ])
    using file = await open(await serialize(made))
    expect(namesOf(file.onnx!)).toEqual(namesOf(made))
    addPrefix(made, '')
    expect(namesOf(file.onnx!)).toEqual(namesOf(made))
  })

  it('renames types of values that are gone, so that a model with them can be merged with itself', () => {
    const made = model(
      ['A'],
      ['B'],
      [
        ['Neg', ['A'], 'gone'],
        ['Neg', ['A'], 'B'],
      ],
    )
    made.graph.setType('gone', FLOAT)
    const stale = made.graph.message.messages('value_info')[0]!
    stale.setText('name', 'stale')
    const other = made.copy()
    const merged = mergeModels(made, other, { prefix2: 'p/' })
    expect(merged.graph.valueInfo.map(({ name }) => name)).toEqual(['stale', 'p/stale'])
    addPrefix(made, 'q/', { values: false })
    expect(made.graph.valueInfo.map(({ name }) => name)).toEqual(['stale'])
  })

  it('renames the kinds of names that are chosen', () => {
    const none = {
      nodes: false,
      values: false,
      inputs: false,
      outputs: false,
      initializers: false,
      functions: false,
    }
    const names = (chosen: object): unknown => {
      const made = nested()
      addPrefix(made, 'p/', { ...none, ...chosen })
      return namesOf(made)
    }
    expect(names({})).toEqual(namesOf(nested()))
    expect(names({ inputs: true })).toEqual([
      [['p/b', 'p/X', 'p/unused'], ['Z'], ['w'], ['XY']],
      ['n_XY', ['p/X', 'w'], ['XY'], ['p/b'], ['Z']],
      ['add', ['XY', ''], ['z'], ['z'], ['c']],
    ])
    expect(names({ values: true, nodes: true })).toEqual([
      [['b', 'X', 'unused'], ['Z'], ['w'], ['p/XY']],
      ['p/n_XY', ['X', 'w'], ['p/XY'], ['b'], ['Z']],
      ['p/add', ['p/XY', ''], ['p/z'], ['p/z'], ['p/c']],
    ])
    expect(names({ outputs: true, initializers: true })).toEqual([
      [['b', 'X', 'unused'], ['p/Z'], ['p/w'], ['XY']],
      ['n_XY', ['X', 'p/w'], ['XY'], ['b'], ['p/Z']],
      ['add', ['XY', ''], ['z'], ['z'], ['c']],
    ])
  })

  it('refuses a new name that another value keeps', () => {
    const made = model(['p/y', 'x'], ['y'], [['Add', ['p/y', 'x'], 'y']])
    expect(() => addPrefix(made, 'p/', { inputs: false })).toThrow('the name of another value, "p/y"')
    expect([...made.graph.outputNames]).toEqual(['y'])
    expect(() => addPrefix(made, 'p/', { nodes: 1 } as never)).toThrow('nodes of addPrefix is 1')
  })
})

describe('expandOutputDims', () => {
  it.each([
    [0, [1, 'N', 'M']],
    [2, ['N', 'M', 1]],
    [-1, ['N', 'M', 1]],
    [-3, [1, 'N', 'M']],
  ])('inserts the axis %i', async (axis, shape) => {
    for (const opset of [10, 13]) {
      const made = model(
        ['A0', 'A1'],
        ['B', 'C'],
        [
          ['Add', ['A0', 'A1'], 'B'],
          ['Sub', ['B', 'A1'], 'C'],
        ],
        { opset },
      )
      expandOutputDims(made, axis)
      const [inputs, outputs] = await partsOf(made)
      expect([inputs, outputs]).toEqual([
        ['A0', 'A1'],
        ['B', 'C'],
      ])
      for (const name of outputs!) {
        expect(made.graph.typeOf(name)).toEqual({ ...FLOAT, shape })
        expect(made.graph.producerOf(name)!.opType).toBe('Unsqueeze')
      }
      const sub = made.graph.nodes.find(({ opType }) => opType === 'Sub')!
      expect(made.graph.producerOf(sub.inputs[0]!)!.opType).toBe('Add')
      expect(inferShapes(made).conflicts).toEqual([])
    }
  })

  it('refuses an output without a declared type that is a sequence, and leaves a tensor without one open', () => {
    const made = model(
      ['A'],
      [],
      [
        ['Neg', ['A'], 'B'],
        ['SplitToSequence', ['A'], 'C'],
      ],
      { opset: 17 },
    )
    made.graph.addOutput('B', { kind: 'none' })
    expect(() => expandOutputDims(made.copy(), 3)).toThrow('takes -3 to 2')
    const list = made.copy()
    list.graph.addOutput('C', { kind: 'none' })
    expect(() => expandOutputDims(list, 0)).toThrow('The output "C" is no dense tensor')
    expandOutputDims(made, 0)
    expect(made.graph.typeOf('B')).toEqual({ kind: 'none' })
    expect(inferTypes(made).get('B')).toEqual({ kind: 'tensor', dtype: 'float32', shape: [1, 'N', 'M'] })
  })

  it('refuses an axis outside of the rank, and outputs that no node computes', () => {
    const made = model(['A'], ['B'], [['Neg', ['A'], 'B']])
    for (const axis of [3, -4]) expect(() => expandOutputDims(made, axis)).toThrow('takes -3 to 2')
    expect(() => expandOutputDims(made, 0.5)).toThrow('must be an integer')
    made.graph.addOutput('A', FLOAT)
    expect(() => expandOutputDims(made, 0)).toThrow('No node computes the output "A"')
    expect(made.graph.nodes.length).toBe(1)
  })
})

describe('inputs and outputs of a graph', () => {
  it('are removed and reordered', async () => {
    const made = first()
    const { graph } = made
    graph.removeInput('_A')
    graph.removeOutput('B10')
    graph.reorderInputs(['A1', 'A0'])
    graph.reorderOutputs(['B20', 'B00'])
    expect((await partsOf(made)).slice(0, 2)).toEqual([
      ['A1', 'A0'],
      ['B20', 'B00'],
    ])
    expect(graph.typeOf('B10')).toEqual(FLOAT)
    graph.setInitializer('A0', tensor(Float32Array.of(1)))
    graph.removeInput('A0')
    expect((await partsOf(made))[0]).toEqual(['A1'])
  })

  it('are refused where they are used or unknown', () => {
    const { graph } = first()
    expect(() => graph.removeInput('A0')).toThrow('"A0" is used by the node "n_B00" (Add)')
    expect(() => graph.removeInput('a0')).toThrow('The graph has no input "a0"; did you mean "A0"?')
    expect(() => graph.removeOutput('A0')).toThrow('The graph has no output "A0"')
    expect(() => graph.reorderInputs(['A0', 'A1'])).toThrow('has 2 names')
    expect(() => graph.reorderInputs(['A0', 'A1', 'A1'])).toThrow('has 3 names')
    expect(() => graph.reorderOutputs(['B00', 'B10', 'x'])).toThrow('no output "x"')
  })
})
