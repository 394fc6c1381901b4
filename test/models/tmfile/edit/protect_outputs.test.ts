/** The runtime reuses the memory of an output that a node reads: cuts and new outputs leave none. */

import { describe, expect, it } from 'vitest'
import type { TmfileModel } from '../../../../lib/tmfile.js'
import { cut, insertNode, removeNode, setOutputs } from '../../../../lib/tmfile.js'
import { node, smallModel, variable } from '../../../formats/tmfile/tmfile_bytes.js'

const names = (list: readonly { readonly name: string | null }[]) => list.map(({ name }) => name)

/** data → conv → relu → sum, with conv as the other operand of the sum. */
function branched(): TmfileModel {
  const model = smallModel()
  const conv = model.graph.tensors[3]!
  const relu = variable('relu', [1, 2, 4, 4])
  insertNode(model, node('relu', 'ReLu', [conv], [relu]))
  insertNode(model, node('sum', 'Eltwise', [conv, relu], [variable('sum', [1, 2, 4, 4])], { type: 2 }))
  model.graph.outputs = [model.graph.nodes.at(-1)!]
  return model
}

describe('setOutputs', () => {
  it('removes nodes behind the outputs that nothing needs', () => {
    const model = branched()
    setOutputs(model, ['relu'])
    expect(names(model.graph.nodes)).toEqual(['data', 'conv/w', 'conv/b', 'conv', 'relu'])
    expect(names(model.graph.tensors)).not.toContain('sum')
  })

  it('copies an output that another output needs, under its name', () => {
    const model = branched()
    const conv = model.graph.tensors[3]!
    setOutputs(model, ['conv', 'sum'])
    const [copy, sum] = model.graph.outputs
    expect(copy).toMatchObject({
      name: 'conv__copy',
      operator: 'Reshape',
      params: { re_shape: [-2], is_mxnet: 1 },
    })
    expect(names(copy!.outputs)).toEqual(['conv'])
    expect(copy!.inputs).toEqual([conv])
    expect(conv.name).toBe('conv__inner')
    expect(model.graph.nodes.at(-1)).toBe(copy)
    expect(sum!.inputs[0]).toBe(conv)
  })

  it('copies an input that is an output too', () => {
    const model = branched()
    setOutputs(model, ['data', 'sum'])
    expect(model.graph.outputs[0]!.outputs[0]).toMatchObject({ name: 'data', role: 'variable' })
    expect(model.graph.inputs[0]!.outputs[0]).toMatchObject({ name: 'data__inner', role: 'input' })
  })

  it('copies every output of a node of which one is read', () => {
    const model = smallModel()
    const parts = [variable('left', [1, 1, 4, 4]), variable('right', [1, 1, 4, 4])]
    insertNode(model, node('parts', 'Split', [model.graph.tensors[3]!], parts, { is_onnx: 1, axis: 1 }))
    insertNode(model, node('relu', 'ReLu', [parts[0]!], [variable('relu', [1, 1, 4, 4])]))
    setOutputs(model, ['left', 'relu'])
    expect(model.graph.outputs.map(({ outputs }) => names(outputs))).toEqual([['left'], ['right'], ['relu']])
  })
})

describe('cut', () => {
  it('without inputs keeps what leads to the outputs', () => {
    const model = branched()
    cut(model, [], ['relu'])
    expect(names(model.graph.nodes)).toEqual(['data', 'conv/w', 'conv/b', 'conv', 'relu'])
    expect(names(model.graph.inputs)).toEqual(['data'])
  })

  it('copies an output that another one needs', () => {
    const model = branched()
    cut(model, ['data'], ['conv', 'sum'])
    expect(names(model.graph.outputs)).toEqual(['conv__copy', 'sum'])
  })
})

it('removing the last node copies the output that takes its place, where a node reads it', () => {
  const model = branched()
  const conv = model.graph.nodes.find(({ name }) => name === 'conv')!
  model.graph.outputs = [model.graph.nodes.find(({ name }) => name === 'relu')!, model.graph.nodes.at(-1)!]
  removeNode(model, 'relu')
  expect(conv.outputs[0]!.name).toBe('conv__inner')
  expect(model.graph.outputs.map(({ outputs }) => names(outputs))).toEqual([['conv'], ['sum']])
})
