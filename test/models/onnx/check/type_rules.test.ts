/** A strict check compares declared types with those that follow. */
import { describe, expect, it } from 'vitest'
import { check, open, serialize, tensor } from '../../../../lib/index.js'
import { Graph, OnnxModel, type ValueType } from '../../../../lib/onnx.js'
import { field, modelProto, sparseProto, tensorProto } from '../../../formats/onnx/onnx_bytes.js'

const type = (dtype: 'float32' | 'int64', ...shape: readonly (number | string)[]): ValueType => ({
  kind: 'tensor',
  dtype,
  shape,
})

function model(declared: ValueType): OnnxModel {
  const made = OnnxModel.create({ opset: 21 })
  made.graph.addInput('x', type('float32', 'N', 4))
  made.graph.addNode({ opType: 'Relu', inputs: ['x'], outputs: ['y'] })
  made.graph.addNode({ opType: 'Neg', inputs: ['y'], outputs: ['z'] })
  made.graph.setType('y', declared)
  made.graph.addOutput('z', type('float32', 'N', 4))
  return made
}

describe('types that contradict their node', () => {
  it('are errors for another element type and another shape', async () => {
    const bytes = await serialize(model(type('int64', 'N', 4)))
    expect(await check(bytes, { level: 'strict' })).toMatchObject([
      {
        severity: 'error',
        code: 'ERR_GRAPH',
        path: 'graph.node[0]',
        message: '"y" is declared as int64 [N, 4]; float32 [N, 4] follows from its node.',
      },
      { severity: 'error', path: 'graph.node[1]' },
    ])
    expect(await check(bytes)).toEqual([])
    const [found] = await check(await serialize(model(type('float32', 'N', 5))), { level: 'strict' })
    const message = '"y" is declared as float32 [N, 5]; float32 [N, 4] follows from its node.'
    expect(found).toMatchObject({ severity: 'error', message })
  })

  it.each([
    ['the same', type('float32', 'N', 4)],
    ['less known', type('float32', 'N', 'M')],
    ['without a shape', { kind: 'tensor', dtype: 'float32' } as ValueType],
    ['more known', type('float32', 2, 4)],
  ])('are none of %s', async (_, declared) => {
    expect(await check(await serialize(model(declared)), { level: 'strict' })).toEqual([])
  })

  it('are found at initializers, sparse ones as well', async () => {
    const made = model(type('float32', 'N', 4))
    made.graph.setInitializer('w', tensor([1, 2], { dtype: 'int64' }))
    made.graph.setType('w', type('float32', 2))
    const [found, ...others] = await check(await serialize(made), { level: 'strict' })
    const message = '"w" is declared as float32 [2]; int64 [2] is the type of its initializer.'
    expect(found).toMatchObject({ severity: 'error', code: 'ERR_GRAPH', path: 'graph', message })
    expect(others).toEqual([])
    made.graph.setType('w', type('int64', 2))
    expect(await check(await serialize(made), { level: 'strict' })).toEqual([])

    const values = tensorProto({ dims: [1], type: 7, name: 's', values: field(7, [3]) })
    const indices = tensorProto({ dims: [1], type: 7, values: field(7, [2]) })
    using file = await open(modelProto({ sparse: [sparseProto(values, indices, [4])] }))
    const sparse = file.onnx!
    sparse.graph.setType('s', type('int64', 4))
    expect(await check(await serialize(sparse), { level: 'strict' })).toEqual([])
    sparse.graph.setType('s', type('float32', 4))
    expect(await check(await serialize(sparse), { level: 'strict' })).toMatchObject([
      { severity: 'error', path: 'graph' },
    ])
  })

  it('are found in subgraphs', async () => {
    const inner = Graph.create('i')
    inner.addNode({ opType: 'Neg', inputs: ['x'], outputs: ['p'] })
    inner.addOutput('p', type('int64', 'N', 4))
    const made = OnnxModel.create({ opset: 21 })
    made.graph.addInput('x', type('float32', 'N', 4))
    made.graph.setInitializer('c', tensor([true], { dtype: 'bool', shape: [] }))
    const other = Graph.create('other')
    other.addNode({
      opType: 'Cast',
      inputs: ['x'],
      outputs: ['q'],
      attributes: { to: { type: 'INT', value: 7 } },
    })
    other.addOutput('q', type('int64', 'N', 4))
    const attributes = {
      else_branch: { type: 'GRAPH', value: other },
      then_branch: { type: 'GRAPH', value: inner },
    } as const
    made.graph.addNode({ opType: 'If', inputs: ['c'], outputs: ['z'], attributes })
    made.graph.addOutput('z', { kind: 'tensor', dtype: 'int64', shape: ['N', 4] })
    const found = await check(await serialize(made), { level: 'strict' })
    expect(found[0]).toMatchObject({ severity: 'error', path: 'graph.node[0].attribute[1].g.node[0]' })
  })
})
