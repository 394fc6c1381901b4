/** Shapes of operators that move a window over height and width, or change both. */
import type { OperatorParams } from '../../../formats/tmfile/operators.js'
import { countOf, one, type RuleCase, type Shape, type ShapeRule } from './shape_rule.js'

type Params<Name extends keyof OperatorParams> = OperatorParams[Name]

/** A division of integers in C. */
const divide = (dividend: number, divisor: number): number => Math.trunc(dividend / divisor)

/** Kernel, stride and dilation of 0 mean 1. */
const orOne = (value: number): number => (value === 0 ? 1 : value)

interface Axis {
  readonly kernel: number
  readonly stride: number
  readonly dilation: number
  /** Before and after; a negative pad before keeps the extent, divided by the stride. */
  readonly pad: readonly [number, number]
}

function windows(extent: number, { kernel, stride, dilation, pad: [before, after] }: Axis): number {
  if (stride < 1) return 0
  if (before < 0) return divide(extent - 1, stride) + 1
  return Math.floor((extent - dilation * (kernel - 1) - 1 + before + after) / stride) + 1
}

export function convolution({ inputs: [input, weight], params }: RuleCase<Params<'Convolution'>>) {
  if (input!.length !== 4) return undefined
  const { kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w } = params
  const { pad_h0, pad_h1, pad_w0, pad_w1, output_channel } = params
  const height = { kernel: orOne(kernel_h), stride: orOne(stride_h), dilation: orOne(dilation_h) }
  const width = { kernel: orOne(kernel_w), stride: orOne(stride_w), dilation: orOne(dilation_w) }
  return one([
    input![0]!,
    weight?.[0] ?? output_channel,
    windows(input![2]!, { ...height, pad: [pad_h0, pad_h1] }),
    windows(input![3]!, { ...width, pad: kernel_w === 0 ? [0, 0] : [pad_w0, pad_w1] }),
  ])
}

export function deconvolution({ inputs: [input], params }: RuleCase<Params<'Deconvolution'>>) {
  if (input!.length !== 4) return undefined
  const { kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, num_output } = params
  const { pad_h0, pad_h1, pad_w0, pad_w1, output_pad_h0, output_pad_w0 } = params
  const height = (input![2]! - 1) * stride_h + dilation_h * (kernel_h - 1) + 1 - pad_h0 - pad_h1
  const width = (input![3]! - 1) * stride_w + dilation_w * (kernel_w - 1) + 1 - pad_w0 - pad_w1
  return one([input![0]!, num_output, height + output_pad_h0, width + output_pad_w0])
}

/** The bit of `caffe_flavor` that makes an average count the padding. */
export const COUNT_PADDING = 16

/** Whether a Pooling takes the whole plane: by its flag, or because kernel and plane are equal and nothing is padded. */
export function isGlobalPooling(params: Params<'Pooling'>, [, , height, width]: Shape): boolean {
  const { kernel_h, kernel_w, global, pad_h0, pad_h1, pad_w0, pad_w1 } = params
  const isUnpadded = [pad_h0, pad_h1, pad_w0, pad_w1].every((pad) => pad === 0)
  return global !== 0 || (kernel_h === height && kernel_w === width && isUnpadded)
}

/**
 * Windows of a Pooling along one axis. Only the pad before counts; `flavor` 1 rounds up, and drops a window that would
 * start in the padding behind; 2 counts the pad once.
 */
export function pooledExtent(
  extent: number,
  kernel: number,
  stride: number,
  pad: number,
  flavor: number,
): number {
  if (stride < 1) return 0
  if (pad < 0) return divide(extent - 1, stride) + 1
  if (flavor === 2) return divide(extent - kernel + pad, stride) + 1
  if (flavor !== 1) return divide(extent - kernel + 2 * pad, stride) + 1
  const count = 2 + divide(extent - kernel + 2 * pad - 1, stride)
  return pad > 0 && (count - 1) * stride >= extent + pad ? count - 1 : count
}

