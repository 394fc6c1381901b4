/** Conventions that have a name and no configuration file. */
import { roundEven } from '../dtype/round_even.js'
import type { PixelRules, ProcessorBackend } from './processor_config.js'
import type { ByteRules } from './processor_tables.js'
import { checkResized, Frame, letterboxFrame, type Size, shortestEdge } from './sizes.js'

interface Preset extends PixelRules {
  readonly rules: ByteRules
  readonly frameOf: (name: string, from: Size & { readonly pixelBytes: number }) => Frame
}

interface AskedPreset {
  readonly backend: ProcessorBackend | undefined
  readonly size: number | undefined
  readonly resizeSize: number | undefined
}

/** A grey that ultralytics puts around images. */
const YOLO_BORDER = 114

export const PRESET_NAMES = ['yolo', 'torchvision'] as const

export function presetOf(name: string, asked: AskedPreset): Preset | undefined {
  if (name === 'yolo') return yolo(asked)
  return name === 'torchvision' ? torchvision(asked) : undefined
}

/** As ultralytics: OpenCV's linear letterbox, then a true division by 255 in float32. */
function yolo({ size = 640 }: AskedPreset): Preset {
  const rules = { width: size, height: size, center: true, scaleUp: true, auto: false, stride: 32 }
  return {
    like: 'opencv',
    filter: 'linear',
    toRgb: true,
    pad: undefined,
    border: YOLO_BORDER,
    // Pillow's order of steps is a division without a mean.
    rules: { backend: 'pil', rescale: undefined, normal: { mean: [0], std: [255] } },
    frameOf: (name, from) => letterboxFrame(name, from, rules, from.pixelBytes),
  }
}

/**
 * `torchvision.transforms._presets.ImageClassification` of Pillow images; with the backend `torchvision` its steps of
 * `transforms.v2`. Of tensors the preset itself resizes in float32, which is neither.
 */
function torchvision({ size = 224, resizeSize = 256, backend = 'pil' }: AskedPreset): Preset {
  return {
    like: backend === 'pil' ? 'pillow' : 'torchvision',
    filter: 'bilinear',
    toRgb: true,
    pad: undefined,
    border: 0,
    rules: {
      backend: 'pil',
      // A division by 255 of Pillow's bytes; transforms.v2 multiplies in float32.
      rescale: backend === 'pil' ? 1 / 255 : Math.fround(1 / 255),
      normal: { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] },
    },
    frameOf: (name, from) => {
      const resized = shortestEdge(from, resizeSize)
      return cutRounded(Frame.of(checkResized(name, from, resized, from.pixelBytes)), size)
    },
  }
}

/** torchvision rounds the place of a crop, ties to even. */
function cutRounded(frame: Frame, size: number): Frame {
  const { width, height } = frame.size
  const startOf = (have: number): number =>
    have >= size ? roundEven((have - size) / 2) : -Math.floor((size - have) / 2)
  return frame.cut({ left: startOf(width), top: startOf(height), width: size, height: size })
}
