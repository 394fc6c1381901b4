/**
 * Computes shapes of outputs from the shapes of inputs, by the rules of the reference's `infer_shape` functions, for the
 * operators that most models have. The rules were compared with the shapes that real files store.
 */
import type { OperatorParams } from '../operators.js'
import type { TmfileNode } from './types.js'

type Shape = readonly number[]

/**
 * The shape of the output of a node; undefined where the rule is not known or does not hold for its inputs.
 *
 * @param isNhwc - the axes of activations are n, h, w, c; the runtime changes axes and targets of such a model
 */
export function inferShape(node: TmfileNode, isNhwc: boolean): Shape | undefined {
  const inputs = node.inputs.map(({ shape }) => shape)
  const rule = (RULES as Partial<Record<string, Rule>>)[node.operator]
  if (!rule || node.opaqueParams !== null || inputs.length === 0) return undefined
  if (inputs.some((shape) => shape === null || shape.length === 0 || shape.some((extent) => extent < 1))) {
    return undefined
  }
  const shape = rule({
    inputs: inputs as readonly Shape[],
    params: node.params as never,
    axes: axesOf(isNhwc),
    isNhwc,
  })
  if (!shape || shape.some((extent) => !Number.isInteger(extent) || extent < 1 || extent >= 2 ** 31))
    return undefined
  return node.outputs.length === 1 ? shape : undefined
}

/** Positions of channels, height and width among the four axes of an activation. */
interface Axes {
  readonly channels: number
  readonly height: number
  readonly width: number
}

function axesOf(isNhwc: boolean): Axes {
  return isNhwc ? { channels: 3, height: 1, width: 2 } : { channels: 1, height: 2, width: 3 }
}

interface Case<Params = never> {
  readonly inputs: readonly Shape[]
  readonly params: Params
  readonly axes: Axes
  readonly isNhwc: boolean
}

type Rule = (given: Case) => Shape | undefined
type Params<Name extends keyof OperatorParams> = OperatorParams[Name]

/** Operators whose output has the shape of the first input. */
const SAME_SHAPE = [
  ...[
    'Absval',
    'BatchNormalization',
    'Bias',
    'Cast',
    'Ceil',
    'Clip',
    'Dropout',
    'Elu',
    'Fused.BNScaleReLu',
    'Gelu',
  ],
  ...[
    'HardSwish',
    'Hardsigmoid',
    'InstanceNorm',
    'L2Normalization',
    'LRN',
    'LayerNorm',
    'LogSoftmax',
    'Logistic',
  ],
  ...[
    'MVN',
    'Mish',
    'Noop',
    'Normalize',
    'PReLU',
    'ReLU1',
    'ReLu',
    'ReLu6',
    'Reciprocal',
    'Round',
    'Scale',
    'Selu',
  ],
  ...['ShuffleChannel', 'Sigmoid', 'Softmax', 'Softplus', 'Tanh', 'Threshold', 'Unary', 'ZerosLike'],
]

/** Operators on two or more tensors, element by element. */
const ELEMENTWISE = [
  'Addn',
  'BroadMul',
  'Comparison',
  'Eltwise',
  'Logical',
  'Maximum',
  'Minimum',
  'SquaredDifference',
]

const RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(SAME_SHAPE.map((name): [string, Rule] => [name, ({ inputs }) => inputs[0]])),
  ...Object.fromEntries(ELEMENTWISE.map((name): [string, Rule] => [name, elementwise])),
  Concat: concat,
  Convolution: convolution,
  Deconvolution: deconvolution,
  Crop: crop,
  Flatten: flatten,
  FullyConnected: fullyConnected,
  Interp: interp,
  Permute: permute,
  Pooling: pooling,
  Reshape: reshape,
  Transpose: transpose,
  Upsample: upsample,
}

const countOf = (shape: Shape): number => shape.reduce((product, extent) => product * extent, 1)

/** Equal shapes, or a scalar with a tensor: the reference broadcasts other shapes by rules of each operator. */
function elementwise({ inputs }: Case): Shape | undefined {
  const shapes = inputs.filter((shape) => countOf(shape) > 1)
  const [first] = shapes.length === 0 ? inputs : shapes
  return shapes.every((shape) => String(shape) === String(first)) ? first : undefined
}

