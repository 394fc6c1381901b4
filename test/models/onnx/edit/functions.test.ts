/** addFunction and removeFunction. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize } from '../../../../lib/index.js'
import {
  addFunction,
  Graph,
  type NewFunction,
  type NewNode,
  OnnxModel,
  removeFunction,
} from '../../../../lib/onnx.js'

const double: NewFunction = {
  domain: 'own',
  name: 'Double',
  inputs: ['a'],
  outputs: ['b'],
  attributeNames: ['alpha'],
  nodes: [
    { opType: 'Softmax', inputs: ['a'], outputs: ['b'], attributes: { axis: { type: 'INT', value: 0 } } },
  ],
}

function model(): OnnxModel {
  const made = OnnxModel.create()
  made.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [2] })
  made.graph.addNode({ opType: 'Double', domain: 'own', inputs: ['x'], outputs: ['y'] })
  made.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [2] })
  return made
}

/** An attribute with a nested graph that uses an outer value and operator set. */
const graphOf = (input: string, domain = ''): NonNullable<NewNode['attributes']> => {
  const value = Graph.create()
  value.addNode({ opType: 'Neg', domain, inputs: [input], outputs: ['z'] })
  const around = Graph.create()
  around.addNode({ opType: 'If', outputs: ['w'], attributes: { then_branch: { type: 'GRAPH', value } } })
  return { body: { type: 'GRAPH', value: around } }
}

describe('addFunction', () => {
  it('writes a function that can be read again, and imports its domain', async () => {
    const made = model()
    addFunction(made, double)
    addFunction(made, { ...double, overload: 'again', opsetImports: { '': 20 } })
    const bytes = await serialize(made)
    expect(await check(bytes, { level: 'strict' })).toEqual([])
    using file = await open(bytes)
    const { functions, opsetImports } = file.onnx!
    expect(functions.map(({ domain, name, overload }) => [domain, name, overload])).toEqual([
      ['own', 'Double', ''],
      ['own', 'Double', 'again'],
    ])
    const [first, second] = functions
    expect([first!.inputs, first!.outputs, first!.attributeNames]).toEqual([['a'], ['b'], ['alpha']])
    expect(first!.nodes[0]!.attribute('axis')!.value).toBe(0)
    expect([...first!.opsetImports, ...second!.opsetImports]).toEqual([
      ['', 21],
      ['', 20],
    ])
    expect(opsetImports.get('own')).toBe(1)
  })

  const node = double.nodes[0]!
  const inner = Graph.create()
  inner.addNode({ opType: 'Double', domain: 'own', outputs: ['z'] })
  const body = { type: 'GRAPH', value: inner } as const
  it.each<[string, Partial<NewFunction>, string]>([
    ['a key that is taken', { name: 'Taken' }, 'ERR_ARGUMENT'],
    ['no name', { name: '' }, 'ERR_ARGUMENT'],
    ['no domain', { domain: '' }, 'ERR_ARGUMENT'],
    ['an undefined output', { outputs: ['c'] }, 'ERR_ARGUMENT'],
    ['an undefined input', { inputs: [] }, 'ERR_ARGUMENT'],
    ['a value defined twice', { nodes: [node, node] }, 'ERR_ARGUMENT'],
    [
      'a value that only a graph inside uses',
      { nodes: [{ ...node, attributes: graphOf('c') }] },
      'ERR_ARGUMENT',
    ],
    [
      'a domain of a graph inside',
      { nodes: [{ ...node, attributes: graphOf('a', 'other') }] },
      'ERR_ARGUMENT',
    ],
    ['the other name of the standard domain', { domain: 'ai.onnx' }, 'ERR_ARGUMENT'],
    ['an input twice', { inputs: ['a', 'a'] }, 'ERR_ARGUMENT'],
    ['an output twice', { outputs: ['b', 'b'] }, 'ERR_ARGUMENT'],
    ['an attribute twice', { attributeNames: ['alpha', 'beta', 'alpha'] }, 'ERR_ARGUMENT'],
    ['an input without a name', { inputs: ['a', ''] }, 'ERR_ARGUMENT'],
    ['an output without a name', { outputs: ['b', ''] }, 'ERR_ARGUMENT'],
    ['a value used before its definition', { nodes: [{ ...node, inputs: ['b'] }] }, 'ERR_ARGUMENT'],
    ['a domain without an import', { nodes: [{ ...node, domain: 'other' }] }, 'ERR_ARGUMENT'],
    [
      'a call of itself',
      { opsetImports: { own: 1 }, nodes: [{ ...node, opType: 'Double', domain: 'own' }] },
      'ERR_GRAPH',
    ],
    ['a recursive call in a subgraph', { nodes: [{ ...node, attributes: { body } }] }, 'ERR_GRAPH'],
    [
      'a call of a function that calls it',
      { opsetImports: { own: 1 }, nodes: [{ ...node, opType: 'Taken', domain: 'own' }] },
      'ERR_GRAPH',
    ],
    ['nodes that are not a list', { nodes: 5 as never }, 'ERR_ARGUMENT'],
    ['an unknown option', { inputz: [] } as never, 'ERR_ARGUMENT'],
  ])('refuses %s, and changes nothing', async (_, change, code) => {
    const made = model()
    const calling = { ...node, opType: 'Double', domain: 'own' }
    addFunction(made, { ...double, name: 'Taken', opsetImports: { own: 1 }, nodes: [calling] })
    const before = await serialize(made)
    expect(() => addFunction(made, { ...double, ...change })).toThrow(expect.objectContaining({ code }))
    expect(await serialize(made)).toEqual(before)
  })

  it('accepts subgraphs that use its values, and imports their domains', async () => {
    const made = model()
    made.setOpsetImport('other', 3)
    const [node] = double.nodes
    addFunction(made, { ...double, nodes: [{ ...node!, attributes: graphOf('a', 'other') }] })
    addFunction(made, { ...double, name: 'Renamed', nodes: [{ ...node!, domain: 'ai.onnx' }] })
    addFunction(made, { ...double, name: 'Older', opsetImports: { 'ai.onnx': 17 } })
    expect(await check(await serialize(made))).toEqual([])
    expect(made.functions.map(({ opsetImports }) => Object.fromEntries(opsetImports))).toEqual([
      { '': 21, other: 3 },
      { '': 21 },
      { 'ai.onnx': 17 },
    ])
  })

  it('needs an IR version with functions', () => {
    const old = OnnxModel.create({ irVersion: 7 })
    expect(() => addFunction(old, double)).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED' }))
    const younger = OnnxModel.create({ irVersion: 9 })
    expect(() => addFunction(younger, { ...double, overload: 'o' })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED' }),
    )
  })
})

