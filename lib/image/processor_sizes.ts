/** Sizes that image processors make, class by class. `roundEven` and `cut` are Python's `round` and `int`. */
import { roundEven } from '../dtype/round_even.js'
import { padTo } from './options.js'
import type { ProcessorConfig } from './processor_config.js'
import { checkResized, cut, Frame, type Size, shortestAndLongest, shortestEdge, within } from './sizes.js'

/** From this edge on, ConvNext resizes to a square without a crop. */
const CONVNEXT_SQUARE = 384

/** The image after resize and crop. @throws TileworkError ERR_ARGUMENT, ERR_LIMIT */
export function frameOf(
  config: ProcessorConfig,
  name: string,
  from: Size & { readonly pixelBytes: number },
): Frame {
  const odd = config.backend === 'pil' ? 'before' : 'after'
  const resized = checkResized(name, from, resizedSize(config, from), from.pixelBytes)
  let frame = Frame.of(resized)
  const { size, crop } = config
  if (config.kind === 'ConvNext' && size?.form === 'shortest' && size.edge < CONVNEXT_SQUARE) {
    frame = frame.cutCenter({ width: size.edge, height: size.edge }, odd)
  }
  if (crop) frame = frame.cutCenter(crop, odd)
  frame = frame.seal()
  return config.kind === 'DPT' && config.pad ? dptBorder(frame, config.divisor!) : frame
}

/** The border after normalising, in zeros. @throws TileworkError ERR_ARGUMENT where the image is larger */
export function withBorder(frame: Frame, name: string, pad: ProcessorConfig['pad']): Frame {
  return pad?.size ? padTo(frame, name, pad.size, false) : frame
}

function resizedSize(config: ProcessorConfig, { width, height }: Size): Size {
  if (config.filter === undefined) return { width, height }
  const from = { width, height }
  const { kind, size } = config
  if (size === undefined) return multiples(from, config.divisor ?? 1)
  if (kind === 'DPT') return dptSize(config, from, size as Size)
  if (size.form === 'exact') return { width: size.width, height: size.height }
  if (size.form === 'within') return within(from, size)
  if (kind === 'ConvNext') {
    if (size.edge >= CONVNEXT_SQUARE) return { width: size.edge, height: size.edge }
    return shortestEdge(from, cut(size.edge / config.cropShare))
  }
  return size.limit === undefined
    ? shortestEdge(from, size.edge)
    : shortestAndLongest(from, size.edge, size.limit)
}

function multiples({ width, height }: Size, divisor: number): Size {
  return { width: Math.floor(width / divisor) * divisor, height: Math.floor(height / divisor) * divisor }
}

/** In proportion by the ratio that is nearer to 1, the height's on a tie. */
function dptSize({ keepsRatio, multiple }: ProcessorConfig, from: Size, size: Size): Size {
  let x = size.width / from.width
  let y = size.height / from.height
  if (keepsRatio) {
    if (Math.abs(1 - x) < Math.abs(1 - y)) y = x
    else x = y
  }
  return {
    width: roundEven((x * from.width) / multiple) * multiple,
    height: roundEven((y * from.height) / multiple) * multiple,
  }
}

/** Around the middle, the smaller half first. */
function dptBorder(frame: Frame, divisor: number): Frame {
  const { width, height } = frame.size
  const size = { width: Math.ceil(width / divisor) * divisor, height: Math.ceil(height / divisor) * divisor }
  return frame.extend({
    left: Math.floor((size.width - width) / 2),
    top: Math.floor((size.height - height) / 2),
    ...size,
  })
}
