/**
 * Table of the operators and their parameter blocks: number, name, fields, runtime support and older forms. Reader,
 * writer, checker and the type of `node.params` are derived from it.
 *
 * A vector is named after its offset field in the reference, without `offset_` and the letters of its kind
 * (`offset_vf_min_size`: `min_size`).
 *
 * Source: the reference implementation at its last public commit (c73708ce, 2023-05-18), the history of its format
 * header since 2019 for the older forms, and real files.
 */
import {
  ALWAYS,
  type Field,
  type Fields,
  f32,
  i32,
  mandatoryVector,
  outside,
  type StructLayout,
  structLayout,
  text,
  u8,
  u32,
  unless,
  type ValuesOf,
  vector,
  when,
} from './struct_layout.js'

/** Whether the current runtime can load (`L`) an operator, and the current converter save (`S`) it. */
type Support = 'LS' | 'L-' | '-S' | '--'

/** A form of a parameter block that older writers stored. */
interface OlderForm {
  /** Bytes on disk. */
  readonly byteLength: number
  /**
   * Fields in order. Default: the current fields that fit. Fields that the current form lacks keep their bytes, and
   * `currentValues` converts them.
   */
  readonly fields?: Fields
  readonly currentValues?: CurrentValues
}

/**
 * Converts fields that an older form stores differently to the current ones.
 *
 * @param values - numbers of the block
 * @param params - the parameters as far as both forms have them
 */
export type CurrentValues = (
  values: Readonly<Record<string, number>>,
  params: Readonly<Record<string, unknown>>,
) => Readonly<Record<string, unknown>>

interface OperatorOptions {
  readonly support?: Support
  readonly older?: readonly OlderForm[]
  /** False where old writers omitted the whole block. */
  readonly needsBlock?: boolean
}

export interface OperatorSchema<Name extends string = string, F extends Fields = Fields> {
  readonly number: number
  readonly name: Name
  readonly fields: F
  readonly layout: StructLayout
  /** Values to assume for fields that a file lacks. */
  readonly defaults: Readonly<Record<string, number | null>>
  readonly canLoad: boolean
  readonly canSave: boolean
  readonly older: readonly OlderForm[]
  readonly needsBlock: boolean
}

function defaultOf(field: Field): number | null {
  return field.kind === 'scalar' ? (field.default ?? 0) : null
}

function operator<const Name extends string, const F extends Fields>(
  number: number,
  name: Name,
  fields: F,
  { support = 'LS', older = [], needsBlock = true }: OperatorOptions = {},
): OperatorSchema<Name, F> {
  const layout = structLayout(fields)
  const [canLoad, canSave] = [support.startsWith('L'), support.endsWith('S')]
  return {
    number,
    name,
    fields,
    layout,
    defaults: Object.fromEntries(layout.fields.map(({ name, field }) => [name, defaultOf(field)])),
    canLoad,
    canSave,
    older,
    needsBlock: needsBlock && layout.byteLength > 0,
  }
}

const flag = () => i32({ values: 'flag' })

/** Blocks of 2020, before the target was a vector: up to four dimensions inside the block; 0 and -2 mean absent. */
const RESHAPE_V1: Fields = {
  dim_0: i32(),
  dim_1: i32(),
  dim_2: i32(),
  dim_3: i32(),
  dim_size: i32(),
  axis: i32(),
}

function reshapeOfV1(values: Readonly<Record<string, number>>): { readonly re_shape: readonly number[] } {
  const extents = [values.dim_0!, values.dim_1!, values.dim_2!, values.dim_3!]
  return { re_shape: extents.filter((extent) => extent !== 0 && extent !== -2) }
}

/**
 * Writers of blocks without `is_onnx` always copied the dimension of the input where the target has 0. The current runtime does
 * so only where one of two flags is set.
 */
const reshapeBeforeOnnx: CurrentValues = (_, { is_mxnet, re_shape }) => {
  const copiesExtents = is_mxnet === 0 && Array.isArray(re_shape) && re_shape.includes(0)
  return copiesExtents ? { is_onnx: 1 } : {}
}

const ADDRESSED_BY_AXIS = {
  axis: i32(),
  slice_points: vector('i32'),
  begins: vector('i32'),
  sizes: vector('i32'),
}

