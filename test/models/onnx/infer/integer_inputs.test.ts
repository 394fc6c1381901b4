/** Which numbers integer inputs may have, and which values depend on random numbers. */
import { expect, it } from 'vitest'
import { tensor } from '../../../../lib/index.js'
import { integerInputs } from '../../../../lib/models/onnx/infer/integer_inputs.js'
import { randomValues } from '../../../../lib/models/onnx/infer/random_values.js'
import { addFunction, Graph, type NewNode, OnnxModel, type ValueType } from '../../../../lib/onnx.js'

const int64 = (shape: readonly number[]): ValueType => ({ kind: 'tensor', dtype: 'int64', shape })

/** A model with indices `ids` and a table of 10 × 4. */
function modelOf(nodes: readonly NewNode[], shape: readonly number[] = [2, 3]): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  model.setOpsetImport('com.microsoft', 1)
  const { graph } = model
  graph.addInput('ids', int64(shape))
  graph.setInitializer('table', tensor(new Float32Array(40), { shape: [10, 4] }))
  for (const [name, values] of [
    ['one', [1]],
    ['two', [2]],
    ['flat', [-1]],
    ['axes', [0]],
  ] as const)
    graph.setInitializer(name, tensor([...values], { dtype: 'int64' }))
  for (const node of nodes) graph.addNode(node)
  return model
}

const gather = (input: string, axis = 0): NewNode => ({
  opType: 'Gather',
  inputs: ['table', input],
  outputs: [`${input}_rows_${axis}`],
  attributes: { axis: { type: 'INT', value: axis } },
})

it('indices stay inside the dimension, behind nodes that move or shift them', () => {
  const found = (...nodes: NewNode[]) => integerInputs(modelOf(nodes)).get('ids')
  expect(found(gather('ids'))).toEqual({ below: 10, isFlag: false })
  expect(found(gather('ids', 1))).toEqual({ below: 4, isFlag: false })
  expect(found(gather('ids', -1))).toMatchObject({ below: 4 })
  expect(found(gather('ids'), gather('ids', 1))).toMatchObject({ below: 4 })
  expect(
    found(
      { opType: 'Reshape', inputs: ['ids', 'flat'], outputs: ['a'] },
      { opType: 'Add', inputs: ['two', 'a'], outputs: ['b'] },
      { opType: 'Cast', inputs: ['b'], outputs: ['c'], attributes: { to: { type: 'INT', value: 6 } } },
      { opType: 'Sub', inputs: ['c', 'one'], outputs: ['d'] },
      gather('d'),
    ),
  ).toMatchObject({ below: 9 })
  // The table is moved by the indices, but its numbers are none of the input.
  expect(
    found(gather('ids'), { opType: 'Gather', inputs: ['table', 'ids_rows_0'], outputs: ['y'] }),
  ).toMatchObject({
    below: 10,
  })
  expect(found({ opType: 'Mul', inputs: ['ids', 'two'], outputs: ['a'] }, gather('a'))).toEqual({
    isFlag: false,
  })
  expect(found({ opType: 'GatherElements', inputs: ['table', 'ids'], outputs: ['y'] })).toMatchObject({
    below: 10,
  })
  expect(
    integerInputs(modelOf([{ opType: 'GatherND', inputs: ['table', 'ids'], outputs: ['y'] }], [3, 2])).get(
      'ids',
    ),
  ).toMatchObject({ below: 4 })
  expect(
    integerInputs(modelOf([{ opType: 'GatherND', inputs: ['table', 'ids'], outputs: ['y'] }], [3, 1])).get(
      'ids',
    ),
  ).toMatchObject({ below: 10 })
})

it('indices are followed into branches and functions', () => {
  const branch = Graph.create('then')
  branch.addNode({ opType: 'Gather', inputs: ['table', 'ids'], outputs: ['y'] })
  branch.addOutput('y', { kind: 'none' })
  const inside = modelOf([])
  inside.graph.addInput('condition', { kind: 'tensor', dtype: 'bool', shape: [] })
  inside.graph.addNode({
    opType: 'If',
    inputs: ['condition'],
    outputs: ['r'],
    attributes: {
      then_branch: { type: 'GRAPH', value: branch },
      else_branch: { type: 'GRAPH', value: branch },
    },
  })
  expect(integerInputs(inside).get('ids')).toMatchObject({ below: 10 })

  const called = modelOf([
    { opType: 'Rows', domain: 'own', inputs: ['ids'], outputs: ['moved'] },
    gather('moved'),
  ])
  addFunction(called, {
    domain: 'own',
    name: 'Rows',
    inputs: ['x'],
    outputs: ['y'],
    opsetImports: { '': 17 },
    nodes: [{ opType: 'Identity', inputs: ['x'], outputs: ['y'] }],
  })
  expect(integerInputs(called).get('ids')).toMatchObject({ below: 10 })
})

it('masks are flags', () => {
  const flag = (...nodes: NewNode[]): boolean | undefined => integerInputs(modelOf(nodes)).get('ids')?.isFlag
  const cast = (to: number): NewNode => ({
    opType: 'Cast',
    inputs: ['ids'],
    outputs: ['mask'],
    attributes: { to: { type: 'INT', value: to } },
  })
  expect(flag(cast(9))).toBe(true)
  expect(flag(cast(1))).toBe(false)
  const model = modelOf([cast(1), { opType: 'Sub', inputs: ['whole', 'mask'], outputs: ['y'] }])
  model.graph.setInitializer('whole', tensor([1], { dtype: 'float32' }))
  expect(integerInputs(model).get('ids')).toMatchObject({ isFlag: true })
  expect(
    flag({ opType: 'Attention', domain: 'com.microsoft', inputs: ['', '', '', 'ids'], outputs: ['y'] }),
  ).toBe(true)
})

it('values behind random numbers are known with their operator', () => {
  const found = (...nodes: NewNode[]): Record<string, string> =>
    Object.fromEntries(randomValues(modelOf(nodes)))
  const noise: NewNode = { opType: 'RandomNormalLike', inputs: ['table'], outputs: ['noise'] }
  expect(
    found(
      { opType: 'Add', inputs: ['noise', 'table'], outputs: ['sum'] },
      noise,
      { opType: 'Relu', inputs: ['table'], outputs: ['clear'] },
      { opType: 'Dropout', inputs: ['table'], outputs: ['dropped'] },
      { opType: 'Dropout', inputs: ['table', '', 'training'], outputs: ['lost'] },
    ),
  ).toEqual({ noise: 'RandomNormalLike', sum: 'RandomNormalLike', lost: 'Dropout' })
  const called = modelOf([
    { opType: 'Outer', domain: 'own', inputs: ['table'], outputs: ['y'] },
    { opType: 'Relu', inputs: ['y'], outputs: ['z'] },
  ])
  for (const [name, node] of [
    ['Outer', { opType: 'Inner', domain: 'own', inputs: ['x'], outputs: ['y'] }],
    ['Inner', { opType: 'Bernoulli', inputs: ['x'], outputs: ['y'] }],
  ] as const)
    addFunction(called, {
      domain: 'own',
      name,
      inputs: ['x'],
      outputs: ['y'],
      opsetImports: { '': 17, own: 1 },
      nodes: [node],
    })
  expect(Object.fromEntries(randomValues(called))).toEqual({ y: 'Bernoulli', z: 'Bernoulli' })
})
