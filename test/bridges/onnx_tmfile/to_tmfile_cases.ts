/** One small model, or more, for each operator of the table, with the operators of the tmfile that it becomes. */
import { tensor } from '../../../lib/index.js'
import { type Attributes, floats, type Given, ints, OnnxNet, scalar } from './onnx_net.js'

export interface ConversionCase {
  readonly operator: string
  readonly net: OnnxNet
  readonly outputs: readonly string[]
  /** Operators of the tmfile in order, without constants and inputs. */
  readonly expected: string
}

interface More {
  readonly opset?: number
  readonly outputs?: number
}

const X = [1, 4, 6, 5]

function one(
  operator: string,
  given: readonly Given[],
  expected: string,
  attributes: Attributes = {},
  { opset = 13, outputs = 1 }: More = {},
): ConversionCase {
  const net = new OnnxNet(opset)
  const name = net.op(operator, given, attributes, outputs)
  const names = Array.from({ length: outputs }, (_, at) => (at === 0 ? name : `${name}_${at}`))
  return { operator, net, outputs: names, expected }
}

function built(
  operator: string,
  expected: string,
  build: (net: OnnxNet) => string,
  opset = 13,
): ConversionCase {
  const net = new OnnxNet(opset)
  const name = build(net)
  return { operator, net, outputs: [name], expected }
}

const codes = (type: 'uint8' | 'int8', ...shape: number[]) =>
  tensor(
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, at) => (at * 5) % 90),
    { dtype: type, shape },
  )
const zero = (type: 'uint8' | 'int8' | 'int32', value = 0) => tensor([value], { dtype: type, shape: [] })