export function pooling({ inputs: [input], params }: RuleCase<Params<'Pooling'>>) {
  if (input!.length !== 4) return undefined
  const { kernel_h, kernel_w, stride_h, stride_w, caffe_flavor, pad_h0, pad_w0 } = params
  const [batch, channels, height, width] = input as readonly [number, number, number, number]
  if (isGlobalPooling(params, input!)) return one([batch, channels, 1, 1])
  if (kernel_h > height + 2 * Math.max(pad_h0, 0) || kernel_w > width + 2 * Math.max(pad_w0, 0))
    return undefined
  return one([
    batch,
    channels,
    pooledExtent(height, kernel_h, stride_h, pad_h0, caffe_flavor),
    pooledExtent(width, kernel_w, stride_w, pad_w0, caffe_flavor),
  ])
}

/** Extents are products of an integer and a float32 in float32, without their fraction. */
const scaled = (extent: number, scale: number): number => Math.trunc(Math.fround(extent * scale))

/** An image of another height and width. */
function resized(input: Shape, height: number, width: number): readonly Shape[] | undefined {
  return input.length === 4 ? [[input[0]!, input[1]!, height, width]] : undefined
}

export function upsample({ inputs: [input], params: { scale } }: RuleCase<Params<'Upsample'>>) {
  return resized(input!, scaled(input![2]!, scale), scaled(input![3]!, scale))
}

/** Scales win over an output size, which files with scales leave at 1. */
export function interp({ inputs: [input], params }: RuleCase<Params<'Interp'>>) {
  const { height_scale, width_scale, output_height, output_width } = params
  if (height_scale === 0 || width_scale === 0) return resized(input!, output_height, output_width)
  return resized(input!, scaled(input![2]!, height_scale), scaled(input![3]!, width_scale))
}

/** The loader takes `scale_x` for the height. */
export function resize({ inputs: [input], params }: RuleCase<Params<'Resize'>>) {
  return resized(input!, scaled(input![2]!, params.scale_x), scaled(input![3]!, params.scale_y))
}

/** Shapes follow the second input, except for the crop of mxnet with one argument. */
export function crop({ inputs: [input, like], params }: RuleCase<Params<'Crop'>>) {
  const { flag, num_args, crop_h, crop_w } = params
  const shape = like ?? (flag === 1 && num_args === 1 ? input : undefined)
  if (input!.length !== 4 || shape?.length !== 4) return undefined
  if (flag !== 1) return flag === 0 ? one(shape) : undefined
  if (num_args === 1) return resized(shape, crop_h, crop_w)
  return num_args === 2 ? one(shape) : undefined
}

export function depthToSpace({ inputs: [input], params: { block_size } }: RuleCase<Params<'DepthToSpace'>>) {
  if (input!.length !== 4) return undefined
  const [batch, channels, height, width] = input as readonly [number, number, number, number]
  return one([batch, divide(channels, block_size ** 2), height * block_size, width * block_size])
}

/** The loader leaves the block size at 0, so the shape stays as the file has it. */
export const spaceToDepth: ShapeRule = ({ inputs: [input] }) => one(input)

export function pad({ inputs: [input], params }: RuleCase<Params<'Pad'>>) {
  const { pad_n_0, pad_n_1, pad_c_0, pad_c_1, pad_h_0, pad_h_1, pad_w_0, pad_w_1 } = params
  const pads = [pad_n_0 + pad_n_1, pad_c_0 + pad_c_1, pad_h_0 + pad_h_1, pad_w_0 + pad_w_1]
  const all = [pad_n_0, pad_n_1, pad_c_0, pad_c_1, pad_h_0, pad_h_1, pad_w_0, pad_w_1]
  if (input!.length > 4 || all.includes(-1)) return undefined
  return one(input!.map((extent, axis) => extent + pads[axis]!))
}

export function priorBox({ inputs: [input], params }: RuleCase<Params<'PriorBox'>>) {
  const { min_size, max_size, aspect_ratio, flip } = params
  if (!min_size || !aspect_ratio || input!.length !== 4) return undefined
  const maxima = max_size?.length ?? 0
  if (maxima > 0 && maxima !== min_size.length) return undefined
  const ratios = aspect_ratio.length * (flip === 0 ? 1 : 2)
  const priors = (ratios + 1 + Math.min(maxima, 1)) * min_size.length
  return one([input![0]!, 2, countOf(input!.slice(2)) * priors * 4, 1])
}
