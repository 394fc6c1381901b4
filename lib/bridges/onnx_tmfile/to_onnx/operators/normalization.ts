/** Normalizations, softmax, and scaling per channel. */

import type { Shape } from '../../../../models/onnx/evaluate/arrays.js'
import type { OperatorName } from '../../../../models/tmfile/index.js'
import { axisOf } from '../../../../models/tmfile/index.js'
import { positions } from '../../to_tmfile/engine_limits.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'
import { float, int, ints } from '../onnx_writer.js'

/** One number per channel, in a shape that broadcasts over images. */
function perChannel<Name extends OperatorName>(s: NodeScope<Name>, index: number): string {
  const channels = s.shape(0)[1] ?? refuse(`its input has the shape [${s.shape(0)}]`)
  return s.inputAs(index, [
    channels,
    ...s
      .shape(0)
      .slice(2)
      .map(() => 1),
  ])
}

/** In Caffe's flavor scale and offset do not apply. Mean and variance are sums of so many batches. */
function batchNormalization(s: NodeScope<'BatchNormalization'>) {
  const { rescale_factor, eps, caffe_flavor } = s.params
  const channels = s.shape(0)[1] ?? refuse(`its input has the shape [${s.shape(0)}]`)
  const factor = rescale_factor === 0 ? 0 : 1 / rescale_factor
  const same = (value: number) =>
    s.numbers(
      positions(channels, () => value),
      'float32',
    )
  const affine = caffe_flavor === 0 ? [s.input(1), s.input(2)] : [same(1), same(0)]
  const statistics = [s.scaledInput(3, factor), s.scaledInput(4, factor)]
  s.finish('BatchNormalization', [s.input(0), ...affine, ...statistics], { epsilon: float(eps) })
}

function scale(s: NodeScope<'Scale'>) {
  const factors = perChannel(s, 1)
  if (s.tensors.length < 3) return s.finish('Mul', [s.input(0), factors])
  s.finish('Add', [s.add('Mul', [s.input(0), factors]), perChannel(s, 2)])
}

/** The kernel adds k to each square, so that it differs from ONNX's bias, which is 1 here. */
function lrn(s: NodeScope<'LRN'>) {
  const { local_size, alpha, beta, norm_region, k } = s.params
  if (norm_region !== 0) refuse('norm_region 1 normalizes within a channel')
  if (k === 0) {
    const attributes = { size: int(local_size), alpha: float(alpha), beta: float(beta), bias: float(1) }
    return s.finish('LRN', [s.input(0)], attributes)
  }
  const [batch, channels, height, width] = s.shape(0) as readonly [number, number, number, number]
  const column = [batch, 1, channels, height * width]
  const squares = s.add('Add', [s.add('Mul', [s.input(0), s.input(0)]), s.scalar(k)])
  const half = Math.floor(local_size / 2)
  const means = s.add('AveragePool', [s.reshape(squares, s.shape(0), column)], {
    kernel_shape: ints([local_size, 1]),
    pads: ints([half, 0, local_size - 1 - half, 0]),
    count_include_pad: int(1),
  })
  const sums = s.add('Mul', [s.reshape(means, column, s.shape(0)), s.scalar(alpha)])
  const divisor = s.add('Pow', [s.add('Add', [sums, s.scalar(1)]), s.scalar(-beta)])
  s.finish('Mul', [s.input(0), divisor])
}

function instanceNorm(s: NodeScope<'InstanceNorm'>) {
  s.finish('InstanceNormalization', [s.input(0), s.input(1), s.input(2)], { epsilon: float(s.params.eps) })
}

function mean<Name extends OperatorName>(s: NodeScope<Name>, value: string, axes: Shape): string {
  return s.add('ReduceMean', [value], { axes: ints(axes), keepdims: int(1) })
}

/** Over the last axis. */
function layerNorm(s: NodeScope<'LayerNorm'>) {
  const centred = s.add('Sub', [s.input(0), mean(s, s.input(0), [-1])])
  const variance = mean(s, s.add('Mul', [centred, centred]), [-1])
  const deviation = s.add('Sqrt', [s.add('Add', [variance, s.scalar(s.params.eps)])])
  const scaled = s.add('Mul', [s.add('Div', [centred, deviation]), s.input(1)])
  s.finish('Add', [scaled, s.input(2)])
}

/** Divides by the root of the mean square of the input itself, as the kernel does, not of the centred one. */
function mvn(s: NodeScope<'MVN'>) {
  const { across_channels, normalize_variance, eps } = s.params
  const axes = across_channels === 0 ? [2, 3] : [1, 2, 3]
  const value = s.input(0)
  if (normalize_variance === 0) return s.finish('Sub', [value, mean(s, value, axes)])
  const centred = s.add('Sub', [value, mean(s, value, axes)])
  const squares = mean(s, s.add('Mul', [value, value]), axes)
  s.finish('Div', [centred, s.add('Add', [s.add('Sqrt', [squares]), s.scalar(eps)])])
}

/** Divides by the length of the vector of channels at each position. */
function normalize(s: NodeScope<'Normalize'>) {
  if (s.params.across_spatial !== 0 || s.params.channel_shared !== 0) {
    refuse('the engine computes nothing with across_spatial or channel_shared')
  }
  const length = s.add('ReduceL2', [s.input(0)], { axes: ints([1]), keepdims: int(1) })
  s.finish('Mul', [s.add('Div', [s.input(0), length]), perChannel(s, 1)])
}

function softmax(s: NodeScope<'Softmax'>) {
  const axis = axisOf(s.params.axis, s.shape(0)) ?? refuse(`axis ${s.params.axis} is outside [${s.shape(0)}]`)
  s.finish('Softmax', [s.input(0)], { axis: int(axis) })
}

export const NORMALIZATION_ROWS: readonly OperatorRow[] = [
  row('BatchNormalization', 'BatchNormalization', batchNormalization),
  row('Scale', 'Mul, Add', scale),
  row('Bias', 'Add', (s) => s.finish('Add', [s.input(0), perChannel(s, 1)])),
  row('LRN', 'LRN, or AveragePool, Pow, Mul', lrn, 'written out where k is not 0; across channels only'),
  row('InstanceNorm', 'InstanceNormalization', instanceNorm),
  row('LayerNorm', 'ReduceMean, Sub, Mul, Sqrt, Div, Add', layerNorm, 'over the last axis'),
  row(
    'MVN',
    'ReduceMean, Sub, Mul, Sqrt, Div',
    mvn,
    'divides by the root of the mean square, as the engine does',
  ),
  row('Normalize', 'ReduceL2, Div, Mul', normalize),
  row('Softmax', 'Softmax', softmax),
]