const LSTM = [floats(1, 20, 3), floats(1, 20, 5), floats(1, 40)]
const GRU = [floats(1, 15, 3), floats(1, 15, 5), floats(1, 30)]
const PLANE = { kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1] }
const UPSAMPLED = { mode: 'nearest', coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' }

export const CASES: readonly ConversionCase[] = [
  ...['Abs', 'Neg', 'Floor', 'Ceil', 'Sqrt', 'Exp', 'Log', 'Sin', 'Cos', 'Tan', 'Asin', 'Acos', 'Atan'].map(
    (name) => one(name, [X], 'Unary'),
  ),
  one('Sigmoid', [X], 'Sigmoid'),
  one('Tanh', [X], 'Tanh'),
  one('Reciprocal', [X], 'Reciprocal'),
  one('Gelu', [X], 'Gelu', {}, { opset: 20 }),
  one('Round', [X], 'Round'),
  one('Softplus', [[2, 3]], 'Reshape Softplus Reshape'),
  one('Mish', [X], 'Mish', {}, { opset: 18 }),
  one('Relu', [X], 'ReLu'),
  built('Relu', 'Convolution', (net) => net.op('Relu', [net.op('Conv', [X, floats(2, 4, 3, 3)])])),
  one('LeakyRelu', [X], 'ReLu', { alpha: { float: 0.1 } }),
  one('PRelu', [X, floats(4, 1, 1)], 'PReLU'),
  one('PRelu', [X, floats(5)], 'ReLu Unary ReLu Reshape Eltwise Reshape Eltwise'),
  one('PRelu', [[2, 4, 5], floats(4, 1)], 'Reshape PReLU Reshape'),
  one('Elu', [X], 'Elu'),
  one('Selu', [X], 'Selu'),
  one('HardSigmoid', [X], 'Hardsigmoid'),
  one('HardSwish', [X], 'HardSwish', {}, { opset: 14 }),
  one('Clip', [X, scalar(0), scalar(2)], 'Clip'),
  one('Clip', [X], 'Clip', { max: { float: 6 } }, { opset: 6 }),
  built('Clip', 'Convolution', (net) =>
    net.op('Clip', [net.op('Conv', [X, floats(2, 4, 3, 3)]), scalar(0), scalar(6)]),
  ),
  one('Add', [X, X], 'Eltwise'),
  one('Add', [X, floats(4, 1, 1)], 'Eltwise'),
  one('Add', [[3, 6], [6]], 'Reshape Reshape Eltwise Reshape'),
  one('Sub', [scalar(1), X], 'Unary Eltwise'),
  one('Mul', [[1, 4, 1, 1], X], 'Eltwise'),
  one('Div', [X, scalar(6)], 'Eltwise'),
  one('Pow', [X, scalar(2)], 'Eltwise'),
  one('Sum', [X, X, X], 'Eltwise Eltwise'),
  one('Mean', [X, X], 'Mean'),
  one('Max', [X, X], 'Maximum'),
  one('Min', [X, X], 'Unary Unary Maximum Unary'),
  one('Min', [X, scalar(1)], 'Clip'),
  ...['Equal', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'].map((name) =>
    built(
      name,
      'Reshape Reshape Comparison Reshape',
      (net) => net.op('Cast', [net.op(name, [X, X])], { to: 1 }),
      16,
    ),
  ),
  ...['And', 'Or', 'Xor', 'Not'].map((name) => {
    const joined = {
      And: 'Eltwise',
      Or: 'Maximum',
      Xor: 'Reshape Reshape Comparison Reshape',
      Not: 'Unary Eltwise',
    }[name]!
    const sides = name === 'Not' ? 1 : 2
    const expected = `${Array<string>(sides).fill('Reshape Comparison Reshape').join(' ')} ${joined}`
    return built(name, expected, (net) => {
      const conditions = Array.from({ length: sides }, () => net.op('Greater', [X, scalar(0)]))
      return net.op('Cast', [net.op(name, conditions)], { to: 1 })
    })
  }),
  built('Where', 'Reshape Reshape Comparison Reshape Unary Eltwise Eltwise Eltwise Eltwise', (net) => {
    const [x, y] = [net.input(X), net.input(X)]
    return net.op('Where', [net.op('Greater', [x, y]), x, y])
  }),
  one('Identity', [X], 'Reshape'),
  built('Dropout', 'ReLu', (net) => net.op('Relu', [net.op('Dropout', [X])])),
  built('Cast', 'ReLu', (net) => net.op('Cast', [net.op('Relu', [X])], { to: 1 })),
  built('CastLike', 'ReLu', (net) => net.op('CastLike', [net.op('Relu', [X]), floats(1)]), 15),
  one('Softmax', [X], 'Softmax'),
  one('Softmax', [X], 'Reshape Softmax Reshape', {}, { opset: 12 }),
  one('LogSoftmax', [[2, 7]], 'Softmax Unary'),
  one('Conv', [X, floats(3, 4, 3, 3), floats(3)], 'Convolution', PLANE),
  one('Conv', [[1, 4, 9], floats(3, 4, 3)], 'Reshape Convolution Reshape'),
  built('Conv', 'Convolution', (net) =>
    net.op('Conv', [net.op('Pad', [X, ints(0, 0, 0, 0, 0, 0, 1, 1)]), floats(3, 4, 3, 3)]),
  ),
  one('ConvTranspose', [X, floats(4, 3, 2, 2)], 'Deconvolution', { strides: [2, 2] }),
  one('MaxPool', [X], 'Pooling', PLANE),
  one('MaxPool', [X], 'Pooling', { ...PLANE, pads: [0, 0, 0, 0], ceil_mode: 1 }),
  one('AveragePool', [X], 'Pooling', PLANE),
  one('AveragePool', [X], 'Pad Pooling', { kernel_shape: [2, 2], pads: [0, 1, 1, 1], count_include_pad: 1 }),
  one('AveragePool', [X], 'Pad Pooling Reshape Eltwise Reshape', {
    kernel_shape: [2, 2],
    pads: [0, 1, 1, 1],
  }),
  one('GlobalAveragePool', [X], 'Pooling'),
  one('GlobalMaxPool', [X], 'Pooling'),
  one('Gemm', [[2, 6], floats(6, 4), floats(4)], 'FullyConnected'),
  one(
    'Gemm',
    [
      [6, 2],
      [4, 6],
    ],
    'Transpose Transpose MatMul',
    { transA: 1, transB: 1 },
  ),
  one('MatMul', [[3, 6], floats(6, 4)], 'FullyConnected'),
  one(
    'MatMul',
    [
      [1, 2, 3, 5],
      [1, 2, 5, 4],
    ],
    'Reshape Reshape MatMul Reshape',
  ),
  built('MatMul', 'Reshape FullyConnected Reshape', (net) =>
    net.op('Add', [net.op('MatMul', [[1, 3, 6], floats(6, 4)]), floats(4)]),
  ),
  one('BatchNormalization', [X, floats(4), floats(4), floats(4), floats(4)], 'BatchNormalization'),
  built('BatchNormalization', 'Convolution', (net) =>
    net.op('Relu', [
      net.op('BatchNormalization', [
        net.op('Conv', [X, floats(2, 4, 1, 1)]),
        floats(2),
        floats(2),
        floats(2),
        floats(2),
      ]),
    ]),
  ),
  one('InstanceNormalization', [X, floats(4), floats(4)], 'InstanceNorm'),
  one('LayerNormalization', [[1, 3, 8], floats(8)], 'Reshape LayerNorm Reshape', {}, { opset: 17 }),
  one('LRN', [X], 'LRN Eltwise', { size: 3, bias: { float: 2 } }),
  one('Reshape', [X, ints(0, -1, 5)], 'Reshape'),
  one('Flatten', [X], 'Reshape', { axis: 2 }),
  one('Squeeze', [[1, 4, 1, 5], ints(0, 2)], 'Reshape'),
  one('Unsqueeze', [[3, 4], ints(-1)], 'Reshape'),
  one('Transpose', [X], 'Transpose', { perm: [0, 2, 3, 1] }),
  one('Concat', [X, X], 'Concat', { axis: -3 }),
  one('Slice', [X, ints(1, 0), ints(4, 100), ints(2, 3), ints(1, 2)], 'Slice Slice'),
  one('Slice', [X], 'Slice', { axes: [1], starts: [1], ends: [3] }, { opset: 9 }),
  one('Split', [X, ints(1, 3)], 'Split Reshape Reshape', { axis: 1 }, { outputs: 2 }),
  one('Gather', [X, ints(3, 0, 2)], 'Reshape Gather Reshape', { axis: 1 }),
  one('Gather', [X, tensor([2n], { dtype: 'int64', shape: [] })], 'Slice Reshape', { axis: 1 }),
  one('Expand', [[1, 4, 1, 1], ints(1, 4, 3, 2)], 'Concat Concat'),
  one('Tile', [X, ints(1, 2, 1, 1)], 'Concat'),
  one('Pad', [X, ints(0, 0, 1, 2, 0, 0, 1, 2)], 'Pad'),
  one('Pad', [X, ints(0, 0, 0, 0, 0, 0, 0, 1)], 'Concat'),
  one('Pad', [X, ints(0, 0, 1, 0, 0, 0, 1, 0)], 'Gather', { mode: 'edge' }),
  one('DepthToSpace', [[1, 8, 3, 4]], 'DepthToSpace', { blocksize: 2, mode: 'CRD' }),
  one('DepthToSpace', [[1, 8, 3, 4]], 'Reshape Transpose Reshape', { blocksize: 2 }),
  one('SpaceToDepth', [[1, 2, 6, 4]], 'Reshape Transpose Reshape', { blocksize: 2 }),
  one('Resize', [X, '', tensor([1, 1, 2, 2], { dtype: 'float32' })], 'Interp', UPSAMPLED),
  one('Resize', [[2, 4, 6, 5], '', tensor([1, 1, 2, 2], { dtype: 'float32' })], 'Reshape Interp Reshape', {
    mode: 'linear',
  }),
  one('Upsample', [X, tensor([1, 1, 2, 2], { dtype: 'float32' })], 'Interp', {}, { opset: 9 }),
  ...['Sum', 'SumSquare', 'Max', 'Min', 'Prod', 'L1', 'LogSum', 'LogSumExp'].map((name) =>
    one(`Reduce${name}`, [[2, 3, 4]], 'Reshape Reduction Reshape', name === 'Sum' ? {} : { axes: [-1] }),
  ),
  one('ReduceMean', [X], 'Pooling', { axes: [2, 3] }),
  one('ReduceMean', [X], 'Transpose Reshape Reduction Reshape', { axes: [1] }),
  one('ReduceL2', [X], 'Reshape ReduceL2 Reshape', { axes: [3] }),
  one('TopK', [[1, 7], ints(3)], 'TopKV2 Reshape Reshape', {}, { outputs: 2 }),
  one('LSTM', [[4, 1, 3], ...LSTM], 'LSTM', { hidden_size: 5 }),
  one('GRU', [[4, 1, 3], ...GRU], 'GRU', { hidden_size: 5, linear_before_reset: 1 }),
  built('QuantizeLinear', 'Convolution', (net) => {
    const scale = [scalar(0.5), zero('uint8', 3)]
    const x = net.op('DequantizeLinear', [net.op('QuantizeLinear', [X, ...scale]), ...scale])
    const weight = net.op('DequantizeLinear', [codes('uint8', 2, 4, 1, 1), ...scale])
    return net.op('DequantizeLinear', [
      net.op('QuantizeLinear', [net.op('Conv', [x, weight]), ...scale]),
      ...scale,
    ])
  }),
  built('DequantizeLinear', 'FullyConnected', (net) => {
    const scale = [scalar(0.5), zero('int8')]
    const x = net.op('DequantizeLinear', [net.op('QuantizeLinear', [[2, 6], ...scale]), ...scale])
    const weight = net.op('DequantizeLinear', [codes('int8', 4, 6), ...scale])
    const product = net.op('Gemm', [x, weight, floats(4)], { transB: 1 })
    return net.op('DequantizeLinear', [net.op('QuantizeLinear', [product, ...scale]), ...scale])
  }),
  built('QLinearConv', 'Convolution', (net) => {
    const scale = [scalar(0.5), zero('uint8', 3)]
    const x = net.op('QuantizeLinear', [X, ...scale])
    const made = net.op('QLinearConv', [x, ...scale, codes('uint8', 2, 4, 1, 1), ...scale, ...scale])
    return net.op('DequantizeLinear', [made, ...scale])
  }),
  built('QLinearMatMul', 'FullyConnected', (net) => {
    const scale = [scalar(0.5), zero('uint8', 3)]
    const x = net.op('QuantizeLinear', [[2, 6], ...scale])
    const made = net.op('QLinearMatMul', [x, ...scale, codes('uint8', 6, 4), ...scale, ...scale])
    return net.op('DequantizeLinear', [made, ...scale])
  }),
]
