/**
 * One small tmfile for each operator and form of its parameters that becomes ONNX. The tests check what is written;
 * `test/programs/tmfile_engines.mjs` compares the numbers of both engines.
 */

/** Constants of a case: a shape, with numbers from a seed, or the numbers. */
const c = (shape, values) => ({ shape, ...(values && { values }) })
const positive = (shape) => ({ shape, min: 0.5 })
const indices = (values) => ({ shape: [values.length], values, dtype: 'int32' })

const MAP = [1, 4, 6, 8]
const NO_PADS = { pad_h0: 0, pad_w0: 0, pad_h1: 0, pad_w1: 0 }
const CONV = {
  ...{ kernel_h: 3, kernel_w: 3, stride_h: 1, stride_w: 1, dilation_h: 1, dilation_w: 1, group: 1 },
  ...{ output_channel: 5, activation: -1, ...NO_PADS },
}
const DECONV = {
  ...{
    num_output: 3,
    kernel_h: 4,
    kernel_w: 4,
    stride_h: 2,
    stride_w: 2,
    dilation_h: 1,
    dilation_w: 1,
    group: 1,
  },
  ...{ activation: -1, pad_h0: 1, pad_w0: 1, pad_h1: 1, pad_w1: 1 },
}
const POOL = { alg: 0, kernel_h: 3, kernel_w: 3, stride_h: 2, stride_w: 2, ...NO_PADS }
const PAD_1 = { pad_h0: 1, pad_w0: 1, pad_h1: 1, pad_w1: 1 }
const STRIDES = { stride_n: 1, stride_c: 1, stride_h: 1, stride_w: 1 }
const NO_AXES = { dim_0: -2, dim_1: -2, dim_2: -2, dim_3: -2 }
const unary = [
  'Abs',
  'Neg',
  'Floor',
  'Ceil',
  'Mul',
  'Sqrt',
  'Reciprocal',
  'Exp',
  'Log',
  'Sin',
  'Cos',
  'Tan',
  'Asin',
  'Acos',
]

/**
 * Operator, parameters, shapes of the inputs, constants behind them, operators of ONNX, and what else: `outputs`, their number, and `dtypes`;
 * `range` of the inputs; `noEngine`, why the engine does not run it.
 */
