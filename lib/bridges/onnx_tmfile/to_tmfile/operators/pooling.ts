/** Pools over windows and over whole planes. */
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { Constant } from '../constant.js'
import { eltwise } from '../eltwise.js'
import { positions } from '../engine_limits.js'
import { refuse } from '../refusal.js'
import { padConstant, reshape } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'
import { type AxisWindow, imageShape, planeWindows, windowsOf } from '../window.js'

const MAX = 0
const AVERAGE = 1

/** Values of `caffe_flavor`. */
const FLOOR = 0
const CEIL = 1
const FLOOR_COUNTING_PADS = 16

/** Stands for no element at the border of a maximum. */
const LOWEST = -3.4e38

/** The extent that the engine computes; it knows the padding at the start alone. */
export function engineExtent(flavor: number, input: number, { kernel, stride, begin }: AxisWindow): number {
  const room = input - kernel + 2 * begin
  if (flavor !== CEIL) return Math.trunc(room / stride) + 1
  const extent = 2 + Math.trunc((room - 1) / stride)
  return begin > 0 && (extent - 1) * stride >= input + begin ? extent - 1 : extent
}

interface Pool {
  readonly algorithm: typeof MAX | typeof AVERAGE
  readonly windows: readonly [AxisWindow, AxisWindow]
  /** Spatial extents of input and output. */
  readonly input: readonly number[]
  readonly output: readonly number[]
  readonly countsPads: boolean
}

/** Whether the engine computes the extents of ONNX. */
function fits({ windows, input, output }: Pool, flavor: number): boolean {
  return windows.every((window, axis) => engineExtent(flavor, input[axis]!, window) === output[axis])
}

const hasPads = ({ windows }: Pool): boolean => windows.some(({ begin, end }) => begin > 0 || end > 0)
const isSymmetric = ({ windows }: Pool): boolean => windows.every(({ begin, end }) => begin === end)
/** Whether no window reaches beyond the padding, as one of `ceil_mode` may. */
const isInside = ({ windows, input, output }: Pool): boolean =>
  windows.every(
    ({ kernel, stride, begin, end }, axis) =>
      (output[axis]! - 1) * stride + kernel <= begin + input[axis]! + end,
  )

/** The flavor that gives the numbers of ONNX; undefined where padding in front is needed, or nothing helps. */
function flavorOf(pool: Pool): number | undefined {
  if (pool.algorithm === MAX) return [FLOOR, CEIL].find((flavor) => fits(pool, flavor))
  if (!hasPads(pool)) return [FLOOR, CEIL].find((flavor) => fits(pool, flavor))
  // Without pads in the divisor windows are clipped to the image, wherever they end.
  if (!pool.countsPads) return fits(pool, FLOOR) ? FLOOR : undefined
  return isSymmetric(pool) && isInside(pool) && fits(pool, FLOOR) ? FLOOR_COUNTING_PADS : undefined
}

/** The pool of a tensor that has its padding as elements. */
function unpadded(pool: Pool): Pool {
  const { windows, input } = pool
  return {
    ...pool,
    windows: windows.map((window) => ({ ...window, begin: 0, end: 0 })) as unknown as Pool['windows'],
    input: input.map((extent, axis) => extent + windows[axis]!.begin + windows[axis]!.end),
  }
}

function emit(
  step: Step,
  x: TmfileTensor,
  { algorithm, windows: [h, w], output }: Pool,
  flavor: number,
): TmfileTensor {
  const params = {
    ...{
      alg: algorithm,
      kernel_h: h.kernel,
      kernel_w: w.kernel,
      stride_h: h.stride,
      stride_w: w.stride,
      global: 0,
    },
    ...{ caffe_flavor: flavor, pad_h0: h.begin, pad_w0: w.begin, pad_h1: h.end, pad_w1: w.end },
  }
  return step.b.emit('Pooling', [x], params, [...x.shape!.slice(0, 2), ...output])
}

function pool(step: Step): TmfileTensor {
  const algorithm = step.view.opType === 'MaxPool' ? MAX : AVERAGE
  if (step.isUsed(1)) refuse('the output Indices is used')
  const shape = step.shape(0)
  const kernels = step.numbers('kernel_shape') ?? refuse('kernel_shape is missing')
  const all = windowsOf(step, kernels, shape.slice(2))
  if (all.some(({ dilation }) => dilation !== 1)) refuse('dilations; the engine has none')
  const windows = planeWindows(all)
  const image = imageShape(shape)
  const input = image.slice(2)
  const isCeil = step.number('ceil_mode', 0) !== 0
  const output = windows.map((window, axis) => extentOf(window, input[axis]!, isCeil))
  const asked: Pool = {
    algorithm,
    windows,
    input,
    output,
    countsPads: step.number('count_include_pad', 0) !== 0,
  }
  const x = reshape(step.b, step.tensor(0), image)
  const flavor = flavorOf(asked)
  const made = flavor === undefined ? poolPadded(step, x, asked) : emit(step, x, asked, flavor)
  return reshape(step.b, made, shape.length === 4 ? made.shape! : made.shape!.toSpliced(2, 1))
}

