/** Shapes of convolutions and pools, which move a window over the spatial axes. */
import {
  asExtent,
  type Dim,
  type Dims,
  extent,
  isKnown,
  merged,
  productOf,
  quotientOf,
} from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

/** The window of one spatial axis. */
interface Window {
  readonly kernel: number
  readonly stride: number
  readonly dilation: number
  /** Padding at the start. */
  readonly before: number
  /** Padding at both ends together. */
  readonly padding: number
}

/** @param weights - index of the input with the weights */
export function convolution(node: NodeView, weights = 1): Dims | undefined {
  const [input, weight] = [node.dims(0), node.dims(weights)]
  if (!input || weight?.length !== input.length || input.length < 3) return undefined
  const windows = windowsOf(node, weight.slice(2))
  return [input[0]!, weight[0]!, ...input.slice(2).map((dim, axis) => moved(node, dim, windows?.[axis]))]
}

export function pooling(node: NodeView): Dims | undefined {
  const input = node.dims(0)
  const kernels = node.ints('kernel_shape')
  if (!input || input.length < 3 || kernels?.length !== input.length - 2) return undefined
  const windows = windowsOf(node, [])
  return [input[0]!, input[1]!, ...input.slice(2).map((dim, axis) => moved(node, dim, windows?.[axis]))]
}

export function transposedConvolution(node: NodeView): Dims | undefined {
  const [input, weight] = [node.dims(0), node.dims(1)]
  if (!input || weight?.length !== input.length || input.length < 3) return undefined
  const windows = windowsOf(node, weight.slice(2))
  const [given, outer] = [node.ints('output_shape'), node.ints('output_padding')]
  const spatial = input.slice(2).map((dim, axis): Dim => {
    if (given) return given.length === input.length - 2 ? extent(given[axis]!) : null
    const window = windows?.[axis]
    return window ? spread(node, dim, window, outer?.[axis] ?? 0) : null
  })
  return [input[0]!, productOf(weight[1]!, node.int('group', 1)), ...spatial]
}

/** The extent of a transposed convolution. */
function spread(node: NodeView, dim: Dim, window: Window, outer: number): Dim {
  const { kernel, stride, dilation, padding } = window
  const automatic = node.text('auto_pad') ?? 'NOTSET'
  if (automatic.startsWith('SAME')) return isKnown(dim) ? extent(dim * stride) : null
  if (!isKnown(dim)) return null
  const pads = automatic === 'VALID' ? 0 : padding
  return extent(stride * (dim - 1) + outer + (kernel - 1) * dilation + 1 - pads)
}

/** One window per spatial axis; undefined where an extent of the kernel is not known. */
function windowsOf(node: NodeView, weight: Dims): readonly (Window | undefined)[] | undefined {
  const kernels = node.ints('kernel_shape') ?? weight
  const [strides, dilations, pads] = ['strides', 'dilations', 'pads'].map((name) => node.ints(name))
  return kernels.map((kernel, axis) => {
    const [before, after] = [pads?.[axis] ?? 0, pads?.[axis + kernels.length] ?? 0]
    const [stride, dilation] = [strides?.[axis] ?? 1, dilations?.[axis] ?? 1]
    if (!isKnown(kernel) || kernel < 1 || stride < 1 || dilation < 1) return undefined
    return { kernel, stride, dilation, before, padding: before + after }
  })
}

function moved(node: NodeView, dim: Dim, window: Window | undefined): Dim {
  if (!window || dim === null) return null
  const { kernel, stride, dilation, padding, before } = window
  const reach = (kernel - 1) * dilation + 1
  const automatic = node.text('auto_pad') ?? 'NOTSET'
  if (automatic.startsWith('SAME'))
    return isKnown(dim) ? extent(Math.ceil(dim / stride) || Number.NaN) : quotientOf(dim, stride)
  const pads = automatic === 'VALID' ? 0 : padding
  // A window that fits everywhere keeps an extent of any size.
  if (!isKnown(dim)) return stride === 1 && pads === reach - 1 ? dim : null
  const room = dim + pads - reach
  if (room < 0) return null
  const mode = node.int('ceil_mode', 0)
  if (mode === 0) return extent(Math.floor(room / stride) + 1)
  if (mode !== 1) return null
  const steps = Math.ceil(room / stride)
  // Since version 22 a last window that would start in the padding behind the input is left out.
  const isOutside = steps * stride >= dim + (automatic === 'VALID' ? 0 : before)
  if (!isOutside) return extent(steps + 1)
  if (node.opset >= 22) return extent(steps)
  return node.opType === 'MaxPool' || node.opset < 18 ? extent(steps + 1) : null
}

/** Regions of an image, each of one size. */
export function regions(node: NodeView): Dims | undefined {
  const [input, rois] = [node.dims(0), node.dims(1)]
  if (input?.length !== 4 || rois?.length !== 2) return undefined
  const sizes =
    node.opType === 'MaxRoiPool'
      ? node.ints('pooled_shape')
      : [node.int('output_height', 1), node.int('output_width', 1)]
  const count = node.opType === 'RoiAlign' ? merged(rois[0]!, node.dims(2)?.[0] ?? null) : rois[0]!
  return sizes?.length === 2 ? [count ?? null, input[1]!, ...sizes.map(extent)] : undefined
}

/** The sizes of a pool that is undone. */
export function unpooling(node: NodeView): Dims | undefined {
  const input = node.dims(0)
  if (!input || input.length < 3) return undefined
  if (node.has(2)) return node.values(2)?.map(asExtent)
  const windows = windowsOf(node, [])
  if (windows?.length !== input.length - 2) return undefined
  const spatial = input.slice(2).map((dim, axis): Dim => {
    const window = windows[axis]
    if (!isKnown(dim) || !window) return null
    return extent(window.stride * (dim - 1) + window.kernel - window.padding)
  })
  return [input[0]!, node.dims(1)?.[1] ?? null, ...spatial]
}

/** Samples of an image at the points of a grid. */
export function gridSample(node: NodeView): Dims | undefined {
  const [input, grid] = [node.dims(0), node.dims(1)]
  if (!input || grid?.length !== input.length || input.length < 3) return undefined
  return [merged(input[0]!, grid[0]!) ?? null, input[1]!, ...grid.slice(1, -1)]
}
