/** The edits of two graphs, by node. */
import { expect, it } from 'vitest'
import { diff, open, serialize } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { groupEdits } from '../../lib/view/page/difference/node_edits.js'

async function modelWith(build: (graph: OnnxModel['graph']) => void): Promise<Uint8Array> {
  const model = OnnxModel.create({ opset: 17, graphName: 'g' })
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 4] })
  build(graph)
  return serialize(model)
}

it('gathers what changed of a node, and leaves the ends to the others', async () => {
  const a = await modelWith((graph) => {
    graph.addNode({ opType: 'MatMul', name: 'a "quoted" name', inputs: ['x', 'w'], outputs: ['y'] })
    graph.addNode({ opType: 'Relu', name: 'gone', inputs: ['x'], outputs: ['z'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32', shape: [1, 4] })
  })
  const b = await modelWith((graph) => {
    graph.addNode({
      opType: 'Gemm',
      name: 'a "quoted" name',
      inputs: ['x', 'w2'],
      outputs: ['y'],
      attributes: { transB: { type: 'INT', value: 1n } },
    })
    graph.addNode({ opType: 'Tanh', name: 'new', inputs: ['y'], outputs: ['t'] })
    graph.addOutput('t', { kind: 'tensor', dtype: 'float32', shape: [1, 4] })
  })
  const files = await Promise.all([open(a), open(b)])
  const { graph } = await diff(files[0]!, files[1]!)
  const { nodes, others } = groupEdits(graph!)
  expect(nodes).toEqual([
    { kind: 'removed', graph: '', name: 'gone', operator: 'Relu', changes: ['(x) -> (z)'] },
    { kind: 'added', graph: '', name: 'new', operator: 'Tanh', changes: ['(y) -> (t)'] },
    {
      kind: 'changed',
      graph: '',
      name: 'a "quoted" name',
      operator: 'MatMul → Gemm',
      changes: ['input 1 w → w2', 'transB 1'],
    },
  ])
  expect(others.map((text) => text.split(':')[0])).toEqual(['removed output y', 'added output t'])
  for (const file of files) file.close()
})
