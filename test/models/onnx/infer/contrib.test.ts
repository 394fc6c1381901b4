/** Types and shapes of operators of onnxruntime. The expected ones are those of its results, version 1.32 on a CPU. */
import { describe, expect, it } from 'vitest'
import { inferTypes, type NewAttribute, OnnxModel } from '../../../../lib/onnx.js'
import { typeOf } from '../../onnx_optimize/model_text.js'

interface Case {
  readonly inputs: readonly string[]
  readonly attributes?: Readonly<Record<string, NewAttribute>>
  /** Types by output; an empty one for an omitted output. */
  readonly outputs: readonly string[]
}

const int = (value: number): NewAttribute => ({ type: 'INT', value })
const ints = (...value: number[]): NewAttribute => ({ type: 'INTS', value })
const SCALE = ['float32', 'uint8']
const X = 'float32 N 3 8'

const CASES: Readonly<Record<string, Case | readonly Case[]>> = {
  BiasGelu: { inputs: [X, 'float32 8'], outputs: [X] },
  DequantizeLinear: { inputs: ['uint8 N 3', ...SCALE], outputs: ['float32 N 3'] },
  DynamicQuantizeLSTM: [
    {
      inputs: ['float32 T N 4', 'uint8 1 4 24', 'uint8 1 6 24'],
      attributes: { hidden_size: int(6) },
      outputs: ['float32 T 1 N 6', 'float32 1 N 6', 'float32 1 N 6'],
    },
    {
      inputs: ['float32 5 2 4', 'uint8 2 4 24', 'uint8 2 6 24'],
      attributes: { hidden_size: int(6), direction: { type: 'STRING', value: 'bidirectional' } },
      outputs: ['float32 5 2 2 6'],
    },
  ],
  DynamicQuantizeMatMul: { inputs: [X, 'uint8 8 5', 'float32', 'uint8'], outputs: ['float32 N 3 5'] },
  FastGelu: { inputs: [X], outputs: [X] },
  FusedConv: {
    inputs: ['float32 N 3 9 9', 'float32 4 3 3 3'],
    attributes: { strides: ints(2, 2), kernel_shape: ints(3, 3) },
    outputs: ['float32 N 4 4 4'],
  },
  FusedGemm: {
    inputs: ['float32 N 4', 'float32 5 4'],
    attributes: { transB: int(1) },
    outputs: ['float32 N 5'],
  },
  FusedMatMul: [
    {
      inputs: ['float32 N 4 3', 'float32 N 4 5'],
      attributes: { transA: int(1) },
      outputs: ['float32 N 3 5'],
    },
    {
      inputs: ['float32 N 3 4', 'float32 N 4 5'],
      attributes: { transBatchA: int(1) },
      outputs: ['float32 unknown'],
    },
  ],
  Gelu: { inputs: [X], outputs: [X] },
  MatMulBnb4: {
    inputs: ['float32 N 3 32', 'uint8 80', 'float32 5'],
    attributes: { K: int(32), N: int(5) },
    outputs: ['float32 N 3 5'],
  },
  MatMulIntegerToFloat: {
    inputs: ['uint8 N 3 8', 'uint8 8 5', 'float32', 'float32'],
    outputs: ['float32 N 3 5'],
  },
  MatMulNBits: {
    inputs: ['float32 N 3 32', 'uint8 5 1 16', 'float32 5'],
    attributes: { K: int(32), N: int(5) },
    outputs: ['float32 N 3 5'],
  },
  QLinearAdd: {
    inputs: ['uint8 N 1 4', ...SCALE, 'uint8 3 4', ...SCALE, ...SCALE],
    outputs: ['uint8 N 3 4'],
  },
  QLinearAveragePool: [
    {
      inputs: ['uint8 N 2 8 8', ...SCALE, ...SCALE],
      attributes: { kernel_shape: ints(3, 3), strides: ints(2, 2) },
      outputs: ['uint8 N 2 3 3'],
    },
    {
      inputs: ['uint8 N 8 8 2', ...SCALE, ...SCALE],
      attributes: { kernel_shape: ints(3, 3), channels_last: int(1) },
      outputs: ['uint8 unknown'],
    },
  ],
  QLinearConcat: {
    inputs: [...SCALE, 'uint8 N 3', ...SCALE, 'uint8 N 4', ...SCALE],
    attributes: { axis: int(1) },
    outputs: ['uint8 N 7'],
  },
  QLinearGlobalAveragePool: [
    {
      inputs: ['uint8 N 2 8 9', ...SCALE, ...SCALE],
      attributes: { channels_last: int(0) },
      outputs: ['uint8 N 2 1 1'],
    },
    {
      inputs: ['uint8 N 8 9 2', ...SCALE, ...SCALE],
      attributes: { channels_last: int(1) },
      outputs: ['uint8 N 1 1 2'],
    },
  ],
  QLinearLeakyRelu: { inputs: ['uint8 N 3', ...SCALE, ...SCALE], outputs: ['uint8 N 3'] },
  QLinearMul: {
    inputs: ['uint8 N 1 4', ...SCALE, 'uint8 3 4', ...SCALE, ...SCALE],
    outputs: ['uint8 N 3 4'],
  },
  QLinearSigmoid: { inputs: ['uint8 N 3', ...SCALE, ...SCALE], outputs: ['uint8 N 3'] },
  QLinearSoftmax: { inputs: ['uint8 N 3', ...SCALE, ...SCALE], outputs: ['uint8 N 3'] },
  QuantizeLinear: { inputs: ['float32 N 3', 'float32', 'uint8'], outputs: ['uint8 N 3'] },
  QuickGelu: { inputs: [X], outputs: [X] },
  RotaryEmbedding: {
    inputs: ['float32 N 4 3 8', 'int64 N 3', 'float32 10 4', 'float32 10 4'],
    outputs: ['float32 N 4 3 8'],
  },
  SkipLayerNormalization: { inputs: [X, X, 'float32 8', 'float32 8'], outputs: [X, '', '', X] },
  SkipSimplifiedLayerNormalization: { inputs: [X, X, 'float32 8'], outputs: [X, '', '', X] },
}

function inferred(opType: string, { inputs, attributes = {}, outputs }: Case): (string | undefined)[] {
  const model = OnnxModel.create({ opset: 17 })
  model.setOpsetImport('com.microsoft', 1)
  for (const [at, text] of inputs.entries()) model.graph.addInput(`i${at}`, typeOf(text))
  const names = outputs.map((text, at) => (text === '' ? '' : `o${at}`))
  const node = { opType, domain: 'com.microsoft', inputs: inputs.map((_, at) => `i${at}`), outputs: names }
  model.graph.addNode({ ...node, attributes })
  const types = inferTypes(model)
  return names.map((name) => {
    const type = name === '' ? undefined : types.get(name)
    if (type?.kind !== 'tensor') return ''
    return [type.dtype, ...(type.shape ?? ['unknown'])].join(' ')
  })
}

describe('operators of com.microsoft', () => {
  it.each(Object.entries(CASES))('%s', (opType, cases) => {
    for (const each of [cases].flat() as Case[]) expect(inferred(opType, each)).toEqual(each.outputs)
  })
})
