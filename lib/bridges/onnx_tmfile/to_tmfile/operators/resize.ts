/** Resize and Upsample. */

import { countOf } from '../../../../models/onnx/evaluate/arrays.js'
import type { TmfileTensor } from '../../../../models/tmfile/index.js'
import { positions } from '../engine_limits.js'
import { refuse } from '../refusal.js'
import { gather, repeat, reshape } from '../shaping.js'
import type { OperatorRow, Step } from '../step.js'

/** Values of `resize_type`. */
const NEAREST = 1
const LINEAR = 2
const LINEAR_ALIGNED = 4

interface Sampling {
  readonly mode: string
  readonly coordinates: string
  readonly rounding: string
}

/** One axis: extents before and after, and the factor between their coordinates. */
interface ResizedAxis {
  readonly from: number
  readonly to: number
  readonly scale: number
}

function samplingOf(step: Step): Sampling {
  const isUpsample = step.view.opType === 'Upsample' || step.opset < 11
  const mode = step.text('mode', 'nearest')
  if (isUpsample) return { mode, coordinates: 'asymmetric', rounding: 'floor' }
  return {
    mode,
    coordinates: step.text('coordinate_transformation_mode', 'half_pixel'),
    rounding: step.text('nearest_mode', 'round_prefer_floor'),
  }
}

function axesOf(step: Step): ResizedAxis[] {
  const shape = step.shape(0)
  const output = step.output()
  const given = scalesOf(step)
  const chosen = (step.opset < 18 ? undefined : step.numbers('axes'))?.map((axis) =>
    step.axisOf(axis, shape.length),
  )
  return shape.map((from, axis) => {
    const to = output[axis]!
    const at = chosen ? chosen.indexOf(axis) : axis
    return { from, to, scale: (at < 0 ? undefined : given?.[at]) ?? to / from }
  })
}

/** The factors of the model; undefined where it has sizes. */
function scalesOf(step: Step): readonly number[] | undefined {
  const { opType } = step.view
  if (opType === 'Upsample' && step.opset < 9) return step.numbers('scales')
  const values = step.values(opType === 'Upsample' || step.opset < 11 ? 1 : 2, 'the list of scales')
  return values && values.length > 0 ? values : undefined
}

const COORDINATES: Readonly<Record<string, (at: number, axis: ResizedAxis) => number>> = {
  asymmetric: (at, { scale }) => at / scale,
  half_pixel: (at, { scale }) => (at + 0.5) / scale - 0.5,
  pytorch_half_pixel: (at, { scale, to }) => (to > 1 ? (at + 0.5) / scale - 0.5 : 0),
  align_corners: (at, { from, to }) => (to === 1 ? 0 : (at * (from - 1)) / (to - 1)),
  half_pixel_symmetric: (at, { from, to, scale }) => {
    const center = from / 2
    return center * (1 - to / (scale * from)) + (at + 0.5) / scale - 0.5
  },
  tf_half_pixel_for_nn: (at, { scale }) => (at + 0.5) / scale,
}

const ROUNDINGS: Readonly<Record<string, (value: number) => number>> = {
  floor: Math.floor,
  ceil: Math.ceil,
  round_prefer_floor: (value) => Math.ceil(value - 0.5),
  round_prefer_ceil: (value) => Math.floor(value + 0.5),
}

/** The source element of each element of an axis. */
function nearestIndices({ coordinates, rounding }: Sampling, axis: ResizedAxis): number[] {
  const place = COORDINATES[coordinates] ?? refuse(`coordinate_transformation_mode ${coordinates}`)
  const round = ROUNDINGS[rounding] ?? refuse(`nearest_mode ${rounding}`)
  return positions(axis.to, (at) => {
    const index = round(Math.fround(place(at, axis)))
    return Math.min(Math.max(index, 0), axis.from - 1)
  })
}

