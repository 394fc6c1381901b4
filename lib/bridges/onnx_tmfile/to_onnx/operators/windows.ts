/** Convolutions and pooling. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import { COUNT_PADDING, isGlobalPooling } from '../../../../models/tmfile/index.js'
import { positions } from '../../to_tmfile/engine_limits.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { type Attributes, int, ints } from '../onnx_writer.js'

/** The engine takes 0 for 1. */
function orOne(value: number): number {
  if (value < 0) refuse(`a stride, dilation or group of ${value}`)
  return value === 0 ? 1 : value
}

type Pair = readonly [number, number]

/** Pads that keep the extent divided by the stride; -1 puts the odd one behind, -2 in front. Dilation does not count. */
function samePads(mark: number, extent: number, stride: number, kernel: number): Pair {
  const total = Math.max(0, Math.trunc((extent - 1) / stride) * stride + kernel - extent)
  const small = Math.floor(total / 2)
  return mark === -1 ? [small, total - small] : [total - small, small]
}

const ACTIVATION = { relu: 0, clamp: 1, relu6: 6 } as const

/** A linear operator, and the activation that is fused into it. */
function finishActivated(
  s: NodeScope<'Convolution'> | NodeScope<'Deconvolution'>,
  opType: string,
  inputs: readonly string[],
  attributes: Attributes,
) {
  const { activation } = s.params
  if (activation < 0) return s.finish(opType, inputs, attributes)
  const linear = s.addLinear(opType, inputs, attributes)
  const suffix = '__activation'
  // The engine's Deconvolution applies every activation as ReLU.
  if (activation === ACTIVATION.relu || opType === 'ConvTranspose')
    return s.finish('Relu', [linear], {}, { suffix })
  if (activation === ACTIVATION.relu6) {
    return s.finish('Clip', [linear, s.scalar(0), s.scalar(6)], {}, { suffix })
  }
  if (activation !== ACTIVATION.clamp) refuse(`activation ${activation} is unknown`)
  s.note(
    'activation 1 clamps to [-1, 1] or [0, 6], depending on the kernel of the engine; [-1, 1] is written',
  )
  s.finish('Clip', [linear, s.scalar(-1), s.scalar(1)], {}, { suffix })
}

function convolution(s: NodeScope<'Convolution'>) {
  const { params } = s
  const [input, weight] = [s.shape(0), s.shape(1)]
  if (weight.length !== 4) refuse(`its weights have the shape [${weight}]; they must have 4 axes`)
  const [kernelHeight, kernelWidth] = [weight[2]!, weight[3]!]
  const [strideHeight, strideWidth] = [orOne(params.stride_h), orOne(params.stride_w)]
  const height: Pair =
    params.pad_h0 < 0
      ? samePads(params.pad_h0, input[2]!, strideHeight, kernelHeight)
      : [params.pad_h0, params.pad_h1]
  const width: Pair =
    params.pad_w0 < 0
      ? samePads(params.pad_w0, input[3]!, strideWidth, kernelWidth)
      : [params.pad_w0, params.pad_w1]
  const bias = s.bias(2)
  finishActivated(s, 'Conv', [s.input(0), s.input(1), ...(bias === undefined ? [] : [bias])], {
    kernel_shape: ints([kernelHeight, kernelWidth]),
    strides: ints([strideHeight, strideWidth]),
    dilations: ints([orOne(params.dilation_h), orOne(params.dilation_w)]),
    group: int(orOne(params.group)),
    pads: ints([height[0], width[0], height[1], width[1]]),
  })
}