describe('removeFunction', () => {
  it('removes a function without callers', () => {
    const made = model()
    addFunction(made, double)
    addFunction(made, { ...double, name: 'Other' })
    expect(() => removeFunction(made, 'own', 'Double')).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
    removeFunction(made, 'own', 'Other')
    made.graph.nodes[0]!.opType = 'Identity'
    removeFunction(made, 'own', 'Double')
    expect(made.functions).toEqual([])
    expect(() => removeFunction(made, 'own', 'Double')).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })

  it('refuses to remove a function that another one calls', () => {
    const made = OnnxModel.create()
    addFunction(made, double)
    const node = { ...double.nodes[0]!, opType: 'Double', domain: 'own' }
    addFunction(made, { ...double, name: 'Caller', opsetImports: { own: 1 }, nodes: [node] })
    expect(() => removeFunction(made, 'own', 'Double')).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })
})

describe('the body of a function', () => {
  const refused = (text: string) => expect.objectContaining({ code: 'ERR_ARGUMENT', message: text })

  it('is edited and read again', async () => {
    const made = model()
    const body = addFunction(made, double)
    const neg = body.addNode({ opType: 'Neg', inputs: ['b'], outputs: ['c'] })
    body.insertBefore(neg, { opType: 'Abs', inputs: ['b'], outputs: ['d'] })
    body.insertAfter(neg, { opType: 'Add', inputs: ['c', 'd'], outputs: ['e'] })
    body.outputs = ['e']
    body.inputs = ['a', 'more']
    body.attributeNames = ['alpha', 'beta']
    body.setAttribute('beta', { type: 'FLOAT', value: 2 })
    body.docString = 'text'
    body.setMetadata('key', 'value')
    body.setOpsetImport('', 20)
    body.setType('d', { kind: 'tensor', dtype: 'float32', shape: [2] })
    using file = await open(await serialize(made))
    const [read] = file.onnx!.functions
    expect(read!.nodes.map(({ opType }) => opType)).toEqual(['Softmax', 'Abs', 'Neg', 'Add'])
    expect([read!.inputs, read!.outputs, read!.attributeNames]).toEqual([['a', 'more'], ['e'], ['alpha']])
    expect(read!.attributes.map(({ name, value }) => [name, value])).toEqual([['beta', 2]])
    expect([read!.docString, read!.metadata.get('key'), read!.opsetImports.get('')]).toEqual([
      'text',
      'value',
      20,
    ])
    expect(read!.valueTypes.get('d')).toEqual({ kind: 'tensor', dtype: 'float32', shape: [2] })

    read!.outputs = ['b']
    for (const node of read!.nodes.slice(1).reverse()) read!.removeNode(node)
    expect(read!.removeAttribute('beta')).toBe(true)
    expect(read!.removeAttribute('alpha')).toBe(true)
    expect(read!.removeAttribute('alpha')).toBe(false)
    expect(read!.removeMetadata('key')).toBe(true)
    expect([read!.nodes.length, read!.attributeNames, read!.attributes]).toEqual([1, [], []])
  })

  it('refuses what would break it', () => {
    const made = model()
    const body = addFunction(made, double)
    const [first] = body.nodes
    const foreign = made.graph.nodes[0]!
    expect(() => body.addNode({ opType: 'Neg', inputs: ['a'], outputs: ['b'] })).toThrow(
      refused('The function defines "b" twice.'),
    )
    expect(() => body.removeNode(first!)).toThrow(
      refused('"b" is used by the function as its output; replace its uses first.'),
    )
    expect(() => body.insertAfter(foreign, { opType: 'Neg' })).toThrow(
      /is not a node of the function "Double"/,
    )
    expect(() => body.removeNode(foreign)).toThrow(/is not a node of the function "Double"/)
    const setters: [() => void, string][] = [
      [
        () => Object.assign(body, { inputs: [] }),
        '"a" is used by the node "" (Softmax); replace its uses first.',
      ],
      [() => Object.assign(body, { inputs: ['a', 'b'] }), 'The function defines "b" twice.'],
      [() => Object.assign(body, { inputs: ['a', 'a'] }), 'The inputs of a function contain "a" twice.'],
      [() => Object.assign(body, { outputs: ['z'] }), 'The function has no value "z".'],
      [
        () => Object.assign(body, { attributeNames: [''] }),
        'The attributeNames of a function contain an empty name.',
      ],
    ]
    for (const [set, text] of setters) expect(set).toThrow(refused(text))
    body.addNode({ opType: 'Body', outputs: ['c'], attributes: graphOf('b') })
    body.outputs = ['c']
    expect(() => body.removeNode(first!)).toThrow(
      refused('"b" is used by the node "" (Body); replace its uses first.'),
    )
  })
})