export const OPERATOR_CASES = [
  ['Convolution', CONV, [MAP], [c([5, 4, 3, 3]), c([5])], 'Conv'],
  [
    'Convolution',
    { ...CONV, stride_h: 2, stride_w: 2, pad_h0: 1, pad_w0: 1, pad_h1: 0, pad_w1: 2 },
    [MAP],
    [c([5, 4, 3, 3])],
    'Conv',
  ],
  ['Convolution', { ...CONV, activation: 0, ...PAD_1 }, [MAP], [c([5, 4, 3, 3]), c([5])], 'Conv Relu'],
  ['Convolution', { ...CONV, activation: 6 }, [MAP], [c([5, 4, 3, 3]), c([5, 1, 1])], 'Conv Clip'],
  ['Convolution', { ...CONV, dilation_h: 2, dilation_w: 2, ...PAD_1 }, [MAP], [c([5, 4, 3, 3])], 'Conv'],
  [
    'Convolution',
    { ...CONV, group: 4, output_channel: 4, ...PAD_1 },
    [MAP],
    [c([4, 1, 3, 3]), c([4])],
    'Conv',
  ],
  ['Convolution', { ...CONV, group: 2, output_channel: 6 }, [MAP], [c([6, 2, 3, 3])], 'Conv'],
  [
    'Convolution',
    { ...CONV, stride_h: 2, stride_w: 2, pad_h0: -1, pad_w0: -1, pad_h1: -1, pad_w1: -1 },
    [[1, 4, 7, 8]],
    [c([5, 4, 3, 3])],
    'Conv',
  ],
  [
    'Convolution',
    { ...CONV, stride_h: 2, stride_w: 2, pad_h0: -2, pad_w0: -2, pad_h1: -2, pad_w1: -2 },
    [[1, 4, 7, 8]],
    [c([5, 4, 3, 3])],
    'Conv',
  ],
  [
    'Convolution',
    { ...CONV, activation: 1 },
    [MAP],
    [c([5, 4, 3, 3])],
    'Conv Clip',
    { noEngine: 'kernels disagree about activation 1' },
  ],
  ['Deconvolution', DECONV, [MAP], [c([4, 3, 4, 4]), c([3])], 'ConvTranspose'],
  [
    'Deconvolution',
    { ...DECONV, activation: 0, output_pad_h0: 1, output_pad_w0: 1 },
    [MAP],
    [c([4, 3, 4, 4])],
    'ConvTranspose Relu',
  ],
  ['Deconvolution', { ...DECONV, group: 4, num_output: 4 }, [MAP], [c([4, 1, 4, 4])], 'ConvTranspose'],
  ['Pooling', POOL, [[1, 4, 7, 9]], [], 'MaxPool'],
  ['Pooling', { ...POOL, ...PAD_1 }, [[1, 4, 7, 9]], [], 'MaxPool'],
  ['Pooling', { ...POOL, caffe_flavor: 1 }, [[1, 4, 8, 10]], [], 'MaxPool'],
  [
    'Pooling',
    { ...POOL, kernel_h: 2, kernel_w: 2, stride_h: 1, stride_w: 1, caffe_flavor: 2, ...PAD_1 },
    [MAP],
    [],
    'MaxPool',
  ],
  ['Pooling', { ...POOL, pad_h0: -1, pad_w0: -1, pad_h1: -1, pad_w1: -1 }, [[1, 4, 7, 8]], [], 'MaxPool'],
  ['Pooling', { ...POOL, alg: 1, ...PAD_1 }, [[1, 4, 7, 9]], [], 'AveragePool'],
  ['Pooling', { ...POOL, alg: 1, caffe_flavor: 1, ...PAD_1 }, [[1, 4, 8, 10]], [], 'AveragePool Mul'],
  ['Pooling', { ...POOL, alg: 1, caffe_flavor: 1 }, [[1, 4, 8, 10]], [], 'AveragePool Mul'],
  ['Pooling', { ...POOL, alg: 1, caffe_flavor: 16, ...PAD_1 }, [[1, 4, 7, 9]], [], 'AveragePool'],
  ['Pooling', { ...POOL, alg: 1, global: 1 }, [MAP], [], 'GlobalAveragePool'],
  ['Pooling', { ...POOL, kernel_h: 6, kernel_w: 8 }, [MAP], [], 'GlobalMaxPool'],
  ['FullyConnected', { num_output: 5 }, [[2, 12]], [c([5, 12]), c([5])], 'Gemm'],
  ['FullyConnected', { num_output: 5 }, [[1, 3, 2, 2]], [c([5, 12])], 'Reshape Gemm Reshape'],
  [
    'MatMul',
    {},
    [
      [2, 3, 4],
      [2, 4, 5],
    ],
    [],
    'MatMul',
  ],
  ['Reduction', { ...NO_AXES, dim_0: 3, type: 0, keepdim: 1 }, [[1, 1, 6, 8]], [], 'ReduceSum'],
  ['Reduction', { ...NO_AXES, dim_0: 3, type: 1, keepdim: 1 }, [[1, 1, 6, 8]], [], 'ReduceMean'],
  ['Reduction', { ...NO_AXES, dim_0: 2, dim_1: 3, type: 1, keepdim: 0 }, [MAP], [], 'ReduceMean'],
  ['Reduction', { ...NO_AXES, dim_0: 3, type: 8, keepdim: 1 }, [[1, 1, 6, 8]], [], 'ReduceL1'],
  ['Reduction', { ...NO_AXES, dim_0: 3, type: 4, keepdim: 1 }, [[1, 1, 6, 8]], [], 'ReduceMax'],
  ['Reduction', { ...NO_AXES, type: 0, keepdim: 0 }, [MAP], [], 'ReduceSum Reshape'],
  ['ReduceL2', { axis: 2, keepdim: 1 }, [MAP], [], 'ReduceL2'],
  [
    'LSTM',
    { hidden_size: 3, cell_size: 3, output_len: 1, sequence_len: 1, input_size: 1 },
    [[4, 2, 5]],
    [c([1, 12, 5]), c([1, 12, 3]), c([1, 24]), c([1, 2, 3], 'zeros'), c([1, 2, 3], 'zeros')],
    'LSTM',
  ],
  [
    'GRU',
    { hidden_size: 3, output_len: 1, sequence_len: 1, input_size: 1 },
    [[4, 2, 5]],
    [c([1, 9, 5]), c([1, 9, 3]), c([1, 18]), c([1, 2, 3], 'zeros')],
    'GRU',
  ],
  [
    'BatchNormalization',
    { rescale_factor: 1, eps: 1e-3 },
    [MAP],
    [c([4]), c([4]), c([4]), positive([4])],
    'BatchNormalization',
  ],
  [
    'BatchNormalization',
    { rescale_factor: 2, eps: 1e-3, caffe_flavor: 1 },
    [MAP],
    [c([4]), c([4]), c([4]), positive([4])],
    'BatchNormalization',
  ],
  ['Scale', { axis: 1, num_axes: 1, bias_term: 1 }, [MAP], [c([4]), c([4])], 'Mul Add'],
  ['Scale', { axis: 1, num_axes: 1 }, [MAP], [c([4])], 'Mul'],
  ['Bias', { bias_size: 4 }, [MAP], [c([4])], 'Add'],
  ['LRN', { local_size: 3, alpha: 0.5, beta: 0.75, k: 0 }, [MAP], [], 'LRN'],
  [
    'LRN',
    { local_size: 3, alpha: 0.5, beta: 0.75, k: 2 },
    [MAP],
    [],
    'Mul Add Reshape AveragePool Reshape Mul Add Pow Mul',
  ],
  ['InstanceNorm', { eps: 1e-5 }, [MAP], [c([4]), c([4])], 'InstanceNormalization'],
  [
    'LayerNorm',
    { eps: 1e-5 },
    [[3, 8]],
    [c([8]), c([8])],
    'ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add',
  ],
  ['MVN', { across_channels: 0, normalize_variance: 0, eps: 1e-5 }, [MAP], [], 'ReduceMean Sub'],
  [
    'MVN',
    { across_channels: 0, normalize_variance: 1, eps: 1e-3 },
    [MAP],
    [],
    'ReduceMean Sub Mul ReduceMean Sqrt Add Div',
  ],
  [
    'MVN',
    { across_channels: 1, normalize_variance: 1, eps: 1e-3 },
    [MAP],
    [],
    'ReduceMean Sub Mul ReduceMean Sqrt Add Div',
  ],
  ['Normalize', { across_spatial: 0, channel_shared: 0 }, [MAP], [c([4])], 'ReduceL2 Div Mul'],
  ['Softmax', { axis: 1 }, [MAP], [], 'Softmax'],
  ['Softmax', { axis: -1 }, [[2, 5]], [], 'Softmax'],
  ['ReLu', {}, [MAP], [], 'Relu'],
  ['ReLu', { negative_slope: 0.1 }, [MAP], [], 'LeakyRelu'],
  ['ReLu6', {}, [MAP], [], 'Clip', { range: [-8, 8] }],
  ['ReLU1', {}, [MAP], [], 'Clip', { range: [-3, 3] }],
  ['Clip', { max: 0.5, min: -0.25 }, [MAP], [], 'Clip'],
  ['Clip', { max: 0.5, min: -0.25 }, [MAP], [c([1], [-0.125]), c([1], [0.25])], 'Clip'],
  ['PReLU', {}, [MAP], [c([4])], 'PRelu'],
  ['PReLU', {}, [[2, 4]], [c([4])], 'PRelu'],
  ['Elu', { alpha: 0.5 }, [MAP], [], 'Elu'],
  ['Selu', { alpha: 1.5, lambda: 1.1 }, [MAP], [], 'Selu'],
  ['Sigmoid', {}, [MAP], [], 'Sigmoid'],
  ['Logistic', {}, [MAP], [], 'Sigmoid', { noEngine: 'it does not load' }],
  ['Tanh', {}, [MAP], [], 'Tanh'],
  ['Softplus', {}, [MAP], [], 'Softplus'],
  ['Hardsigmoid', { alpha: 0.25, beta: 0.5 }, [MAP], [], 'HardSigmoid', { range: [-3, 3] }],
  ['HardSwish', { alpha: 1, beta: 3 }, [MAP], [], 'HardSigmoid Mul', { range: [-4, 4] }],
  ['Mish', {}, [MAP], [], 'Softplus Tanh Mul'],
  ['Gelu', {}, [MAP], [], 'Mul Erf Mul Add Mul'],
  ...unary.map((opType, type) => [
    'Unary',
    { type },
    [MAP],
    [],
    opType === 'Reciprocal' ? 'Sqrt Reciprocal' : opType,
    { range: [0.1, 0.9] },
  ]),
  ['Unary', { type: 14 }, [MAP], [], 'Atan'],
  ['Unary', { type: 15 }, [MAP], [], 'Reciprocal', { range: [0.1, 2] }],
  ['Unary', { type: 16 }, [MAP], [], 'Tanh'],
  ['Reciprocal', {}, [MAP], [], 'Reciprocal', { range: [0.1, 2] }],
  ['Ceil', {}, [MAP], [], 'Ceil', { range: [-4, 4] }],
  ['Round', {}, [MAP], [], 'Round', { range: [-4, 4] }],
  ['Threshold', { threshold: 0.1 }, [MAP], [], 'Greater Cast'],
  ['Dropout', {}, [MAP], [], 'Identity'],
  ['Noop', {}, [MAP], [], 'Identity', { noEngine: 'a Noop that has to copy crashes' }],
  ['Cast', { type_from: 0, type_to: 0 }, [MAP], [], 'Identity'],
  ...[
    [0, 'Mul'],
    [2, 'Add'],
    [4, 'Sub'],
    [6, 'Max'],
    [10, 'Div'],
  ].map(([type, opType]) => ['Eltwise', { type }, [MAP, MAP], [], opType, { range: [0.5, 2] }]),
  ['Eltwise', { type: 0 }, [MAP], [c([1])], 'Mul'],
  ['Eltwise', { type: 2 }, [MAP], [c([4])], 'Add'],
  ['Eltwise', { type: 0 }, [MAP], [c([1, 4, 1, 1])], 'Mul'],
  ['Eltwise', { type: 2 }, [MAP], [c([6, 8])], 'Add'],
  ['Eltwise', { type: 4 }, [MAP], [c([4])], 'Sub'],
  ['Eltwise', { type: 4 }, [[1, 4, 1, 1], MAP], [], 'Sub'],
  ['Eltwise', { type: 0 }, [[4, 6, 8]], [c([4])], 'Mul'],
  ['Eltwise', { type: 0 }, [[1, 4, 8]], [c([4])], 'Mul'],
  [
    'Eltwise',
    { type: 2 },
    [
      [4, 1, 1],
      [4, 6, 8],
    ],
    [],
    'Add',
    { noEngine: 'the kernel fails' },
  ],
  ['Eltwise', { type: 1 }, [MAP], [c([1])], 'Mul'],
  ['Eltwise', { type: 5 }, [MAP], [c([1])], 'Sub'],
  ['Eltwise', { type: 7 }, [MAP], [], 'Sqrt Reciprocal', { range: [0.1, 2] }],
  ['Eltwise', { type: 8 }, [MAP], [c([1], [0.1])], 'Min', { noEngine: 'it skips every second element' }],
  ['Eltwise', { type: 11 }, [MAP], [], 'Log', { range: [0.1, 2] }],
  ['Eltwise', { type: 12 }, [MAP], [], 'Exp'],
  ['Eltwise', { type: 13 }, [MAP], [], 'Sqrt', { range: [0.1, 2] }],
  ['Eltwise', { type: 14 }, [MAP], [], 'Floor', { range: [-4, 4] }],
  ['Eltwise', { type: 15 }, [MAP], [], 'Mul'],
  ['Eltwise', { type: 16 }, [MAP], [c([1], [1.5])], 'Pow', { range: [0.1, 2] }],
  ['Eltwise', { type: 17, shift: 0.5, power: 2, scale: 0.25 }, [MAP], [], 'Mul Add Pow', { range: [0.1, 2] }],
  ['BroadMul', {}, [MAP, [1, 4, 1, 1]], [], 'Mul'],
  ['Maximum', {}, [MAP, MAP, MAP], [], 'Max'],
  ['Mean', {}, [MAP, MAP], [], 'Mean'],
  ['Addn', { axis: 0 }, [MAP, MAP], [], 'Sum'],
  ['SquaredDifference', {}, [MAP, MAP], [], 'Sub Mul'],
  ...['Equal', 'Equal Not', 'Greater', 'GreaterOrEqual', 'Less', 'LessOrEqual'].map((opTypes, type) => [
    'Comparison',
    { type },
    [
      [1, 1, 1, 24],
      [1, 1, 1, 24],
    ],
    [],
    `${opTypes} Cast`,
  ]),
  ['Logical', { type: 0 }, [MAP, MAP], [], 'Cast Cast And Cast', { noEngine: 'its && does not advance' }],
  ['Logical', { type: 1 }, [MAP, MAP], [], 'Cast Cast Or Cast', { noEngine: 'its || does not advance' }],
  ['Reshape', { re_shape: [1, 24, 8], is_onnx: 1 }, [MAP], [], 'Reshape'],
  ['Reshape', { re_shape: [0, -1], is_onnx: 1 }, [MAP], [], 'Reshape'],
  ['Reshape', { re_shape: [0, -3, -2], is_mxnet: 1 }, [MAP], [], 'Reshape'],
  ['Reshape', { re_shape: [0, -4, 2, 2, -2], is_mxnet: 1 }, [MAP], [], 'Reshape'],
  ['Flatten', { axis: 1, end_axis: 3 }, [MAP], [], 'Reshape'],
  ['Squeeze', { ...NO_AXES, dim_0: 1, dim_1: 2 }, [[1, 4, 1, 1]], [], 'Reshape'],
  ['Unsqueeze', { axises: [2] }, [[1, 4, 6]], [], 'Reshape'],
  ['Expanddims', { axis: 1 }, [[1, 4, 6]], [], 'Reshape', { noEngine: 'the kernel wants one memory' }],
  ['Transpose', { tr_shape: [0, 2, 3, 1] }, [MAP], [], 'Transpose'],
  ['Transpose', { tr_shape: [2, 0, 1] }, [[3, 4, 5]], [], 'Transpose'],
  ['Permute', { order0: 0, order1: 2, order2: 3, order3: 1 }, [MAP], [], 'Transpose'],
  ['Permute', { order0: 1, order1: 0, order2: 2, order3: -2 }, [[3, 4, 5]], [], 'Transpose'],
  [
    'SwapAxis',
    { dim_0: 1, dim_1: 2 },
    [MAP],
    [],
    'Transpose',
    { noEngine: 'it infers shapes of one element only' },
  ],
  ['ShuffleChannel', { group: 2 }, [MAP], [], 'Reshape Transpose Reshape'],
  ['Concat', { axis: 1 }, [MAP, [1, 2, 6, 8]], [], 'Concat'],
  ['Concat', { axis: -1 }, [MAP, MAP], [], 'Concat'],
  ['Slice', { axis: 1, iscaffe: 1, slice_points: [1, 3] }, [MAP], [], 'Slice Slice Slice', { outputs: 3 }],
  ['Slice', { axis: 1, iscaffe: 1 }, [MAP], [], 'Slice Slice', { outputs: 2 }],
  ['Slice', { axis: 2, isonnx: 1, begin: 1, end: 5, step: 2 }, [MAP], [], 'Slice'],
  ['Slice', { axis: 3, isonnx: 1, begin: 1, end: -2, step: 1 }, [MAP], [], 'Slice'],
  [
    'Slice',
    { axis: 1, ismxnet: 1, begin: 1, end: 3 },
    [MAP],
    [],
    'Slice',
    { noEngine: 'it copies a negative length' },
  ],
  ['Slice', { axis: 0, begins: [0, 1, 0, 2], sizes: [1, 2, 6, 4] }, [MAP], [], 'Slice'],
  ['Split', { axis: 1, split_dim: 2, is_onnx: 1, split_sizes: [1, 3] }, [MAP], [], 'Split', { outputs: 2 }],
  ['Split', { is_caffe: 1 }, [MAP], [], 'Identity Identity', { outputs: 2 }],
  ['StridedSlice', { begin_h: 1, end_h: -1, ...STRIDES, stride_w: 2 }, [MAP], [], 'Slice'],
  ['Crop', { flag: 1, num_args: 2, offset_h: 1, offset_w: 2 }, [MAP, [1, 4, 4, 5]], [], 'Slice'],
  ['Crop', { flag: 1, num_args: 1, crop_h: 4, crop_w: 4 }, [MAP, MAP], [], 'Slice'],
  ['Crop', { flag: 0, axis: 1, offset_c: 1, offset_h: 1, offset_w: 2 }, [MAP, [1, 2, 4, 5]], [], 'Slice'],
  ['Crop', { flag: 0, axis: 2, offset_h: 1, offset_w: 2 }, [MAP, [1, 4, 4, 5]], [], 'Slice'],
  ['Pad', { pad_h_0: 1, pad_h_1: 2, pad_w_0: 2, pad_w_1: 2, mode: 0, value: 0.5 }, [MAP], [], 'Pad'],
  ['Pad', { pad_h_0: 1, pad_h_1: 0, pad_w_0: 2, pad_w_1: 1, mode: 1 }, [MAP], [], 'Pad'],
  ['Pad', { pad_h_0: 1, pad_h_1: 2, pad_w_0: 2, pad_w_1: 1, mode: 2 }, [MAP], [], 'Pad'],
  ['Upsample', { scale: 2 }, [MAP], [], 'Resize'],
  ['Resize', { scale_x: 2, scale_y: 3 }, [MAP], [], 'Resize'],
  ['Interp', { resize_type: 1, height_scale: 2, width_scale: 3 }, [MAP], [], 'Resize'],
  ['Interp', { resize_type: 2, output_height: 9, output_width: 11 }, [MAP], [], 'Resize'],
  ['Interp', { resize_type: 2, height_scale: 2, width_scale: 2 }, [MAP], [], 'Resize'],
  ['Interp', { resize_type: 4, output_height: 9, output_width: 11 }, [MAP], [], 'Resize'],
  ['DepthToSpace', { block_size: 2 }, [MAP], [], 'DepthToSpace'],
  ['SpaceToDepth', { block_size: 2 }, [MAP], [], 'Identity'],
  ['Gather', { axis: 2, indices_num: 3 }, [MAP], [indices([2, 0, 5])], 'Gather'],
  ['Gather', { axis: 0, indices_num: 1, is_onnx: 1 }, [[3, 4, 5]], [indices([2])], 'Gather'],
  [
    'Embedding',
    { num_output: 5, input_dim: 6, weight_data_size: 30 },
    [[4]],
    [c([6, 5])],
    'Reshape Cast Gather',
    { range: [0, 5.9] },
  ],
  ['TopKV2', { k: 3, sorted: 1 }, [[1, 10]], [], 'TopK Cast', { outputs: 2, dtypes: ['float32', 'int32'] }],
  [
    'PriorBox',
    {
      min_size: [16],
      max_size: [32],
      aspect_ratio: [2, 3],
      variance: [0.1, 0.1, 0.2, 0.2],
      flip: 1,
      clip: 1,
      offset: 0.5,
    },
    [
      [1, 4, 3, 5],
      [1, 3, 48, 80],
    ],
    [],
    'Identity',
  ],
].map(([operator, params, inputs, constants, opTypes, more]) => ({
  ...{ operator, params, inputs, constants, opTypes: opTypes.split(' '), ...more },
}))