/** The numbers of the weights have the order of ONNX, whatever their stored shape. */
function deconvolution(s: NodeScope<'Deconvolution'>) {
  const { params } = s
  const group = orOne(params.group)
  const weight = [s.shape(0)[1]!, params.num_output / group, params.kernel_h, params.kernel_w]
  const [stored, needed] = [s.shape(1), weight].map(countOf)
  if (stored !== needed) refuse(`its weights have the shape [${s.shape(1)}]; [${weight}] is needed`)
  const bias = s.bias(2)
  finishActivated(
    s,
    'ConvTranspose',
    [s.input(0), s.inputAs(1, weight), ...(bias === undefined ? [] : [bias])],
    {
      kernel_shape: ints([params.kernel_h, params.kernel_w]),
      strides: ints([orOne(params.stride_h), orOne(params.stride_w)]),
      dilations: ints([orOne(params.dilation_h), orOne(params.dilation_w)]),
      group: int(group),
      pads: ints([params.pad_h0, params.pad_w0, params.pad_h1, params.pad_w1]),
      output_padding: ints([params.output_pad_h0, params.output_pad_w0]),
    },
  )
}

/** Windows of a Pooling along one axis. */
interface PoolingAxis {
  readonly kernel: number
  readonly stride: number
  readonly extent: number
  readonly windows: number
  /** Before and after; the one after is what the last window needs. */
  readonly pads: Pair
}

function poolingAxis(
  { kernel, stride, extent, windows }: Omit<PoolingAxis, 'pads'>,
  pad: number,
  flavor: number,
): PoolingAxis {
  const total = (windows - 1) * stride + kernel - extent
  const before = pad < 0 ? Math.floor(Math.max(0, total) / 2) : flavor === 2 ? Math.floor(pad / 2) : pad
  return { kernel, stride, extent, windows, pads: [before, Math.max(0, total - before)] }
}

/**
 * Kernel divided by the part of it that the engine counts: image and padding in front, and as much behind. ONNX counts the
 * whole kernel.
 */
function divisorCorrection({
  kernel,
  stride,
  extent,
  windows,
  pads: [before],
}: PoolingAxis): readonly number[] {
  return positions(windows, (window) => {
    const start = window * stride - before
    return kernel / (Math.min(start + kernel, extent + before) - start)
  })
}

function pooling(s: NodeScope<'Pooling'>) {
  const { params } = s
  if (params.alg > 1) refuse(`alg ${params.alg} is unknown`)
  const isAverage = params.alg === 1
  const opType = isAverage ? 'AveragePool' : 'MaxPool'
  const input = s.shape(0)
  if (isGlobalPooling(params, input)) return s.finish(`Global${opType}`, [s.input(0)])
  const { kernel_h, kernel_w, stride_h, stride_w, pad_h0, pad_w0, caffe_flavor } = params
  const [, , rows, columns] = s.outputShapes[0]!
  const axes = [
    poolingAxis(
      { kernel: kernel_h, stride: stride_h, extent: input[2]!, windows: rows! },
      pad_h0,
      caffe_flavor,
    ),
    poolingAxis(
      { kernel: kernel_w, stride: stride_w, extent: input[3]!, windows: columns! },
      pad_w0,
      caffe_flavor,
    ),
  ] as const
  const [height, width] = axes
  const countsPadding = isAverage && caffe_flavor !== 0
  const attributes = {
    kernel_shape: ints([kernel_h, kernel_w]),
    strides: ints([stride_h, stride_w]),
    pads: ints([height.pads[0], width.pads[0], height.pads[1], width.pads[1]]),
    ...(countsPadding && { count_include_pad: int(1) }),
  }
  const [down, across] = axes.map(divisorCorrection)
  if (
    !countsPadding ||
    caffe_flavor === COUNT_PADDING ||
    [...down!, ...across!].every((factor) => factor === 1)
  ) {
    return s.finish(opType, [s.input(0)], attributes)
  }
  const factors = down!.flatMap((one) => across!.map((other) => one * other))
  const correction = s.numbers(factors, 'float32', [1, 1, rows!, columns!])
  s.finish('Mul', [s.add(opType, [s.input(0)], attributes), correction])
}

export const WINDOW_ROWS: readonly OperatorRow[] = [
  row('Convolution', 'Conv, Relu, Clip', convolution, 'a fused activation is a node of its own'),
  row('Deconvolution', 'ConvTranspose, Relu', deconvolution),
  row(
    'Pooling',
    'MaxPool, AveragePool, Global…Pool, Mul',
    pooling,
    'explicit pads; Mul where the engine divides by clipped windows',
  ),
]