/** The extent that onnxruntime computes: no window starts in the padding at the end, whatever the version. */
function extentOf({ kernel, stride, begin, end }: AxisWindow, input: number, isCeil: boolean): number {
  const room = input + begin + end - kernel
  if (!isCeil) return Math.floor(room / stride) + 1
  const steps = Math.ceil(room / stride)
  return steps * stride >= input + begin ? steps : steps + 1
}

/** Makes the padding elements of the input. */
function poolPadded(step: Step, x: TmfileTensor, asked: Pool): TmfileTensor {
  if (asked.algorithm === AVERAGE && !asked.countsPads) return averageInside(step, x, asked)
  if (asked.algorithm === AVERAGE && !isInside(asked)) refuse('ceil_mode with pads that count')
  return poolOfElements(step, x, asked, asked.algorithm === MAX ? LOWEST : 0)
}

function poolOfElements(step: Step, x: TmfileTensor, asked: Pool, value: number): TmfileTensor {
  const inner = unpadded(asked)
  const flavor = [FLOOR, CEIL].find((each) => fits(inner, each))
  if (flavor === undefined) refuse('an output extent that the engine does not compute')
  const [h, w] = asked.windows
  const padding = { before: [0, 0, h.begin, w.begin], after: [0, 0, h.end, w.end] }
  return emit(step, padConstant(step.b, x, padding, value), inner, flavor)
}

/** An average of the elements inside the image: one over zeros, times the share of each window that is inside. */
function averageInside(step: Step, x: TmfileTensor, asked: Pool): TmfileTensor {
  const { input, output } = asked
  const windows = asked.windows.map((window, axis) => {
    const needed = (output[axis]! - 1) * window.stride + window.kernel - input[axis]! - window.begin
    return { ...window, end: Math.max(0, needed) }
  }) as unknown as Pool['windows']
  const average = poolOfElements(step, x, { ...asked, windows }, 0)
  const factors = windows.map(({ kernel, stride, begin }, axis) =>
    positions(output[axis]!, (at) => {
      const start = at * stride - begin
      return kernel / (Math.min(start + kernel, input[axis]!) - Math.max(start, 0))
    }),
  ) as [number[], number[]]
  const read = (): Float32Array =>
    Float32Array.from(factors[0].flatMap((row) => factors[1].map((column) => row * column)))
  const shares = new Constant({ name: '', dtype: 'float32', shape: [1, 1, ...output], read })
  return eltwise(step.b, 'prod', average, shares)
}

/** A pool over all spatial axes. */
export function globalPool(step: Step, algorithm: 'max' | 'average', x: TmfileTensor): TmfileTensor {
  const shape = x.shape!
  const image =
    shape.length === 4
      ? shape
      : [shape[0]!, shape[1]!, 1, shape.slice(2).reduce((one, other) => one * other, 1)]
  const [kernel_h, kernel_w] = [image[2]!, image[3]!]
  const params = {
    alg: algorithm === 'max' ? MAX : AVERAGE,
    global: 1,
    kernel_h,
    kernel_w,
    stride_h: 1,
    stride_w: 1,
  }
  return step.b.emit('Pooling', [reshape(step.b, x, image)], params, [shape[0]!, shape[1]!, 1, 1])
}

const overAll = (operator: string, algorithm: 'max' | 'average'): OperatorRow => ({
  operator,
  target: 'Pooling',
  note: 'global 1',
  convert: (step) => reshape(step.b, globalPool(step, algorithm, step.tensor(0)), step.output()),
})

export const POOLING_ROWS: readonly OperatorRow[] = [
  {
    operator: 'MaxPool',
    target: 'Pooling',
    note: 'one or two spatial axes, no dilations, no indices; pads that the engine cannot express become elements',
    convert: pool,
  },
  {
    operator: 'AveragePool',
    target: 'Pooling',
    note: 'as MaxPool; where the engine counts another divisor, an average over zeros and an Eltwise',
    convert: pool,
  },
  overAll('GlobalAveragePool', 'average'),
  overAll('GlobalMaxPool', 'max'),
]
