/** Windows over spatial axes: kernels, strides, dilations and pads of ONNX as numbers for each axis. */
import type { Shape } from '../../../models/onnx/evaluate/arrays.js'
import { refuse } from './refusal.js'
import type { Step } from './step.js'

/** The window of one axis. */
export interface AxisWindow {
  readonly kernel: number
  readonly stride: number
  readonly dilation: number
  /** Padding at the start and at the end. */
  readonly begin: number
  readonly end: number
}

/** A second spatial axis of extent 1, which stands before the one of a 1-D window. */
export const TRIVIAL: AxisWindow = { kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 }

const checked = (
  list: readonly number[] | undefined,
  count: number,
  name: string,
): readonly number[] | undefined =>
  list === undefined || list.length === count
    ? list
    : refuse(`${name} has ${list.length} entries for ${count} axes`)

/** Half of a padding, the larger half at the end (upper) or at the start. */
export function halves(total: number, isUpper: boolean): { readonly begin: number; readonly end: number } {
  const small = Math.floor(total / 2)
  return isUpper ? { begin: small, end: total - small } : { begin: total - small, end: small }
}

/**
 * One window for each spatial axis.
 *
 * @param kernels - extents of the kernel, where the attribute may be missing
 * @param input - extents of the spatial axes
 */
export function windowsOf(step: Step, kernels: Shape, input: Shape): AxisWindow[] {
  const count = input.length
  const strides = checked(step.numbers('strides'), count, 'strides')
  const dilations = checked(step.numbers('dilations'), count, 'dilations')
  const pads = checked(step.numbers('pads'), 2 * count, 'pads')
  const automatic = step.text('auto_pad', 'NOTSET')
  checked(kernels, count, 'kernel_shape')
  return kernels.map((kernel, axis) => {
    const [stride, dilation] = [strides?.[axis] ?? 1, dilations?.[axis] ?? 1]
    if (!(kernel >= 1 && stride >= 1 && dilation >= 1))
      refuse(`a kernel of ${kernel} with stride ${stride} and dilation ${dilation}`)
    const window = { kernel, stride, dilation }
    if (automatic === 'VALID') return { ...window, begin: 0, end: 0 }
    if (automatic === 'NOTSET') {
      const [begin, end] = [pads?.[axis] ?? 0, pads?.[axis + count] ?? 0]
      if (begin < 0 || end < 0) refuse(`negative pads, ${begin} and ${end}`)
      return { ...window, begin, end }
    }
    const steps = Math.ceil(input[axis]! / stride) - 1
    const total = Math.max(0, steps * stride + dilation * (kernel - 1) + 1 - input[axis]!)
    return { ...window, ...halves(total, automatic === 'SAME_UPPER') }
  })
}

/** Two windows, the first of them trivial for one axis. */
export function planeWindows(windows: readonly AxisWindow[]): readonly [AxisWindow, AxisWindow] {
  if (windows.length === 1) return [TRIVIAL, windows[0]!]
  if (windows.length === 2) return [windows[0]!, windows[1]!]
  return refuse(`${windows.length} spatial axes; the engine has two`)
}

/** [N, C, 1, L] for [N, C, L]. */
export function imageShape(shape: Shape): Shape {
  if (shape.length === 4) return shape
  if (shape.length === 3) return [shape[0]!, shape[1]!, 1, shape[2]!]
  return refuse(`rank ${shape.length}; the engine has two spatial axes`)
}