export const OPERATORS = [
  operator(0, 'Accuracy', {}, { support: '--' }),
  operator(1, 'BatchNormalization', { rescale_factor: f32(), eps: f32(), caffe_flavor: i32() }),
  operator(
    2,
    'Resize',
    { scale_x: f32(), scale_y: f32(), type: i32() },
    { support: '--', older: [{ byteLength: 8 }] },
  ),
  operator(3, 'Concat', { axis: i32() }),
  operator(4, 'Const', {}),
  operator(
    5,
    'Convolution',
    {
      kernel_h: i32(),
      kernel_w: i32(),
      stride_h: i32(),
      stride_w: i32(),
      dilation_h: i32(),
      dilation_w: i32(),
      input_channel: i32(),
      output_channel: i32(),
      group: i32(),
      activation: i32({ default: -1 }),
      pad_h0: i32(),
      pad_w0: i32(),
      pad_h1: i32(),
      pad_w1: i32(),
    },
    // For nine days in April 2020 the four pads were stored twice; the second four are kept unchanged.
    { older: [{ byteLength: 72 }] },
  ),
  operator(
    6,
    'Deconvolution',
    {
      num_output: i32(),
      kernel_h: i32(),
      kernel_w: i32(),
      stride_h: i32(),
      stride_w: i32(),
      pad_w0: i32(),
      pad_h0: i32(),
      pad_w1: i32(),
      pad_h1: i32(),
      dilation_h: i32(),
      dilation_w: i32(),
      group: i32(),
      activation: i32({ default: -1 }),
      output_pad_h0: i32(),
      output_pad_w0: i32(),
    },
    { older: [{ byteLength: 52 }] },
  ),
  operator(7, 'DetectionOutput', {
    num_classes: i32(),
    keep_top_k: i32(),
    nms_top_k: i32(),
    confidence_threshold: f32(),
    nms_threshold: f32(),
  }),
  operator(8, 'Dropout', {}),
  operator(
    9,
    'Eltwise',
    {
      type: u32({ values: 'eltwise' }),
      // Any value but 0 and 1 is uninitialised memory and means 0.
      caffe_flavor: i32({ uninitialised: outside(0, 1) }),
      shift: f32({ uninitialised: unless('type', 17) }),
      power: f32({ uninitialised: unless('type', 17) }),
      scale: f32({ uninitialised: unless('type', 17) }),
    },
    { older: [{ byteLength: 8 }] },
  ),
  operator(10, 'Flatten', { axis: i32(), end_axis: i32() }),
  // Models from MXNet have a second number of unknown meaning, 1 in every file.
  operator(11, 'FullyConnected', { num_output: i32() }, { older: [{ byteLength: 8 }] }),
  operator(12, 'InputOp', {}),
  operator(
    13,
    'LRN',
    {
      local_size: i32(),
      alpha: f32(),
      beta: f32(),
      norm_region: i32(),
      k: f32(),
      bias: f32({ uninitialised: ALWAYS }),
      is_onnx: u8(),
    },
    { older: [{ byteLength: 20 }] },
  ),
  operator(14, 'Normalize', { across_spatial: i32(), channel_shared: i32() }),
  operator(15, 'Permute', { flag: i32(), order0: i32(), order1: i32(), order2: i32(), order3: i32() }),
  operator(
    16,
    'Pooling',
    {
      alg: u32({ values: 'poolingAlgorithm' }),
      kernel_h: i32(),
      kernel_w: i32(),
      stride_h: i32(),
      stride_w: i32(),
      global: flag(),
      caffe_flavor: i32({ values: 'poolingRounding' }),
      pad_h0: i32(),
      pad_w0: i32(),
      pad_h1: i32(),
      pad_w1: i32(),
    },
    { older: [{ byteLength: 60 }] },
  ),
  operator(17, 'PReLU', {}),
  operator(18, 'PriorBox', {
    min_size: mandatoryVector('f32'),
    max_size: mandatoryVector('f32'),
    variance: mandatoryVector('f32'),
    aspect_ratio: mandatoryVector('f32'),
    flip: i32(),
    clip: i32(),
    // Old writers left these two uninitialised; the runtime counts the priors itself.
    img_size: i32({ uninitialised: outside(0, 65_535) }),
    img_h: i32(),
    img_w: i32(),
    step_w: f32(),
    step_h: f32(),
    offset: f32(),
    num_priors: i32({ uninitialised: outside(0, 65_535) }),
    out_dim: i32(),
  }),
  operator(19, 'Region', {
    num_classes: i32(),
    side: i32(),
    num_box: i32(),
    coords: i32(),
    confidence_threshold: f32(),
    nms_threshold: f32(),
    biases: mandatoryVector('f32'),
  }),
  operator(20, 'ReLu', { negative_slope: f32() }),
  operator(21, 'ReLu6', {}),
  operator(22, 'Reorg', { stride: i32() }),
  operator(
    23,
    'Reshape',
    { is_mxnet: i32(), reverse: i32(), re_shape: vector('i32'), is_onnx: i32() },
    {
      older: [
        { byteLength: 12, currentValues: reshapeBeforeOnnx },
        { byteLength: 24, fields: RESHAPE_V1, currentValues: reshapeOfV1 },
        {
          byteLength: 36,
          fields: { ...RESHAPE_V1, is_mxnet: i32(), reverse: i32(), re_shape: vector('i32') },
          currentValues: reshapeBeforeOnnx,
        },
      ],
    },
  ),
  operator(24, 'ROIPooling', { pooled_h: i32(), pooled_w: i32(), spatial_scale: f32() }),
  operator(25, 'RPN', {
    ratios: vector('f32'),
    anchor_scales: vector('f32'),
    feat_stride: i32(),
    basesize: i32(),
    min_size: i32(),
    per_nms_topn: i32(),
    post_nms_topn: i32(),
    nms_thresh: f32(),
    anchors: vector('f32[4]'),
  }),
  operator(26, 'Scale', { axis: i32(), num_axes: i32(), bias_term: i32() }),
  operator(
    27,
    'Slice',
    {
      ...ADDRESSED_BY_AXIS,
      iscaffe: flag(),
      ismxnet: i32({ uninitialised: when('iscaffe', 1) }),
      isonnx: i32({ uninitialised: when('iscaffe', 1) }),
      begin: i32({ uninitialised: when('iscaffe', 1) }),
      end: i32({ uninitialised: when('iscaffe', 1) }),
      step: i32({ default: 1 }),
    },
    {
      older: [
        { byteLength: 20 },
        {
          byteLength: 32,
          fields: {
            ...ADDRESSED_BY_AXIS,
            iscaffe: flag(),
            ismxnet: i32({ uninitialised: when('iscaffe', 1) }),
            begin: i32({ uninitialised: when('iscaffe', 1) }),
            end: i32({ uninitialised: when('iscaffe', 1) }),
          },
        },
        { byteLength: 36 },
      ],
    },
  ),
  operator(28, 'Softmax', { axis: i32() }),
  operator(
    29,
    'Split',
    {
      axis: i32({ uninitialised: when('is_caffe', 1) }),
      split_dim: i32({ uninitialised: when('is_caffe', 1) }),
      is_caffe: u8({ values: 'flag' }),
      is_onnx: u8({ uninitialised: when('is_caffe', 1) }),
      split_sizes: vector('i32', { uninitialised: when('is_caffe', 1) }),
    },
    {
      needsBlock: false,
      older: [
        {
          byteLength: 20,
          fields: {
            axis: i32({ uninitialised: when('is_caffe', 1) }),
            split_dim: i32({ uninitialised: when('is_caffe', 1) }),
            squeeze_axis: i32(),
            is_caffe: u8({ values: 'flag' }),
            split_sizes: vector('i32', { uninitialised: when('is_caffe', 1) }),
          },
        },
      ],
    },
  ),
  operator(30, 'DetectionPostProcess', {
    max_detections: i32(),
    max_classes_per_detection: i32(),
    nms_score_threshold: f32(),
    nms_iou_threshold: f32(),
    num_classes: i32(),
    scales: mandatoryVector('f32'),
  }),
  operator(31, 'Gemm', { alpha: f32(), beta: f32(), transA: i32(), transB: i32() }),
  operator(32, 'Generic', { max_input_num: i32(), max_output_num: i32(), opname: text() }, { support: 'L-' }),
  operator(33, 'Logistic', {}),
  operator(
    34,
    'LSTM',
    {
      forget_bias: f32(),
      clip: f32(),
      output_len: i32(),
      sequence_len: i32(),
      input_size: i32(),
      hidden_size: i32(),
      cell_size: i32(),
      has_peephole: i32(),
      has_projection: i32(),
      has_clip: i32(),
      has_bias: i32(),
      has_init_state: i32(),
      forget_act: i32(),
      input_act: i32(),
      output_act: i32(),
      cellin_act: i32(),
      cellout_act: i32(),
      mxnet_flag: i32(),
    },
    { older: [{ byteLength: 68 }] },
  ),
  operator(35, 'RNN', {
    clip: f32(),
    output_len: i32(),
    sequence_len: i32(),
    input_size: i32(),
    hidden_size: i32(),
    has_clip: i32(),
    has_bias: i32(),
    has_init_state: i32(),
    activation: i32(),
  }),
  operator(36, 'Tanh', {}),
  operator(37, 'Sigmoid', {}),
  operator(38, 'Squeeze', { dim_0: i32(), dim_1: i32(), dim_2: i32(), dim_3: i32() }),
  operator(39, 'Fused.BNScaleReLu', {}, { support: '--' }),
  operator(40, 'Pad', {
    pad_n_0: i32(),
    pad_n_1: i32(),
    pad_c_0: i32(),
    pad_c_1: i32(),
    pad_h_0: i32(),
    pad_h_1: i32(),
    pad_w_0: i32(),
    pad_w_1: i32(),
    mode: i32({ values: 'padMode' }),
    value: f32(),
  }),
  operator(41, 'StridedSlice', {
    begin_n: i32(),
    end_n: i32(),
    stride_n: i32(),
    begin_c: i32(),
    end_c: i32(),
    stride_c: i32(),
    begin_h: i32(),
    end_h: i32(),
    stride_h: i32(),
    begin_w: i32(),
    end_w: i32(),
    stride_w: i32(),
  }),
  operator(42, 'ArgMax', { axis: i32(), keepdims: i32() }, { older: [{ byteLength: 4 }] }),
  operator(43, 'ArgMin', { axis: i32(), keepdims: i32() }, { older: [{ byteLength: 4 }] }),
  operator(44, 'TopKV2', { k: i32(), sorted: i32() }),
  operator(45, 'Reduction', {
    dim_0: i32(),
    dim_1: i32(),
    dim_2: i32(),
    dim_3: i32(),
    type: i32({ values: 'reduction' }),
    keepdim: i32(),
  }),
  operator(46, 'Maximum', {}),
  operator(47, 'Minimum', {}, { support: '-S' }),
  operator(48, 'GRU', {
    clip: f32(),
    output_len: i32(),
    sequence_len: i32(),
    input_size: i32(),
    hidden_size: i32(),
    has_clip: i32(),
    has_gate_bias: i32(),
    has_candidate_bias: i32(),
    has_init_state: i32(),
    mxnet_flag: i32(),
  }),
  operator(49, 'Addn', { axis: i32() }, { support: 'L-' }),
  operator(50, 'SwapAxis', { dim_0: i32(), dim_1: i32() }),
  operator(51, 'Upsample', { scale: f32() }),
  operator(52, 'SpaceToBatchND', {
    dilation_x: i32(),
    dilation_y: i32(),
    pad_top: i32(),
    pad_bottom: i32(),
    pad_left: i32(),
    pad_right: i32(),
  }),
  operator(53, 'BatchToSpaceND', {
    dilation_x: i32(),
    dilation_y: i32(),
    crop_top: i32(),
    crop_bottom: i32(),
    crop_left: i32(),
    crop_right: i32(),
  }),
  operator(54, 'Resize', { scale_x: f32(), scale_y: f32(), type: i32() }, { older: [{ byteLength: 8 }] }),
  operator(55, 'ShuffleChannel', { group: i32() }),
  operator(56, 'Crop', {
    num_args: i32(),
    offset_c: i32(),
    offset_h: i32(),
    offset_w: i32(),
    crop_h: i32(),
    crop_w: i32(),
    center_crop: u8(),
    axis: i32(),
    flag: i32(),
  }),
  operator(57, 'Roialign', { pooled_width: i32(), pooled_height: i32(), spatial_scale: f32() }),
  operator(58, 'Psroipooling', { pooled_w: i32(), pooled_h: i32(), spatial_scale: f32(), output_dim: i32() }),
  operator(59, 'Unary', { type: i32({ values: 'unary' }) }),
  operator(60, 'Expanddims', { axis: i32() }),
  operator(61, 'Bias', { bias_size: i32() }, { support: 'L-' }),
  operator(62, 'Noop', {}),
  operator(63, 'Threshold', { threshold: f32() }),
  operator(64, 'Hardsigmoid', { alpha: f32(), beta: f32() }),
  operator(65, 'Embedding', {
    num_output: i32(),
    input_dim: i32(),
    bias_term: i32({ uninitialised: ALWAYS }),
    weight_data_size: i32(),
  }),
  operator(66, 'InstanceNorm', { eps: f32() }),
  operator(67, 'MVN', { across_channels: i32(), normalize_variance: i32(), eps: f32() }),
  operator(68, 'Absval', {}, { support: '--' }),
  operator(69, 'Cast', { type_from: i32({ values: 'dataType' }), type_to: i32({ values: 'dataType' }) }),
  operator(70, 'HardSwish', { alpha: f32(), beta: f32() }),
  operator(
    71,
    'Interp',
    {
      resize_type: i32({ values: 'interpolation' }),
      width_scale: f32(),
      height_scale: f32(),
      output_width: i32(),
      output_height: i32(),
    },
    { older: [{ byteLength: 24 }] },
  ),
  operator(72, 'Selu', { alpha: f32(), lambda: f32() }),
  operator(73, 'Elu', { alpha: f32() }),
  operator(74, 'BroadMul', {}),
  operator(75, 'Logical', { type: u32({ values: 'logical' }) }),
  operator(76, 'Gather', { axis: i32(), indices_num: i32(), is_onnx: u8() }, { older: [{ byteLength: 8 }] }),
  operator(77, 'Transpose', { tr_shape: vector('i32') }),
  operator(78, 'Comparison', { type: i32({ values: 'comparison' }) }),
  operator(79, 'SpaceToDepth', { block_size: i32() }),
  operator(80, 'DepthToSpace', { block_size: i32() }),
  operator(81, 'Reverse', {}),
  operator(82, 'SparseToDense', {
    output_shape_size0: i32(),
    output_shape_size1: i32(),
    default_value: i32(),
  }),
  operator(83, 'Ceil', {}),
  operator(84, 'SquaredDifference', {}),
  operator(85, 'Round', {}),
  operator(86, 'ZerosLike', {}),
  operator(87, 'Clip', { max: f32(), min: f32() }),
  operator(88, 'Unsqueeze', { axises: vector('i32') }),
  operator(89, 'ReduceL2', { axis: i32(), keepdim: i32() }),
  operator(90, 'Mean', {}),
  operator(91, 'MatMul', {}),
  operator(92, 'Expand', { ex_shape: vector('i32'), dim_num: i32() }, { older: [{ byteLength: 4 }] }),
  operator(93, 'Scatter', { axis: i32(), is_onnx: u8() }, { support: 'L-' }),
  operator(94, 'Shape', {}, { support: 'L-' }),
  operator(95, 'Where', {}, { support: 'L-' }),
  operator(96, 'Tile', { frame_flag: i32(), reps_size: i32(), reps: vector('i32') }, { support: 'L-' }),
  operator(97, 'Mish', {}),
  operator(
    98,
    'L2Pool',
    {
      paddingType: i32({ values: 'l2poolPadding' }),
      kernel_h: i32(),
      kernel_w: i32(),
      stride_h: i32(),
      stride_w: i32(),
    },
    { support: 'L-' },
  ),
  operator(99, 'LogSoftmax', { axis: i32() }, { support: 'L-' }),
  operator(100, 'ReLU1', {}, { support: 'L-' }),
  operator(101, 'L2Normalization', {}, { support: 'L-' }),
  operator(102, 'Softplus', {}),
  operator(103, 'Reciprocal', {}),
  operator(
    105,
    'SpatialTransformer',
    {
      sampler_type: i32(),
      transformer_type: i32(),
      shape_size: i32({ default: 2 }),
      ta_shape: vector('i32'),
    },
    {
      older: [
        { byteLength: 12, fields: { sampler_type: i32(), transformer_type: i32(), ta_shape: vector('i32') } },
      ],
    },
  ),
  operator(106, 'Gelu', {}),
  operator(107, 'LayerNorm', { eps: f32() }),
] as const satisfies readonly OperatorSchema[]

type AnyOperator = (typeof OPERATORS)[number]

/** Name of an operator of the format. `Resize` has two operator numbers with the same parameters. */
export type OperatorName = AnyOperator['name']

/** Parameters by operator name. */
export type OperatorParams = {
  [Name in OperatorName]: ValuesOf<Extract<AnyOperator, { readonly name: Name }>['fields']>
}

const BY_NUMBER: ReadonlyMap<number, OperatorSchema> = new Map(
  OPERATORS.map((entry): [number, OperatorSchema] => [entry.number, entry]),
)

/** Undefined for an unused number: 104, and from 108 on. */
export function operatorByNumber(number: number): OperatorSchema | undefined {
  return BY_NUMBER.get(number)
}

// Of two numbers with one name the later one is used: the runtime no longer loads number 2.
const BY_NAME: ReadonlyMap<string, OperatorSchema> = new Map(
  OPERATORS.map((entry): [string, OperatorSchema] => [entry.name, entry]),
)

/** Undefined for an unknown name. */
export function operatorByName(name: string): OperatorSchema | undefined {
  return BY_NAME.get(name)
}
