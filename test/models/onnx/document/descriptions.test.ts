/** Texts and properties of models, graphs and nodes; references to attributes of functions; edits that are refused. */
import { describe, expect, it } from 'vitest'
import { open, serialize, tensor } from '../../../../lib/index.js'
import { addFunction, Graph, OnnxModel } from '../../../../lib/onnx.js'
import { field, graphProto, int, join, nodeProto } from '../../../formats/onnx/onnx_bytes.js'

async function reopened(model: OnnxModel): Promise<OnnxModel> {
  return (await open(await serialize(model))).onnx!
}

function chain(): OnnxModel {
  const model = OnnxModel.create()
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [4] })
  model.graph.addNode({ opType: 'Split', inputs: ['x'], outputs: ['a', 'b'], name: 'split' })
  model.graph.addNode({ opType: 'Relu', inputs: ['b'], outputs: ['y'], name: 'relu' })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [2] })
  return model
}

describe('texts and properties', () => {
  it('are set and removed on models, graphs and nodes', async () => {
    const model = chain()
    const parts = [model, model.graph, model.graph.nodes[0]!]
    for (const part of parts) {
      part.docString = 'words'
      part.setMetadata('stage', '1')
      part.setMetadata('kept', '2')
    }
    model.producerVersion = '3'
    model.domain = 'org.example'
    model.modelVersion = 7
    const saved = await reopened(model)
    expect([saved.producerVersion, saved.domain, saved.modelVersion]).toEqual(['3', 'org.example', 7])
    for (const part of [saved, saved.graph, saved.graph.nodes[0]!]) {
      expect(part.docString).toBe('words')
      expect(part.removeMetadata('stage')).toBe(true)
      expect(part.removeMetadata('stage')).toBe(false)
      part.docString = ''
      expect([...part.metadata]).toEqual([['kept', '2']])
    }
    const again = await reopened(saved)
    expect([again, again.graph, again.graph.nodes[0]!].map(({ docString }) => docString)).toEqual([
      '',
      '',
      '',
    ])
    expect(again.graph.nodes[0]!.message.has('doc_string')).toBe(false)
  })

  it('refuse anything but text', () => {
    const { graph } = chain()
    expect(() => Object.assign(graph, { docString: 1 })).toThrow('takes a string')
    expect(() => graph.removeMetadata(1 as never)).toThrow('takes a string')
  })
})

describe('the domain ai.onnx', () => {
  it('is the empty one', async () => {
    const node = join(nodeProto({ outputs: ['y'] }), field(7, 'ai.onnx'))
    const imports = field(8, join(field(1, 'ai.onnx'), int(2, 17)))
    const bytes = join(int(1, 8), field(7, graphProto({ nodes: [node] })), imports)
    const model = (await open(bytes)).onnx!
    expect(model.graph.nodes[0]!.domain).toBe('')
    expect([...model.opsetImports]).toEqual([['', 17]])
    model.setOpsetImport('', 18)
    expect([...(await reopened(model)).opsetImports]).toEqual([['', 18]])
  })
})

describe('a reference to an attribute of a function', () => {
  const reference = { type: 'FLOAT', refName: 'slope' } as const
  const leaky = { opType: 'LeakyRelu', inputs: ['x'], outputs: ['y'], attributes: { alpha: reference } }

  it('is written by addFunction and setAttribute, also in subgraphs', async () => {
    const model = chain()
    const body = Graph.create('body')
    body.addNode({ ...leaky, inputs: ['x'] })
    const inner = { opType: 'If', inputs: ['x'], outputs: ['z'] }
    addFunction(model, {
      domain: 'own',
      name: 'F',
      inputs: ['x'],
      outputs: ['y'],
      attributeNames: ['slope'],
      nodes: [leaky, { ...inner, attributes: { then_branch: { type: 'GRAPH', value: body } } }],
    })
    const [first, second] = (await reopened(model)).functions[0]!.nodes
    const ofBody = second!.subgraphs[0]!.nodes[0]!
    for (const node of [first!, ofBody]) {
      const alpha = node.attribute('alpha')!
      expect([alpha.type, alpha.refName, alpha.value]).toEqual(['FLOAT', 'slope', 0])
    }
    first!.setAttribute('alpha', { type: 'FLOAT', value: 0.5 })
    expect([first!.attribute('alpha')!.refName, first!.attribute('alpha')!.value]).toEqual(['', 0.5])
  })

  it('is refused in a graph of a model, for an unknown attribute, and beside a value', () => {
    const model = chain()
    expect(() => model.graph.addNode(leaky)).toThrow('only nodes of a function')
    const wrong = { domain: 'own', name: 'F', inputs: ['x'], outputs: ['y'], nodes: [leaky] }
    expect(() => addFunction(model, wrong)).toThrow('"slope", which is no attribute of the function')
    const both = { type: 'FLOAT', refName: 'slope', value: 1 } as never
    expect(() => Graph.create().addNode({ opType: 'Relu', attributes: { alpha: both } })).toThrow(
      'one of them',
    )
  })
})

describe('an edit that would break the graph', () => {
  it('does not drop an output that is used', () => {
    const { graph } = chain()
    const [split] = graph.nodes
    expect(() => Object.assign(split!, { outputs: ['a'] })).toThrow(
      'The output "b" is used by the node "relu" (Relu); replace its uses first.',
    )
    expect(split!.outputs).toEqual(['a', 'b'])
    expect(() => Object.assign(graph.nodes[1]!, { outputs: [] })).toThrow('the graph as its output')
    graph.replaceAllUses('b', 'a')
    split!.outputs = ['a']
    expect(graph.nodes[1]!.inputs).toEqual(['a'])
  })

  it('does not set an initializer without a name', () => {
    const { graph } = chain()
    expect(() => graph.setInitializer('', tensor([1, 2], { dtype: 'float32' }))).toThrow('The name is empty')
    expect(graph.initializerNames).toEqual([])
  })
})