function concat({ inputs, params, isNhwc }: Case<Params<'Concat'>>): Shape | undefined {
  const [first] = inputs
  if (isNhwc) return undefined
  const axis = params.axis < 0 ? params.axis + first!.length : params.axis
  if (axis < 0 || axis >= first!.length) return undefined
  const isJoined = inputs.every(
    (shape) =>
      shape.length === first!.length && shape.every((extent, at) => at === axis || extent === first![at]),
  )
  if (!isJoined) return undefined
  const extent = inputs.reduce((sum, shape) => sum + shape[axis]!, 0)
  return first!.map((each, at) => (at === axis ? extent : each))
}

/** Replaces channels, height and width of a shape of four axes. */
function withMap(
  shape: Shape,
  { channels, height, width }: Axes,
  map: readonly [number, number, number],
): Shape {
  const changed = [...shape]
  changed[channels] = map[0]
  changed[height] = map[1]
  changed[width] = map[2]
  return changed
}

interface Window {
  readonly kernel: number
  readonly stride: number
  readonly dilation: number
  /** Before and after; -1 and -2 mean as much as keeps the size. */
  readonly pad: readonly [number, number]
}

function windows(extent: number, { kernel, stride, dilation, pad: [before, after] }: Window): number {
  if (stride < 1) return 0
  if (before < 0) return Math.floor((extent - 1) / stride) + 1
  return Math.floor((extent - dilation * (kernel - 1) - 1 + before + after) / stride) + 1
}

function convolution({ inputs: [input], params, axes }: Case<Params<'Convolution'>>): Shape | undefined {
  if (input!.length !== 4) return undefined
  const { kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w } = params
  const { pad_h0, pad_h1, pad_w0, pad_w1, output_channel } = params
  return withMap(input!, axes, [
    output_channel,
    windows(input![axes.height]!, {
      kernel: kernel_h,
      stride: stride_h,
      dilation: dilation_h,
      pad: [pad_h0, pad_h1],
    }),
    windows(input![axes.width]!, {
      kernel: kernel_w,
      stride: stride_w,
      dilation: dilation_w,
      pad: [pad_w0, pad_w1],
    }),
  ])
}

function deconvolution({ inputs: [input], params, axes }: Case<Params<'Deconvolution'>>): Shape | undefined {
  const { kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, num_output } = params
  const { pad_h0, pad_h1, pad_w0, pad_w1, output_pad_h0, output_pad_w0 } = params
  if (input!.length !== 4 || Math.min(pad_h0, pad_h1, pad_w0, pad_w1) < 0) return undefined
  const height = (input![axes.height]! - 1) * stride_h + dilation_h * (kernel_h - 1) + 1 - pad_h0 - pad_h1
  const width = (input![axes.width]! - 1) * stride_w + dilation_w * (kernel_w - 1) + 1 - pad_w0 - pad_w1
  return withMap(input!, axes, [num_output, height + output_pad_h0, width + output_pad_w0])
}

/** `caffe_flavor` 1 rounds up, and drops a window that would start in the padding behind; 2 counts the padding once. */
function pooled(
  extent: number,
  kernel: number,
  stride: number,
  pad: readonly [number, number],
  flavor: number,
): number {
  if (flavor === 0 || pad[0] < 0) return windows(extent, { kernel, stride, dilation: 1, pad })
  if (stride < 1) return 0
  if (flavor === 2) return Math.floor((extent - kernel + pad[0]) / stride) + 1
  const count = Math.ceil((extent - kernel + pad[0] + pad[1]) / stride) + 1
  return pad[0] > 0 && (count - 1) * stride >= extent + pad[0] ? count - 1 : count
}

function pooling({ inputs: [input], params, axes }: Case<Params<'Pooling'>>): Shape | undefined {
  const { kernel_h, kernel_w, stride_h, stride_w, global, caffe_flavor } = params
  const { pad_h0, pad_h1, pad_w0, pad_w1 } = params
  if (input!.length !== 4) return undefined
  const channels = input![axes.channels]!
  if (global !== 0) return withMap(input!, axes, [channels, 1, 1])
  if (caffe_flavor < 0 || caffe_flavor > 2) return undefined
  return withMap(input!, axes, [
    channels,
    pooled(input![axes.height]!, kernel_h, stride_h, [pad_h0, pad_h1], caffe_flavor),
    pooled(input![axes.width]!, kernel_w, stride_w, [pad_w0, pad_w1], caffe_flavor),
  ])
}

