/** Normalizations. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { Constant } from '../constant.js'
import { eltwise } from '../eltwise.js'
import { fuseAffine } from '../fusion.js'
import { refuse } from '../refusal.js'
import { within } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

/** [N, C, 1, rest] for more than four axes. */
function upToFour(shape: readonly number[]): readonly number[] {
  return shape.length <= 4 ? shape : [shape[0]!, shape[1]!, 1, countOf(shape.slice(2))]
}

function batchNormalization(step: Step): TmfileTensor {
  const { b } = step
  if (step.opset >= 14 && step.number('training_mode', 0) !== 0) refuse('training_mode is 1')
  if (step.opset < 7 && step.view.attribute('is_test') && step.number('is_test', 0) === 0)
    refuse('is_test is 0')
  if (step.opset < 9 && step.number('spatial', 1) !== 1) refuse('spatial is 0')
  if ([1, 2, 3, 4].some((output) => step.isUsed(output))) refuse('the statistics are used as outputs')
  const names = ['scale', 'bias', 'mean', 'variance']
  const [scale, shift, mean, variance] = names.map((name, at) => step.required(at + 1, `the ${name}`)) as [
    Constant,
    Constant,
    Constant,
    Constant,
  ]
  const eps = step.number('epsilon', 1e-5)
  const x = step.tensor(0)
  const factors = Float64Array.from(
    scale.numbers,
    (value, at) => value / Math.sqrt(variance.numbers[at]! + eps),
  )
  const shifts = Float64Array.from(shift.numbers, (value, at) => value - mean.numbers[at]! * factors[at]!)
  const fused = fuseAffine(step, x, { scale: factors, shift: shifts })
  if (fused) return fused
  const parameters = [scale, shift, mean, variance]
  const params = { rescale_factor: 1, eps, caffe_flavor: 0 }
  const shape = x.shape!.length === 3 ? [x.shape![0]!, x.shape![1]!, 1, x.shape![2]!] : upToFour(x.shape!)
  return within(b, x, shape, (inner) => b.emit('BatchNormalization', [inner, ...parameters], params, shape))
}

function instanceNormalization(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const shape = x.shape!
  const four = shape.length === 4 ? shape : [shape[0]!, shape[1]!, 1, countOf(shape.slice(2))]
  const parameters = [step.required(1, 'the scale'), step.required(2, 'the bias')]
  const eps = step.number('epsilon', 1e-5)
  return within(b, x, four, (inner) => b.emit('InstanceNorm', [inner, ...parameters], { eps }, four))
}

function layerNormalization(step: Step): TmfileTensor {
  const { b } = step
  if (step.isUsed(1) || step.isUsed(2)) refuse('mean or deviation is used as an output')
  const x = step.tensor(0)
  const shape = x.shape!
  const axis = step.axis('axis', -1, shape.length)
  const rows = [countOf(shape.slice(0, axis)), countOf(shape.slice(axis))]
  const [, length] = rows as [number, number]
  const flat = (constant: Constant): Constant =>
    constant.size === length
      ? constant.reshaped([length])
      : constant.expanded(shape.slice(axis)).reshaped([length])
  const zeros = Constant.filled([length], 0)
  const parameters = [
    flat(step.required(1, 'the scale')),
    step.has(2) ? flat(step.required(2, 'the bias')) : zeros,
  ]
  const eps = step.number('epsilon', 1e-5)
  return within(b, x, rows, (inner) => b.emit('LayerNorm', [inner, ...parameters], { eps }, rows))
}

function lrn(step: Step): TmfileTensor {
  const { b } = step
  const x = step.tensor(0)
  const size = step.number('size', 0)
  if (size % 2 === 0) refuse(`size ${size}; the engine takes an odd one`)
  const [alpha, beta, bias] = [step.number('alpha', 1e-4), step.number('beta', 0.75), step.number('bias', 1)]
  const params = { local_size: size, alpha: alpha / bias, beta, norm_region: 0, k: 0 }
  const shape = x.shape!.length === 4 ? x.shape! : [x.shape![0]!, x.shape![1]!, 1, countOf(x.shape!.slice(2))]
  return within(b, x, shape, (inner) => {
    const made = b.emit('LRN', [inner], params, shape)
    return bias === 1
      ? made
      : eltwise(b, 'prod', made, Constant.ofNumbers('', 'float32', [1], [bias ** -beta]))
  })
}

export const NORMALIZATION_ROWS: readonly OperatorRow[] = [
  {
    operator: 'BatchNormalization',
    target: 'BatchNormalization',
    note: 'goes into the weights of a Convolution, Deconvolution or FullyConnected before it that has no other reader',
    convert: batchNormalization,
  },
  { operator: 'InstanceNormalization', target: 'InstanceNorm', convert: instanceNormalization },
  {
    operator: 'LayerNormalization',
    target: 'LayerNorm',
    note: 'over the axes from `axis` on, by Reshape; constant parameters',
    convert: layerNormalization,
  },
  { operator: 'LRN', target: 'LRN', note: 'odd size; a bias other than 1 by Eltwise', convert: lrn },
]
