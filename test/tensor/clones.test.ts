/** Tensors, models and open files refuse to be cloned; tensors print a summary. */

import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  type AnyTensor,
  open,
  reorder,
  serialize,
  sparseFromDense,
  stringTensor,
  tensor,
} from '../../lib/index.js'
import { OnnxModel } from '../../lib/models/onnx/index.js'
import { TmfileModel } from '../../lib/models/tmfile/index.js'
import { addFunction } from '../../lib/onnx.js'
import { AbsentTensor } from '../../lib/tensor/absent.js'

const dense = tensor(new Float32Array(6), { shape: [2, 3], name: 'd' })

const TENSORS: [string, () => AnyTensor | Promise<AnyTensor>, string, object][] = [
  [
    'in memory',
    () => dense,
    "DenseTensor 'd' float32 [2, 3] row_major",
    {
      kind: 'dense',
      name: 'd',
      dtype: 'float32',
      shape: [2, 3],
      layout: 'row_major',
      byteLength: 24,
      hasData: true,
    },
  ],
  [
    'lazy',
    () => reorder(dense, 'column_major'),
    "DenseTensor 'd' float32 [2, 3] column_major",
    {
      kind: 'dense',
      name: 'd',
      dtype: 'float32',
      shape: [2, 3],
      layout: 'column_major',
      byteLength: 24,
      hasData: true,
    },
  ],
  [
    'without data',
    () => new AbsentTensor({ name: 'a', dtype: 'int8', shape: [-1, 2], reason: 'it is an activation' }),
    "DenseTensor 'a' int8 [-1, 2] row_major",
    {
      kind: 'dense',
      name: 'a',
      dtype: 'int8',
      shape: [-1, 2],
      layout: 'row_major',
      byteLength: 0,
      hasData: false,
    },
  ],
  [
    'sparse',
    () => sparseFromDense(tensor([0, 3], { dtype: 'int8', name: 's' })),
    "SparseTensor 's' int8 [2] 1 entry",
    { kind: 'sparse', name: 's', dtype: 'int8', shape: [2], entryCount: 1, hasData: true },
  ],
  [
    'of strings',
    () => stringTensor(['a', 'b'], { name: 't' }),
    "StringTensor 't' string [2]",
    { kind: 'string', name: 't', dtype: 'string', shape: [2], hasData: true },
  ],
  [
    'of strings of a file',
    async () =>
      (await open(await serialize(stringTensor(['a'], { name: 't' }), { format: 'onnx' }))).tensors.at(0)!,
    "StringTensor 't' string [1]",
    { kind: 'string', name: 't', dtype: 'string', shape: [1], hasData: true },
  ],
  [
    'of numpy strings',
    async () => (await open(await serialize(stringTensor(['a']), { format: 'npy' }))).tensors.at(0)!,
    "StringTensor 'arr_0' string [1]",
    { kind: 'string', name: 'arr_0', dtype: 'string', shape: [1], hasData: true },
  ],
]

describe('a tensor', () => {
  it.each(TENSORS)('%s', async (_, make, text, json) => {
    const made = await make()
    const error = expect.objectContaining({
      name: 'DataCloneError',
      message: 'Symbol(a tensor; send its bytes() instead) could not be cloned.',
    })
    expect(() => structuredClone(made)).toThrow(error)
    expect(() => structuredClone({ tensors: [made] })).toThrow(error)
    const { port1, port2 } = new MessageChannel()
    expect(() => port1.postMessage(made)).toThrow(error)
    port1.close()
    port2.close()
    expect(inspect(made)).toBe(text)
    expect(JSON.parse(JSON.stringify(made))).toEqual(json)
  })
})

describe('a model', () => {
  it.each([
    ['ONNX', 'an ONNX model', () => OnnxModel.create()],
    ['tmfile', 'a tmfile model', () => new TmfileModel()],
  ])('%s', (_, what, make) => {
    const model = make()
    const error = expect.objectContaining({
      name: 'DataCloneError',
      message: `Symbol(${what}; send the bytes of serialize() instead) could not be cloned.`,
    })
    expect(() => structuredClone(model)).toThrow(error)
    expect(() => structuredClone({ models: [model] })).toThrow(error)
    const { port1, port2 } = new MessageChannel()
    expect(() => port1.postMessage(model)).toThrow(error)
    port1.close()
    port2.close()
  })
})

describe('a part of an ONNX model', () => {
  const model = OnnxModel.create()
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1] })
  const attributes = { alpha: { type: 'FLOAT', value: 1 } } as const
  const node = model.graph.addNode({ opType: 'Elu', inputs: ['x'], outputs: ['y'], attributes })
  const definition = { domain: 'own', name: 'F', nodes: [{ opType: 'Relu', inputs: ['a'], outputs: ['b'] }] }
  const added = addFunction(model, { ...definition, inputs: ['a'], outputs: ['b'] })

  it.each([
    ['graph', model.graph],
    ['node', node],
    ['attribute', node.attribute('alpha')],
    ['value', model.graph.value('x')],
    ['function', added],
    ['node of a function', added.nodes[0]],
  ])('%s', (_, part) => {
    const error = expect.objectContaining({
      name: 'DataCloneError',
      message:
        'Symbol(a part of an ONNX model; send the bytes of serialize() of the model instead) could not be cloned.',
    })
    expect(() => structuredClone(part)).toThrow(error)
    expect(() => structuredClone({ parts: [part] })).toThrow(error)
  })
})

describe('an open file', () => {
  it('cannot be cloned', async () => {
    using file = await open(await serialize(dense, { format: 'npy' }))
    expect(() => structuredClone(file)).toThrow(expect.objectContaining({ name: 'DataCloneError' }))
  })
})