function flatten({ inputs: [input], params, isNhwc }: Case<Params<'Flatten'>>): Shape | undefined {
  if (isNhwc) return undefined
  const rank = input!.length
  const [start, end] = [params.axis, params.end_axis].map((axis) => (axis < 0 ? axis + rank : axis)) as [
    number,
    number,
  ]
  if (start < 0 || start >= rank || end < start) return undefined
  const last = Math.min(end, rank - 1)
  return [...input!.slice(0, start), countOf(input!.slice(start, last + 1)), ...input!.slice(last + 1)]
}

function fullyConnected({
  inputs: [input, weights],
  params,
}: Case<Params<'FullyConnected'>>): Shape | undefined {
  // The rank of the output differs between versions of the reference where the input has three axes.
  if (input!.length !== 2 && input!.length !== 4) return undefined
  // Weights of another size would be read out of bounds.
  if (!weights || countOf(weights) !== params.num_output * countOf(input!.slice(1))) return undefined
  return [input![0]!, params.num_output]
}

function permute({ inputs: [input], params, isNhwc }: Case<Params<'Permute'>>): Shape | undefined {
  if (isNhwc) return undefined
  return reordered(input!, [params.order0, params.order1, params.order2, params.order3])
}

function transpose({ inputs: [input], params, isNhwc }: Case<Params<'Transpose'>>): Shape | undefined {
  return params.tr_shape && !isNhwc ? reordered(input!, params.tr_shape) : undefined
}

function reordered(input: Shape, order: Shape): Shape | undefined {
  const isPermutation = [...order].sort((a, b) => a - b).every((axis, at) => axis === at)
  return isPermutation && order.length === input.length ? order.map((axis) => input[axis]!) : undefined
}

/** A target with one -1, which takes what is left. The runtime rotates targets of NHWC models. */
function reshape({ inputs: [input], params, isNhwc }: Case<Params<'Reshape'>>): Shape | undefined {
  const target = params.re_shape
  if (!target || target.length === 0 || params.reverse !== 0 || isNhwc) return undefined
  const copiesZeros = params.is_mxnet !== 0 || params.is_onnx !== 0
  if (target.some((extent) => extent < -1 || (extent === 0 && !copiesZeros))) return undefined
  const shape = target.map((extent, at) => (extent === 0 ? (input![at] ?? 0) : extent))
  const open = shape.indexOf(-1)
  if (open >= 0) shape[open] = countOf(input!) / -countOf(shape)
  return countOf(shape) === countOf(input!) ? shape : undefined
}

function upsample({ inputs: [input], params: { scale }, axes }: Case<Params<'Upsample'>>): Shape | undefined {
  if (input!.length !== 4) return undefined
  const [height, width] = [axes.height, axes.width].map((axis) => Math.trunc(input![axis]! * scale)) as [
    number,
    number,
  ]
  return withMap(input!, axes, [input![axes.channels]!, height, width])
}

/** Scales win over an output size, which files with scales leave at 1. */
function interp({ inputs: [input], params, axes }: Case<Params<'Interp'>>): Shape | undefined {
  if (input!.length !== 4) return undefined
  const { height_scale, width_scale, output_height, output_width } = params
  const isScaled = height_scale > 0 && width_scale > 0
  const size = (axis: number, scale: number, fixed: number) =>
    isScaled ? Math.trunc(input![axis]! * scale) : fixed
  return withMap(input!, axes, [
    input![axes.channels]!,
    size(axes.height, height_scale, output_height),
    size(axes.width, width_scale, output_width),
  ])
}

/** The crop of mxnet to the height and width of a second tensor. */
function crop({ inputs: [input, like], params, isNhwc }: Case<Params<'Crop'>>): Shape | undefined {
  if (isNhwc || params.flag !== 1 || params.num_args !== 2) return undefined
  if (input!.length !== 4 || like?.length !== 4) return undefined
  return [input![0]!, input![1]!, like[2]!, like[3]!]
}