function nearest(step: Step, sampling: Sampling, axes: readonly ResizedAxis[]): TmfileTensor {
  const x = step.tensor(0)
  const indices = axes.map((axis) => nearestIndices(sampling, axis))
  const factors = axes.map(({ from, to }) => to / from)
  const isRepeated = indices.every((list, axis) =>
    list.every((index, at) => index === Math.floor(at / factors[axis]!)),
  )
  const isPlane = axes.length === 4 && factors[0] === 1 && factors[1] === 1 && factors.every(Number.isInteger)
  if (isPlane && isRepeated) return interpolate(step, x, NEAREST, axes, factors)
  let made = x
  for (const [axis, list] of indices.entries()) {
    if (list.length !== axes[axis]!.from || list.some((index, at) => index !== at))
      made = gather(step.b, made, axis, list)
  }
  return made
}

function interpolate(
  step: Step,
  x: TmfileTensor,
  type: number,
  axes: readonly ResizedAxis[],
  factors?: readonly number[],
): TmfileTensor {
  const [height, width] = [axes[2]!.to, axes[3]!.to]
  const scales = { height_scale: factors?.[2] ?? 0, width_scale: factors?.[3] ?? 0 }
  const params = { resize_type: type, output_height: height, output_width: width, ...scales }
  // The kernel of bilinear types computes the first image alone.
  const fixesBatch = type !== NEAREST
  return step.b.emit('Interp', [x], params, [x.shape![0]!, x.shape![1]!, height, width], { fixesBatch })
}

function linear(step: Step, { coordinates }: Sampling, axes: readonly ResizedAxis[]): TmfileTensor {
  const { b } = step
  if (axes.length !== 4 || axes[0]!.from !== axes[0]!.to || axes[1]!.from !== axes[1]!.to)
    refuse('linear over other axes than height and width of four')
  const plane = axes.slice(2)
  const isAligned = coordinates === 'align_corners'
  const isHalf =
    coordinates === 'half_pixel' || (coordinates === 'pytorch_half_pixel' && plane.every(({ to }) => to > 1))
  const isSymmetric =
    coordinates === 'half_pixel_symmetric' && plane.every(({ from, to, scale }) => from * scale === to)
  if (!isAligned && !isHalf && !isSymmetric)
    refuse(`linear with coordinate_transformation_mode ${coordinates}`)
  if (isAligned && plane.some(({ to, from }) => to === 1 && from > 1))
    refuse('align_corners with an output extent of 1')
  if (!isAligned && plane.some(({ from, to, scale }) => Math.abs(scale * from - to) > 1e-3))
    refuse('a scale that does not give a whole extent; the engine computes coordinates from the extents')
  let x = step.tensor(0)
  // The kernel reads two rows and columns; of one element all are equal.
  for (const axis of [2, 3]) if (x.shape![axis] === 1) x = repeat(b, x, axis, 2)
  const [n, c, h, w] = x.shape as [number, number, number, number]
  const images = reshape(b, x, [1, n * c, h, w])
  const made = interpolate(step, images, isAligned ? LINEAR_ALIGNED : LINEAR, axes)
  return reshape(b, made, step.output())
}

function resize(step: Step): TmfileTensor {
  if (countOf(step.output()) === 0) refuse('the result is empty')
  const sampling = samplingOf(step)
  if (sampling.coordinates === 'tf_crop_and_resize') refuse('crops')
  if (step.number('antialias', 0) !== 0) refuse('antialias')
  if (step.number('exclude_outside', 0) !== 0) refuse('exclude_outside')
  const axes = axesOf(step)
  if (axes.every(({ from, to, scale }) => from === to && scale === 1)) return step.tensor(0)
  if (sampling.mode === 'nearest') return nearest(step, sampling, axes)
  if (sampling.mode === 'linear' || sampling.mode === 'bilinear') return linear(step, sampling, axes)
  return refuse(`mode ${sampling.mode}`)
}

export const RESIZE_ROWS: readonly OperatorRow[] = ['Resize', 'Upsample'].map((operator) => ({
  operator,
  target: 'Interp',
  note: 'nearest in whole factors, else Gather for each axis; linear with half pixels or aligned corners over height and width',
  convert: resize,
}))
