/** Conv and ConvTranspose. */
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import type { Constant } from '../constant.js'
import { storedWeights } from '../quantized.js'
import { refuse } from '../refusal.js'
import { reshape } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'
import { type AxisWindow, halves, imageShape, planeWindows, windowsOf } from '../window.js'
import { takePadding } from './pad.js'

/** The spatial extents, from 2 on. */
const spatial = (shape: readonly number[]): readonly number[] => shape.slice(2)

function kernelShape(step: Step, weight: Constant): readonly number[] {
  const kernel = spatial(weight.shape)
  const given = step.numbers('kernel_shape')
  if (given && String(given) !== String(kernel))
    refuse(`kernel_shape [${given}] is not that of the weights, [${kernel}]`)
  return kernel
}

function checkChannels(channels: number, expected: number): void {
  if (channels !== expected) refuse(`${channels} channels; the weights are for ${expected}`)
}

const biasOf = (step: Step): Constant | undefined => (step.has(2) ? step.required(2, 'the bias') : undefined)

export function conv(step: Step): TmfileTensor {
  const weight = step.required(1, 'the weight')
  const { tensor: x, padding } = takePadding(step, step.tensor(0), weight.shape.length)
  const windows = windowsOf(step, kernelShape(step, weight), spatial(x.shape!))
  const isAutomatic = step.text('auto_pad', 'NOTSET') !== 'NOTSET' && padding !== undefined
  if (isAutomatic) refuse('auto_pad behind a Pad')
  const [h, w] = planeWindows(
    windows.map((window, axis) => ({
      ...window,
      begin: window.begin + (padding?.before[axis + 2] ?? 0),
      end: window.end + (padding?.after[axis + 2] ?? 0),
    })),
  )
  const [outputs, perGroup] = [weight.shape[0]!, weight.shape[1]!]
  const group = step.number('group', 1)
  checkChannels(x.shape![1]!, perGroup * group)
  const params = {
    ...{ kernel_h: h.kernel, kernel_w: w.kernel, stride_h: h.stride, stride_w: w.stride },
    ...{
      dilation_h: h.dilation,
      dilation_w: w.dilation,
      input_channel: perGroup * group,
      output_channel: outputs,
      group,
    },
    ...{ pad_h0: h.begin, pad_w0: w.begin, pad_h1: h.end, pad_w1: w.end, activation: -1 },
  }
  const stored = storedWeights(step, weight.reshaped(imageShape(weight.shape)), biasOf(step))
  const output = imageShape(step.output())
  const made = step.b.emit(
    'Convolution',
    [reshape(step.b, x, imageShape(x.shape!)), ...stored],
    params,
    output,
  )
  return reshape(step.b, made, step.output())
}

/** Pads of one axis of a transposed convolution; a negative total is padding of the output. */
function transposedPads(
  step: Step,
  window: AxisWindow,
  input: number,
  axis: number,
): { begin: number; end: number; outer: number } {
  const outer = step.numbers('output_padding')?.[axis] ?? 0
  const automatic = step.text('auto_pad', 'NOTSET')
  const given = step.numbers('output_shape')
  const isSame = automatic.startsWith('SAME')
  if (!given && !isSame) {
    const { begin, end } = automatic === 'VALID' ? { begin: 0, end: 0 } : window
    return { begin, end, outer }
  }
  const extents = given && given.length > 2 ? given.slice(-(step.shape(0).length - 2)) : given
  const wanted = extents?.[axis] ?? input * window.stride
  const total = (input - 1) * window.stride + outer + window.dilation * (window.kernel - 1) + 1 - wanted
  const { begin, end } = halves(total, automatic === 'SAME_UPPER')
  if (total >= 0) return { begin, end, outer }
  // A kernel that does not reach the next step: the padding is negative, and the engine adds elements at the end alone.
  if (!given && begin < 0) refuse(`${automatic} with a kernel smaller than the stride`)
  return { begin: 0, end: 0, outer: outer - total }
}

function convTranspose(step: Step): TmfileTensor {
  const weight = step.required(1, 'the weight')
  const x = step.tensor(0)
  const input = spatial(x.shape!)
  const kernels = kernelShape(step, weight)
  const plain = windowsOf(step, kernels, input)
  const padded = plain.map((window, axis) => ({
    ...window,
    ...transposedPads(step, window, input[axis]!, axis),
  }))
  const [h, w] = planeWindows(padded) as readonly [(typeof padded)[number], (typeof padded)[number]]
  if (h.dilation !== w.dilation && padded.length > 1) refuse('unequal dilations, which the kernel exchanges')
  const group = step.number('group', 1)
  const outputs = weight.shape[1]! * group
  checkChannels(x.shape![1]!, weight.shape[0]!)
  const params = {
    ...{
      num_output: outputs,
      kernel_h: h.kernel,
      kernel_w: w.kernel,
      stride_h: h.stride,
      stride_w: w.stride,
    },
    ...{ dilation_h: w.dilation, dilation_w: w.dilation, group, activation: -1 },
    ...{ pad_h0: h.begin, pad_w0: w.begin, pad_h1: h.end, pad_w1: w.end },
    ...{ output_pad_h0: h.outer ?? 0, output_pad_w0: w.outer },
  }
  const stored = storedWeights(step, weight.reshaped(imageShape(weight.shape)), biasOf(step))
  const output = imageShape(step.output())
  const made = step.b.emit(
    'Deconvolution',
    [reshape(step.b, x, imageShape(x.shape!)), ...stored],
    params,
    output,
  )
  return reshape(step.b, made, step.output())
}

export const CONVOLUTION_ROWS: readonly OperatorRow[] = [
  {
    operator: 'Conv',
    target: 'Convolution',
    note: 'one or two spatial axes, constant weights; takes a Pad with zeros before it',
    convert: conv,
  },
  {
    operator: 'ConvTranspose',
    target: 'Deconvolution',
    note: 'one or two spatial axes, constant weights, equal dilations; of kernels smaller than the stride, gaps at the end alone',
    convert: convTranspose,
  },
]