/** A generator of numbers from a seed. */
export function numbers(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x7fffffff
  }
}

/** `library`: the exports of `tilework/tmfile` and `tensor` of tilework, built or not. */
export function modelOf({ operator, params, inputs, constants, outputs = 1, dtypes }, library) {
  const { addConstant, createNode, insertNode, setOutputs, TmfileModel, tensor } = library
  const input = (shape, at) => ({
    ...{
      name: `input${at}`,
      dtype: 'float32',
      shape: [...shape],
      role: 'input',
      layout: 0,
      quantization: null,
      buffer: null,
    },
  })
  const model = new TmfileModel()
  const tensors = inputs.map(input)
  model.graph.tensors.push(...tensors)
  for (const each of tensors) insertNode(model, createNode(model, { operator: 'InputOp', outputs: [each] }))
  model.graph.inputs = [...model.graph.nodes]
  const next = numbers(7)
  const names = constants.map(({ shape, values, dtype = 'float32', min = -0.5 }, at) => {
    const count = shape.reduce((product, extent) => product * extent, 1)
    const list =
      values === 'zeros'
        ? Array(count).fill(0)
        : (values ?? Array.from({ length: count }, () => min + next()))
    addConstant(model, `constant${at}`, tensor(list, { dtype, shape }))
    return `constant${at}`
  })
  const variable = (_, at) => ({
    ...{
      name: at === 0 ? 'node' : `node${at}`,
      dtype: dtypes?.[at] ?? 'float32',
      shape: null,
      role: 'variable',
      layout: 0,
    },
    ...{ quantization: null, buffer: null },
  })
  const made = Array.from({ length: outputs }, variable)
  insertNode(
    model,
    createNode(model, { operator, name: 'node', inputs: [...tensors, ...names], outputs: made, params }),
    model.graph.nodes.length,
  )
  setOutputs(model, ['node'])
  return model
}
